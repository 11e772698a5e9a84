"""Only the body changes: every other byte of a file is what it was."""

from __future__ import annotations

import ast
import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_files import BODIES, Pieces, answer_of, body_of, files, task_of


@settings(max_examples=200, deadline=None)
@given(files(), st.sampled_from(BODIES))
def test_a_spliced_body_reads_back_and_every_other_byte_stays(pieces: Pieces, body: str) -> None:
    task = task_of(pieces.data, pieces.name)
    assert task.unfinished
    reading = task.read(answer_of(body))
    assert reading.code, reading.why
    assert reading.file.startswith(pieces.before)
    assert reading.file.endswith(pieces.after)
    assert ends_with_newline(reading.file) == ends_with_newline(pieces.data)
    expected = body_of(f"def f(*args, **kwargs):\n{body}\n".encode(), "f")
    assert body_of(reading.file, pieces.name) == expected


def ends_with_newline(data: bytes) -> bool:
    return data.endswith((b"\n", b"\r"))


ABOVE = """import zlib
from bz2 import (compress,)

LIMIT = 3

def helper(x):
    if x:
        return '''a
  b''', compress

"""
CALLS = "    return helper(zlib.crc32(b''), LIMIT)"


@settings(max_examples=200, deadline=None)
@given(files())
def test_imports_and_helpers_join_the_file_and_nothing_else_moves(pieces: Pieces) -> None:
    task = task_of(pieces.data, pieces.name)
    reading = task.read(answer_of(CALLS, above=ABOVE))
    assert reading.code, reading.why
    rest = without_blank_lines(without_inserted(reading.file))
    assert rest.startswith(without_blank_lines(pieces.before))
    assert reading.file.endswith(pieces.after)
    tree = ast.parse(reading.file)
    (helper,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "helper"]
    assert ast.dump(helper) == ast.dump(ast.parse(ABOVE).body[-1])
    holder = next(n for n in tree.body if any(getattr(c, "name", "") == "f" for c in ast.walk(n)))
    assert helper.lineno < holder.lineno
    imports = [n.lineno for n in tree.body if "zlib" in ast.unparse(n)]
    assert imports and imports[0] < helper.lineno


def without_inserted(data: bytes) -> bytes:
    """Cut out what the test above puts in, whatever its line endings and indents are."""
    for line in (b"import zlib", b"from bz2 import compress", b"LIMIT = 3"):
        data = cut(data, line, line)
    return cut(data, b"def helper(x):", b"b''', compress")


def cut(data: bytes, begin: bytes, end: bytes) -> bytes:
    start = data.index(begin)
    return data[:start] + data[data.index(end, start) + len(end) :]


def without_blank_lines(data: bytes) -> bytes:
    bom = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    return bom + re.sub(rb"[\r\n]+", b"\n", data.removeprefix(bom)).strip(b"\n")


# ---------------------------------------------------------------- single cases

SHAPES = {
    "a comment stays on a one-line header": (
        "def f(x): ...  # c\n",
        "def f(x):  # c\n    return 1\n",
    ),
    "a TODO behind a one-liner goes": ("def f(x): pass  # TODO\n", "def f(x):\n    return 1\n"),
    "a one-line docstring stays": (
        'def f(): "doc"\n',
        'def f():\n    "doc"\n    return 1\n',
    ),
    "a one-line docstring of two lines keeps its bytes": (
        'def f(): """a\r\n\tb"""; pass\n# end\n',
        'def f():\n    """a\r\n\tb"""\n    return 1\n# end\n',
    ),
    "a stub behind its docstring": (
        'def f():\n    """doc"""; pass\n',
        'def f():\n    """doc"""\n    return 1\n',
    ),
    "a body behind a backslash": ("def f(): \\\n    pass\n", "def f():\n    return 1\n"),
    "a class with one space": (
        "class A:\n def f(self): pass\n",
        "class A:\n def f(self):\n  return 1\n",
    ),
    "a one-liner in a file of two spaces": (
        "if 1:\n  x = 1\ndef f(): ...\n",
        "if 1:\n  x = 1\ndef f():\n  return 1\n",
    ),
    "a one-liner in a file of tabs": (
        "if 1:\n\tx = 1\ndef f(): ...\n",
        "if 1:\n\tx = 1\ndef f():\n\treturn 1\n",
    ),
    "a stub at the end without a newline": ("def f():\n    ...", "def f():\n    return 1"),
    "a docstring at the end without a newline": (
        'def f():\n    "doc"',
        'def f():\n    "doc"\n    return 1',
    ),
    "a docstring, comments, the end": (
        'def f():\n    "doc"\n\n    # keep\n    # TODO: go',
        'def f():\n    "doc"\n\n    # keep\n    return 1',
    ),
    "comments below a docstring that are not the function's": (
        'def f():\n    "doc"\n\n# other\nx = 1\n',
        'def f():\n    "doc"\n    return 1\n\n# other\nx = 1\n',
    ),
    "comments of a stub stay, what says TODO goes": (
        "def f():\n    # keep\n    # TODO: write\n    # and keep\n    pass  # why\n    # below\n",
        "def f():\n    # keep\n    # and keep\n    # why\n    return 1\n    # below\n",
    ),
    "comments between two placeholders stay": (
        'def f():\n    "doc"\n    pass\n    # between\n    ...\n',
        'def f():\n    "doc"\n    # between\n    return 1\n',
    ),
    "a constant with a FIXME": (
        "def f():\n    # FIXME\n    return []\n",
        "def f():\n    return 1\n",
    ),
    "a lambda and slices in the header": (
        "def f(a=lambda x: {1: 2}[1:1], *, b: d[1:2] = {1: 2}) -> lambda: 0: ...\n",
        "def f(a=lambda x: {1: 2}[1:1], *, b: d[1:2] = {1: 2}) -> lambda: 0:\n    return 1\n",
    ),
    "a string with colons in the header": (
        "def f(a: 'x:y' = \":\") -> ':': ...\n",
        "def f(a: 'x:y' = \":\") -> ':':\n    return 1\n",
    ),
    "a form feed in front of the function": (
        "x = 1\n\f\ndef f():\n    ...\n",
        "x = 1\n\f\ndef f():\n    return 1\n",
    ),
    "a form feed in the indentation": (
        "class A:\n    def f(self):\n  \f        pass\n",
        "class A:\n    def f(self):\n        return 1\n",
    ),
    "nested quotes in the docstring": (
        "def f():\n    '''It's \"\"\"quoted\"\"\"'''\n    ...\n",
        "def f():\n    '''It's \"\"\"quoted\"\"\"'''\n    return 1\n",
    ),
    "a semicolon behind the stub": ("def f():\n    ...;\n", "def f():\n    return 1\n"),
    "an else that follows": (
        "if 1:\n    def f(): ...\nelse:\n    g = 1\n",
        "if 1:\n    def f():\n        return 1\nelse:\n    g = 1\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_a_stub_of_any_shape_becomes_a_function(before: str, after: str, ending: str) -> None:
    if "\r" in before and ending != "\n":
        pytest.skip("its endings are given")
    before, after = (
        text.replace("\n", ending) if ending != "\n" else text for text in (before, after)
    )
    reading = task_of(before, "f" if "else" in before else None).read(answer_of("    return 1"))
    assert reading.file.decode() == after


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is newer than this Python")
def test_type_parameters_of_a_header_are_no_end_of_it() -> None:
    task = task_of("def f[T: (int, str), *Ts](x: T) -> dict[T, T]: ...\n")
    reading = task.read(answer_of("    return 1"))
    assert reading.file == b"def f[T: (int, str), *Ts](x: T) -> dict[T, T]:\n    return 1\n"


OLD = '''def f(a):
    """Doc."""
    # about the loop
    for x in a:  # wrong
        return x

    return None  # end
'''


def test_a_finished_body_is_replaced_with_the_comment_that_belongs_to_it() -> None:
    task = task_of(OLD, "f")
    assert task.old_body.startswith("# about the loop\nfor x in a:")
    reading = task.read(answer_of("    # about the loop\n    return 1", "def f(a):"))
    assert reading.file.decode() == (
        'def f(a):\n    """Doc."""\n    # about the loop\n    return 1\n'
    )


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_the_old_body_is_read_whatever_ends_its_lines(ending: str) -> None:
    assert task_of(OLD.replace("\n", ending), "f").old_body == task_of(OLD, "f").old_body


def test_a_comment_of_the_stub_that_the_answer_repeats_is_there_once() -> None:
    task = task_of("def f():\n    # use a heap\n    ...\n")
    reading = task.read(answer_of("    # use a heap\n    return 1"))
    assert reading.file.count(b"# use a heap") == 1


# ---------------------------------------------------------------- imports and helpers

NEEDS = "```python\nimport math\n\ndef g():\n    return math.pi\n\ndef f():\n    return g()\n```"
PLACES = {
    "after docstring and future": (
        '#!/usr/bin/python\n"""Doc."""\nfrom __future__ import annotations\nx = 1\ndef f(): ...\n',
        '#!/usr/bin/python\n"""Doc."""\nfrom __future__ import annotations\nimport math\nx = 1\n'
        "def g():\n    return math.pi\n\n\ndef f():\n    return g()\n",
    ),
    "after a docstring alone": (
        '"""Doc."""\n\ndef f(): ...\n',
        '"""Doc."""\n\nimport math\n\ndef g():\n    return math.pi\n\n\ndef f():\n    return g()\n',
    ),
    "below the licence": (
        "# coding: utf-8\n# Licence\n\n# about f\n@d\ndef f(): ...\n",
        "# coding: utf-8\n# Licence\n\nimport math\n\n\ndef g():\n    return math.pi\n\n\n"
        "# about f\n@d\ndef f():\n    return g()\n",
    ),
    "above the class": (
        "import os\n\n\n@d\nclass A:\n    def f(self): ...\n",
        "import os\nimport math\n\n\ndef g():\n    return math.pi\n\n\n"
        "@d\nclass A:\n    def f(self):\n        return g()\n",
    ),
    "above the condition": (
        "import os\nif os:\n    def f(): ...\n",
        "import os\nimport math\ndef g():\n    return math.pi\n\n\n"
        "if os:\n    def f():\n        return g()\n",
    ),
    "not into a string that looks like a comment": (
        "import os\nX = '''\n# no'''\ndef f(): ...\n",
        "import os\nimport math\nX = '''\n# no'''\ndef g():\n    return math.pi\n\n\n"
        "def f():\n    return g()\n",
    ),
    "behind a row of statements": (
        "import os; Y = '''\n'''; Z = 1\ndef f(): ...\n",
        "import os; Y = '''\n'''; Z = 1\nimport math\ndef g():\n    return math.pi\n\n\n"
        "def f():\n    return g()\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), PLACES.values(), ids=PLACES)
def test_imports_and_helpers_go_where_they_belong(before: str, after: str) -> None:
    assert task_of(before).read(NEEDS).file.decode() == after


def test_helpers_are_indented_as_the_file_is() -> None:
    task = task_of("class A:\n\tx = 1\n\ndef f(): ...\n")
    assert b"def g():\n\treturn math.pi\n" in task.read(NEEDS).file


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "koi8-r", "shift_jis"])
def test_an_answer_that_the_encoding_cannot_write_says_so(encoding: str) -> None:
    task = task_of(f"# coding: {encoding}\ndef f(): ...\n".encode(encoding))
    reading = task.read(answer_of("    return '\U0001f600'"))
    assert not reading.code and "cannot write" in reading.why
