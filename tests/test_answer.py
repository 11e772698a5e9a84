"""Whatever a model writes around its code, the code is found; and where there is none, why."""

from __future__ import annotations

import ast
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_files import BODIES, answer_of, body_of, task_of

from reflexfix.python.task import PythonTask

FILE = '''import os
from datetime import datetime


def helper(x):
    return x


def f(a, b=2):
    """Add."""
    ...


class Box:
    def __init__(self, items):
        self.items = items

    def total(self):
        """Add up."""
        raise NotImplementedError
'''
BAD = "def f(a, b):\n    return 0\n"
GOOD = "def f(a, b=2):\n    return a + b\n"


def plain() -> PythonTask:
    return task_of(FILE, "f")


def read(answer: str, function: str = "f") -> str:
    """Give the body that was found in an answer, or "why: " and the reason."""
    reading = task_of(FILE, function).read(answer)
    return reading.code or f"why: {reading.why}"


# ---------------------------------------------------------------- fences

WRAPPED = {
    "bare": GOOD,
    "python": f"```python\n{GOOD}```",
    "py": f"```py\n{GOOD}```\n",
    "Python3": f"Sure!\n\n```Python3\n{GOOD}```\nBye.",
    "no tag": f"```\n{GOOD}```",
    "tildes": f"~~~\n{GOOD}~~~",
    "attributes": f"```{{.python .numberLines}}\n{GOOD}```",
    "four ticks": f"````python\n{GOOD}````",
    "spaces around the tag": f"```  python  \n{GOOD}```",
    "indented": "1. Do this:\n\n   ```python\n   def f(a, b=2):\n       return a + b\n   ```\n",
    "indented code only": "Do this:\n\n    def f(a, b=2):\n        return a + b\n\nDone.",
    "prose without fence": f"Here is the code:\n\n{GOOD}\nThis adds the two numbers.",
    "prose right below": f"{GOOD}This adds the two numbers.",
    "unclosed": f"Here:\n```python\n{GOOD}",
    "closed only": f"{GOOD}```\nIt adds (a, b).",
    "closed behind the code": "```python\ndef f(a, b=2):\n    return a + b```",
    "code behind the tag": "```python def f(a, b=2):\n    return a + b\n```",
    "one line": "```python def f(a, b=2): return a + b```",
    "CRLF": f"```python\n{GOOD}```\n".replace("\n", "\r\n"),
    "lone CR": f"```python\n{GOOD}```\n".replace("\n", "\r"),
    "NUL bytes": f"\0```python\n{GOOD}```\0",
    "a BOM": f"\ufeff```python\n{GOOD}```",
    "tabs": "```python\ndef f(a, b=2):\n\treturn a + b\n```",
    "chat leftovers": f"<|im_start|>assistant\n{GOOD}<|im_end|>",
    "end of text": f"```python\n{GOOD}```<|endoftext|>",
    "end of text in the fence": f"```python\n{GOOD}<|endoftext|>\n```",
    "instruction tags": f"[PYTHON]\n{GOOD}[/PYTHON]",
    "a closing tag behind the code": "[PYTHON]def f(a, b=2):\n    return a + b[/PYTHON]</s>",
    "thoughts": f"<think>\n```python\ndef f(a, b=2):\n    return 0\n```\n</think>\n{GOOD}",
    "a demonstration below": f"```python\n{GOOD}\nprint(f(1))\n```",
    "a demonstration in a block": f"```python\n{GOOD}```\n\n```python\nprint(f(1))\n```",
    "output below": f"```python\n{GOOD}```\n\n```\n>>> f(1)\n3\n```",
    "two blocks, the last one counts": f"```py\n{BAD}```\nNo:\n```py\n{GOOD}```",
    "two definitions, the last one counts": f"```py\ndef f(a, b):\n    return 0\n\n{GOOD}```",
    "the stub and then the code": f"```py\ndef f(a, b=2):\n    ...\n```\nis\n```py\n{GOOD}```",
    "the code and then the stub": f"```py\n{GOOD}```\nfills\n```py\ndef f(a, b=2):\n    pass\n```",
    "a shell block": f"```bash\npip install x\n```\n```python\n{GOOD}```\n```sh\npython m.py\n```",
    "a fence in the docstring": '```python\ndef f(a, b=2):\n    """Add.\n\n    ```\n    f(1)\n'
    '    ```\n    """\n    return a + b\n```\nDone.',
    "a tagged fence in the docstring": '```python\ndef f(a, b=2):\n    """Add.\n\n    ```python\n'
    '    f(1)\n    ```\n    """\n    return a + b\n```',
    "decorated": "```python\n@cache\ndef f(a, b=2):\n    return a + b\n```",
    "async": "```python\nasync def f(a, b=2):\n    return a + b\n```",
    "annotated": "```python\ndef f(a: int, b: int = 2) -> int:\n    return a + b\n```",
    "a header of many lines": "```python\ndef f(\n    a,\n    b=2,\n):\n    return a + b\n```",
    "one line def": "```python\ndef f(a, b=2): return a + b\n```",
    "a docstring and the code on a line": '```py\ndef f(a, b=2):\n    """A"""; return a + b\n```',
    "two spaces": "```python\ndef f(a, b=2):\n  return a + b\n```",
    "the whole file": f"```python\n{FILE.replace('    ...', '    return a + b')}```",
    "a main guard": f"```python\n{GOOD}\nif __name__ == '__main__':\n    f(1)\n```",
    "a body": "```python\nreturn a + b\n```",
    "an indented body": "    return a + b\n",
}


@pytest.mark.parametrize("answer", WRAPPED.values(), ids=WRAPPED)
def test_the_code_is_found_however_it_is_wrapped(answer: str) -> None:
    assert read(answer) == "return a + b"


def test_a_first_line_that_lost_its_indent_is_mended() -> None:
    assert read("```python\ntotal = a\n    total += b\n    return total\n```") == (
        "total = a\ntotal += b\nreturn total"
    )


def test_a_bare_body_keeps_its_blocks() -> None:
    body = "for x in a:\n    if x:\n        return x\nreturn b"
    assert read(body) == body
    assert read("\n".join("    " + line for line in body.split("\n"))) == body


def test_the_signature_and_the_decorators_of_the_answer_are_not_taken_over() -> None:
    reading = plain().read(
        "```python\n@cache\ndef f(x: int, y: int) -> int:\n    return x + y\n```"
    )
    assert b"def f(a, b=2):\n" in reading.file
    assert b"cache" not in reading.file
    assert "changed the parameters to (x, y)" in reading.why


def test_nothing_is_said_of_parameters_that_stayed() -> None:
    assert plain().read("```python\ndef f(a: int, b=2) -> int:\n    return 1\n```").why == ""


METHODS = {
    "the class": "class Box:\n    def __init__(self, items):\n        self.items = []\n\n"
    "    def total(self):\n        return sum(self.items)\n",
    "the method alone": "def total(self):\n    return sum(self.items)\n",
    "the indented method": "    def total(self):\n        return sum(self.items)\n",
    "another class of the same method": "class Other:\n    def total(self):\n        return 0\n\n"
    "class Box:\n    def total(self):\n        return sum(self.items)\n",
}


@pytest.mark.parametrize("code", METHODS.values(), ids=METHODS)
def test_a_method_is_found_in_whatever_part_of_its_class(code: str) -> None:
    assert read(f"```python\n{code}```", "Box.total") == "return sum(self.items)"


# ---------------------------------------------------------------- no code, and why

NO_CODE = {
    "nothing": ("", "empty"),
    "spaces": (" \n\t\n", "empty"),
    "an apology": ("I cannot do that.", "does not define f"),
    "another function": ("```python\ndef g(a):\n    return a\n```", "does not define f"),
    "another function with a longer name": ("```py\ndef ff(a):\n    return a\n```", "not define f"),
    "the stub": ("```python\ndef f(a, b=2):\n    ...\n```", "no usable definition"),
    "the stub with its docstring": (
        '```python\ndef f(a, b=2):\n    """Add."""\n    pass\n```',
        "no usable definition",
    ),
    "a stub that raises": (
        "```python\ndef f(a, b=2):\n    raise NotImplementedError('todo')\n```",
        "no usable definition",
    ),
    "a bare stub that raises": ("```python\nraise NotImplementedError\n```", "not define"),
    "half a statement": (
        "```python\ndef f(a, b=2):\n    c = 1\n    return a +",
        "not valid Python",
    ),
    "half a statement in prose": (
        "Here:\n\ndef f(a, b=2):\n    c = 1\n    return (a +",
        "not valid",
    ),
    "an open string": ('```python\ndef f(a, b=2):\n    c = 1\n    return """a', "not valid Python"),
    "an open block": (
        "```python\ndef f(a, b=2):\n    c = 1\n    for x in a:\n",
        "not valid Python",
    ),
    "curly quotes": ("```python\ndef f(a, b=2):\n    return \u201ca\u201d\n```", "U+201C"),
    "spaces that are none": ("```python\ndef f(a, b=2):\n\u00a0\u00a0return a\n```", "U+00A0"),
    "a lone surrogate": ("```python\ndef f(a, b=2):\n    return '\ud800'\n```", "surrogates"),
    "a usage only": ("```python\nprint(f(1, 2))\n```", "does not define f"),
}


@pytest.mark.parametrize(("answer", "why"), NO_CODE.values(), ids=NO_CODE)
def test_an_answer_without_code_says_why(answer: str, why: str) -> None:
    reading = plain().read(answer)
    assert (reading.code, reading.file) == ("", b"")
    assert why in reading.why


CUT = {
    "a second block": f"```python\n{GOOD}```\nBetter:\n```python\ndef f(a, b=2):\n    c = (",
    "the same block": f"```python\n{GOOD}\ndef f(a, b=2):\n    c = 1\n    return (",
    "no block": f"{GOOD}\nor\n\ndef f(a, b=2):\n    return (",
}


@pytest.mark.parametrize("answer", CUT.values(), ids=CUT)
def test_of_a_cut_off_answer_the_earlier_complete_definition_is_taken_and_that_is_said(
    answer: str,
) -> None:
    reading = plain().read(answer)
    assert reading.code == "return a + b"
    assert "not complete" in reading.why


def test_a_block_without_an_end_is_remarked() -> None:
    assert "no end" in plain().read("```python\ndef f(a, b=2):\n    c = a\n").why


# ---------------------------------------------------------------- imports and helpers


def added(answer: str, function: str = "f", body_only: bool = False) -> str:
    """Give what an answer adds to the file, apart from the body."""
    file = task_of(FILE, function, body_only).read(f"```python\n{answer}```").file.decode()
    kept = FILE.splitlines()
    return "\n".join(line for line in file.splitlines() if line and line not in kept)


TAKEN = {
    "an import that the body needs": (
        "import math\nimport json\n\ndef f(a, b=2):\n    return math.gcd(a, b)\n",
        "import math\n    return math.gcd(a, b)",
    ),
    "one name of several": (
        "from math import gcd, pi\n\ndef f(a, b=2):\n    return gcd(a, b)\n",
        "from math import gcd\n    return gcd(a, b)",
    ),
    "an import that the file has": (
        "import os\n\ndef f(a, b=2):\n    return os\n",
        "    return os",
    ),
    "a part of a package": (
        "import os.path\n\ndef f(a, b=2):\n    return os.path.sep\n",
        "import os.path\n    return os.path.sep",
    ),
    "a name that means something else in the file": (
        "import datetime\n\ndef f(a, b=2):\n    return datetime.date\n",
        "    import datetime\n    return datetime.date",
    ),
    "an import under try": (
        "try:\n    import zlib\nexcept ImportError:\n    zlib = None\n\n"
        "def f(a, b=2):\n    return zlib\n",
        "try:\n    import zlib\nexcept ImportError:\n    zlib = None\n    return zlib",
    ),
    "an import of everything": (
        "from math import *\n\ndef f(a, b=2):\n    return sqrt(a)\n",
        "from math import *\n    return sqrt(a)",
    ),
    "an import of everything that nothing needs": (
        "from typing import *\n\ndef f(a, b=2):\n    return helper(a)\n",
        "    return helper(a)",
    ),
    "a helper and what it needs": (
        "import math\nK = 3\n\ndef unused():\n    return f\n\n@staticmethod\ndef g(x=K):\n"
        "    return math.pi\n\ndef f(a, b=2):\n    return g()\n",
        "import math\nK = 3\n@staticmethod\ndef g(x=K):\n    return math.pi\n    return g()",
    ),
    "a helper that the file has": (
        "def helper(x):\n    return 0\n\ndef f(a, b=2):\n    return helper(a)\n",
        "    return helper(a)",
    ),
    "names of a tuple": (
        "X, Y = 1, 2\n\ndef f(a, b=2):\n    return Y\n",
        "X, Y = 1, 2\n    return Y",
    ),
    "a demonstration that shares a name with the body": (
        "def f(a, b=2):\n    result = a\n    return result\n\nresult = f(1)\nprint(result)\n",
        "    result = a\n    return result",
    ),
    "a value of the module that shares a name with a parameter": (
        "a = 3\n\ndef f(a, b=2):\n    return a\n",
        "    return a",
    ),
    "a class": (
        "class Node:\n    def __init__(self):\n        self.next: 'Node' = None\n\n"
        "def f(a, b=2):\n    return Node()\n",
        "class Node:\n    def __init__(self):\n        self.next: 'Node' = None\n    return Node()",
    ),
    "a word in a text that is a helper's name": (
        "def g():\n    return 1\n\ndef f(a, b=2):\n    return 'g'\n",
        "    return 'g'",
    ),
    "an import that only the header needs": (
        "from typing import List\n\ndef f(a: List[int], b=2):\n    return a\n",
        "    return a",
    ),
}


@pytest.mark.parametrize(("answer", "expected"), TAKEN.values(), ids=TAKEN)
def test_what_the_body_needs_comes_along_and_nothing_else(answer: str, expected: str) -> None:
    assert added(answer) == expected


def test_a_helper_is_found_in_text_that_has_no_fence() -> None:
    answer = f"First:\n\nimport math\n\nThen, as said:\n\n{GOOD.replace('a + b', 'math.pi')}\nDone."
    reading = plain().read(answer)
    assert b"import math\n" in reading.file


def test_body_only_keeps_all_imports_inside() -> None:
    answer = "import math\n\ndef g():\n    pass\n\ndef f(a, b=2):\n    return math.pi\n"
    assert added(answer, body_only=True) == "    import math\n    return math.pi"


# ---------------------------------------------------------------- hostile ones


def seconds(answer: str) -> float:
    task = plain()
    started = time.monotonic()
    task.read(answer)
    return time.monotonic() - started


M = 2**20
HUGE = {
    "prose": "The function f is (hard): it = needs care.\n" * (M // 43),
    "definitions": GOOD * (M // len(GOOD)),
    "cut definitions": "def f(a, b=2):\n    return (\n" * (M // 28),
    "fences": "```\n" * (M // 4),
    "fences with definitions": f"```py\n{GOOD} (\n```\n" * (M // 60),
    "one fenced block": "```py\ndef f(a, b=2):\n" + "    a = b\n" * (M // 10) + "    return a\n```",
    "one long line": "def f(a, b=2): return " + "a + " * (M // 4) + "b",
    "brackets": "def f(a, b=2): return " + "(" * M,
    "opened brackets": "def f(a, b=2): return " + "{[(" * 60,
    "quotes": "def f(a, b=2): return " + "\"\"\"'''" * (M // 6),
    "indents": "\n".join(" " * (n % 1000) + "if a:" for n in range(2000)) + "\ndef f(",
    "decorators": "@f\n" * (M // 3) + "def f",
    "asserts": "assert f(1, (\n" * (M // 14),
    "spaces": "def f(a, b=2):\n" + " " * M,
}


@pytest.mark.parametrize("answer", HUGE.values(), ids=HUGE)
def test_a_megabyte_is_read_within_two_seconds(answer: str) -> None:
    assert min(seconds(answer) for _ in range(2)) < 2


DEEP = {
    "brackets": "return " + "(" * 500 + ")" * 500,
    "lists": "return " + "[" * 150 + "]" * 150,
    "minus": "return " + "-" * 3000 + "1",
    "sum": "return " + " + ".join("1" * 2500),
    "not": "return " + "not " * 3000 + "a",
    "attributes": "return a" + ".b" * 3000,
    "calls": "return a" + "()" * 3000,
    "elif": "if a: return 0\n    " + "elif b: return 1\n    " * 1500 + "else: return 2",
    "lambda": "return " + "lambda: " * 900 + "1",
    "blocks": "\n".join("    " * n + "if a:" for n in range(1, 99)).strip() + " return 1",
}


@pytest.mark.parametrize("body", DEEP.values(), ids=DEEP)
def test_code_that_is_nested_very_deep_is_read_or_refused_but_never_crashes(body: str) -> None:
    reading = plain().read(f"```python\ndef f(a, b=2):\n    {body}\n```")
    assert bool(reading.code) == bool(reading.file)
    assert reading.code or reading.why


fragments = st.sampled_from(
    [
        "```", "```python", "~~~", "def f(a, b=2):", "    def f(a, b=2):", "async def f(a, b=2):",
        "    return a", "  return b", "\treturn a", "return a", "    ...", "import math", "@deco",
        "from x import *", "class Box:", "    def total(self):", "        return math.pi", "K = (",
        ")", '    """Doc', '    """', "# note", "Some prose.", "if a:", "else:", "    x = '''", "",
        "'''", "    if a: return 1; b", "\\", "    \\", "</think>", "\f", "\u00a0", "\ud800", "\0",
        "    yield",
        "    await a", "    nonlocal a", "lambda: (", "<|im_end|>", "f = f(1)", "global K",
    ]
)  # fmt: skip


def inside_only(task: PythonTask, file: bytes) -> None:
    """Hold that a file parses, and is the original but for body, imports and helpers."""
    tree = ast.parse(file)
    original = ast.parse(task.original)
    for each in (tree, original):
        (target,) = [n for n in each.body if isinstance(n, ast.FunctionDef) and n.name == "f"]
        target.body = [ast.Pass()]
    left = [ast.dump(node) for node in tree.body]
    for node in original.body:
        assert ast.dump(node) in left
        left.remove(ast.dump(node))


@settings(max_examples=400, deadline=None)
@given(st.lists(fragments, max_size=14).map("\n".join) | st.text(max_size=80))
def test_any_text_is_read_and_changes_only_what_it_may(answer: str) -> None:
    task = plain()
    reading = task.read(answer)
    assert bool(reading.code) == bool(reading.file)
    assert reading.code or reading.why
    if reading.file:
        inside_only(task, reading.file)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(BODIES), st.sampled_from(["", "text\n"]), st.integers(0, 6))
def test_a_body_is_read_exactly_from_an_indented_block(body: str, lead: str, margin: int) -> None:
    shifted = "\n".join(" " * margin + line for line in answer_of(body).split("\n"))
    reading = task_of("def f(*args, **kwargs): ...\n").read(lead + shifted)
    assert body_of(reading.file, "f") == body_of(f"def f():\n{body}\n".encode(), "f")
