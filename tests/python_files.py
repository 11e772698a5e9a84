"""Python files for tests, made of pieces, and tasks made of them without a disk."""

from __future__ import annotations

import ast
import contextlib
import io
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from reflexfix.attempt import Case
from reflexfix.python import target
from reflexfix.python.surroundings import Surroundings
from reflexfix.python.task import PythonTask
from reflexfix.source import read_python
from sandbox import checks, tester


def task_of(
    data: bytes | str, function: str | None = None, body_only: bool = False, name: str = "m"
) -> PythonTask:
    """Make a task of a file's bytes as `open_task` does. Raises UsageProblem."""
    data = data.encode() if isinstance(data, str) else data
    source = read_python(data, f"{name}.py")
    tree = target.parse(source, f"{name}.py")
    found = target.choose(tree, source, function, f"{name}.py")
    around = Surroundings(Path("/"), name)
    return PythonTask(Path(f"/{name}.py"), data, source, tree, found, around, body_only)


def answer_of(body: str, header: str = "def f(*args, **kwargs):", above: str = "") -> str:
    """Write an answer as a model does, with this body indented by four spaces."""
    return f"```python\n{above}{header}\n{body}\n```\n"


def body_of(data: bytes, dotted: str) -> list[str]:
    """Give the statements of a function in a file, without its docstring, as trees in words."""
    tree = ast.parse(data)
    (found,) = [f for f in target.functions(tree) if f.name == dotted]
    return [ast.dump(node) for node in target.body_without_docstring(found.node)]


# ---------------------------------------------------------------- pieces

BODIES = (
    "    return 1",
    "    return [\n        a\n        for a in args\n    ]",
    "    if args:\n        return 1\n    elif kwargs:\n        return 2\n    else:\n"
    "        return 3",
    '    text = """\none\n\ttwo   \n      three\n    """\n    return text',
    "    text = '''  a   \n    b\n\n    c'''\n    return text",
    '    return f"""\n  {args}   \n\t{kwargs!r}\n"""',
    '    if args:\n        x = """\n        deep\n    """\n        return x\n    return "a\tb"',
    "    return 'a\\\n  b'",
    "    x = 1 + \\\n        2\n    return x",
    "    # first\n    x = 1  # second\n\n    # third\n    return x",
    "    for a in args:\n        # inside\n        while a:\n            a -= 1\n        # after\n"
    "    return 0",
    '    def g(y):\n        """Doc\n\n        more\n        """\n        return y\n\n'
    "    return g(1)",
    "    class A:\n        x = 1\n\n        def m(self):\n            return self.x\n\n"
    "    return A().m()",
    "    try:\n        return call(\n            1,\n                2,\n        )\n"
    "    except (ValueError,\n            KeyError):\n        pass\n    finally:\n"
    "        x = {\n    1: 2}",
    "    match args:\n        case []:\n            return 1\n        case _:\n"
    "            return 2",
    "    with open('a') as a, \\\n         open('b') as b:\n        return a, b",
    "    return 'é' if args else 'ü'",
    "    x = lambda: (\n1)\n    return x",
    "    if args: return 1\n    return 2; x = 3",
)
"""Bodies as a model writes them: each with something that is easily broken."""


@dataclass(frozen=True)
class Pieces:
    """A file in three parts: before the stub, the stub, after it."""

    before: bytes
    stub: bytes
    after: bytes
    name: str
    encoding: str = "utf-8"

    @property
    def data(self) -> bytes:
        return self.before + self.stub + self.after


_TOPS = (
    [],
    ["#!/usr/bin/env python3", "# A licence.", ""],
    ['"""Module docs,', "", "   two lines.", '"""', ""],
    ["from __future__ import annotations", "import os, sys", ""],
    ['"""Doc."""', "import os; X = '''", "# no comment'''", ""],
    ["import os", "", "\f", "X = {", "  'a': 1,", "}", ""],
    ["def other(a, b):", "  '''Odd", "\tdoc'''", "  return a  ", "", ""],
    ["if True:", "    Y = 1", "else:", "    Y = 2", ""],
)
_AFTER = (
    [],
    ["", "", "def last(): return 1  # done"],
    ["", "class Z:  ", "\tx = '''a", " b'''", ""],
    ["", "# the end", "", ""],
)
_HEADERS = (
    ["def f(*args, **kwargs):"],
    ["@decorate(", "  1)", "@other", "async def f(*args, **kwargs):  # note"],
    ["# belongs to f", "def f(", "    *args: {1: 2}[1:2],", "    **kwargs", ") -> {'a': 1}['a']:"],
    ["def f(*args, x=lambda a: {a: 1}, **kwargs) -> (lambda: 0):"],
    ["def f(*args, **kwargs) \\", "        : # c"],
)
_DOCS = ([], ['"""Doc."""'], ['"""Doc,', "", "     odd", '"""'], ["r'''\\d'''  # why"])
_STUBS = (["..."], ["pass"], ["raise NotImplementedError('later')"], ["pass; ..."])
_ONE_LINERS = (" ...", " pass  ", "...", " raise NotImplementedError; pass")


@st.composite
def files(draw: st.DrawFn) -> Pieces:
    """Make a file with one stub called `f`, in all kinds of endings, indents and surroundings."""
    unit = draw(st.sampled_from(["    ", "  ", "\t", " "]))
    scopes = draw(
        st.sampled_from([(), ("class A(B):",), ("class A:", "class B:"), ("def out():",)])
    )
    wrapped = draw(st.sampled_from([(), (), ("if True:",), ("try:",)]))
    outer = [*wrapped, *scopes]
    before = [*draw(st.sampled_from(_TOPS)), *(unit * n + line for n, line in enumerate(outer))]
    after = []
    if scopes:
        after.append(unit * len(outer) + ("return f" if scopes == ("def out():",) else "x = 1"))
    if wrapped == ("try:",):
        after += ["finally:", unit + "W = 1"]
    after += draw(st.sampled_from(_AFTER))
    names = [line.split()[1].partition("(")[0].rstrip(":") for line in scopes]
    return draw(_encoded(before, unit * len(outer), unit, after, ".".join([*names, "f"])))


@st.composite
def _encoded(
    draw: st.DrawFn, before: list[str], lead: str, unit: str, after: list[str], name: str
) -> Pieces:
    endings = draw(st.sampled_from(["\n", "\r\n", "\r", "\n \r\n", "\n \r\n \r"])).split(" ")
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "latin-1", "cp1252"]))
    bom = b"\xef\xbb\xbf" if encoding == "utf-8" and draw(st.booleans()) else b""
    first = [] if encoding == "utf-8" else [f"# -*- coding: {encoding} -*-", "# \u00e9"]

    def joined(lines: list[str]) -> str:
        return "".join(line + draw(st.sampled_from(endings)) for line in lines)

    kept, stub = draw(_function(lead, unit))
    text = joined([*first, *before, *kept])
    text = (
        text.rstrip("\r\n") if stub and kept[-1].endswith("):") and stub[0] in _ONE_LINERS else text
    )
    body = joined(stub)
    if not after and body and draw(st.booleans()):
        body = body.rstrip("\r\n")
    parts = (part.encode(encoding) for part in (text, body, joined(after)))
    before_, stub_, after_ = parts
    return Pieces(bom + before_, stub_, after_, name, encoding)


@st.composite
def _function(draw: st.DrawFn, lead: str, unit: str) -> tuple[list[str], list[str]]:
    """Give the lines that stay and the lines that the body takes the place of."""
    if draw(st.integers(0, 4)) == 0:
        return [lead + "def f(*args, **kwargs):"], [draw(st.sampled_from(_ONE_LINERS))]
    kept = [lead + line for line in draw(st.sampled_from(_HEADERS))]
    doc = draw(st.sampled_from(_DOCS))
    kept += [lead + unit + doc[0], *doc[1:]] if doc else []
    kept += draw(st.sampled_from([[], [lead + unit + "# a comment"]]))
    stub = [] if doc and draw(st.booleans()) else draw(st.sampled_from(_STUBS))
    return kept, [lead + unit + line for line in stub]


# ---------------------------------------------------------------- cases


def status_of(case: Case, module: str) -> str:
    """Run a case as the sandbox's test side does, in this process, on code of our own."""
    namespace: dict[str, object] = {}
    exec(module, namespace)
    namespace |= {checks.COMPARE: checks.compare, checks.TRUTH: checks.truth}
    test = {"source": case.source, "entry": case.entry, "fixtures": case.fixtures, "target": "f"}
    with contextlib.redirect_stdout(io.StringIO()):
        return str(tester.judged(test, namespace, None)["status"])
