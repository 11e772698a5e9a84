"""The one unfinished function is found, and a doubt is answered with the candidates."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from python_files import files, task_of

from reflexfix.errors import UsageProblem
from reflexfix.python.task import open_task

DONE = "def done(x):\n    return x\n\n\n"
STUBS = {
    "dots": "def f(x):\n    ...",
    "pass": "def f(x):\n    pass",
    "pass and a comment": "def f(x):\n    # how\n    pass  # later",
    "dots on the line": "def f(x): ...",
    "a docstring": 'def f(x):\n    """Doc."""',
    "a docstring on the line": 'def f(x): "doc"',
    "a docstring and dots": 'def f(x):\n    """Doc."""\n    ...',
    "a docstring and dots on a line": 'def f(x):\n    """Doc."""; ...',
    "raise": "def f(x):\n    raise NotImplementedError",
    "raise with words": "def f(x):\n    raise NotImplementedError('soon') from None",
    "all of them": 'def f(x):\n    """Doc."""\n    pass\n    ...\n    raise NotImplementedError()',
    "a TODO and a constant": "def f(x):\n    # TODO\n    return -1",
    "a TODO behind a constant": "def f(x):\n    return [{}, ()]  # TODO: write",
    "a FIXME and nothing": "def f(x):\n    return  # FIXME",
    "async": "async def f(x):\n    ...",
    "decorated": "@cache\ndef f(x):\n    ...",
    "under a condition": "if True:\n    def f(x): ...",
    "under try": "try:\n    pass\nexcept E:\n    def f(x): ...",
    "under match": "match 1:\n    case 1:\n        def f(x): ...",
}


@pytest.mark.parametrize("code", STUBS.values(), ids=STUBS)
def test_a_body_that_only_stands_in_for_one_is_the_target(code: str) -> None:
    task = task_of(DONE + code + "\n")
    assert task.name == "f"
    assert task.unfinished
    assert task.old_body == ""


FINISHED = {
    "a constant without a TODO": "def f(x):\n    return 0",
    "a TODO and more than a constant": "def f(x):\n    # TODO\n    return x",
    "a TODO in a text": "def f(x):\n    return 'TODO'",
    "a TODO behind a sharp in a text": "def f(x):\n    return '# TODO'",
    "a bare raise": "def f(x):\n    raise",
    "another error": "def f(x):\n    raise NotImplemented",
    "overloads": "@overload\ndef f(x: int) -> int: ...\n@typing.overload\ndef f(x): ...",
    "an abstract method": "class A:\n    @abstractmethod\n    def f(self): ...",
    "an abstract property": "class A:\n    @property\n    @abc.abstractmethod\n    def f(x): ...",
    "a protocol": "class A(Protocol):\n    def f(self): ...",
    "a generic protocol": "class A(typing.Protocol[T]):\n    def f(self): ...",
    "a class of dots": "class A: ...",
    "a lambda": "f = lambda: ...",
}


@pytest.mark.parametrize("code", FINISHED.values(), ids=FINISHED)
def test_what_is_finished_or_never_to_be_written_is_no_target(code: str) -> None:
    with pytest.raises(UsageProblem, match="no unfinished function") as caught:
        task_of(code + "\n")
    assert "--function" in caught.value.hint


def test_an_implementation_behind_its_overloads_is_found() -> None:
    code = "@overload\ndef f(x: int): ...\n@overload\ndef f(x: str): ...\ndef f(x):\n    pass\n"
    assert task_of(code).found.node.lineno == 5
    assert task_of(code, "f").found.node.lineno == 5


def test_with_none_to_be_written_the_functions_are_listed() -> None:
    with pytest.raises(UsageProblem, match=r"It has: a, B\.c, B\.c\.d\."):
        task_of("def a(): 1\nclass B:\n    def c(self):\n        def d(): 1\n        return d\n")


def test_a_file_without_functions_says_so() -> None:
    with pytest.raises(UsageProblem, match="no function at all"):
        task_of("x = 1\n")


def test_several_are_listed_and_a_name_decides() -> None:
    code = "def a(): ...\nclass B:\n    def a(self): ...\n    def c(self): ...\n"
    with pytest.raises(UsageProblem, match=r"3 unfinished functions: a, B\.a, B\.c\."):
        task_of(code)
    assert task_of(code, "a").name == "a"
    assert task_of(code, "B.a").name == "B.a"
    assert task_of(code, "c").name == "B.c"


def test_a_short_name_that_fits_several_is_refused_with_them() -> None:
    code = "class A:\n    def f(self): ...\nclass B:\n    def f(self): ...\n"
    with pytest.raises(UsageProblem, match=r"2 functions called f: A\.f, B\.f\.") as caught:
        task_of(code, "f")
    assert "dots" in caught.value.hint


def test_nested_functions_have_dotted_names() -> None:
    code = "class A:\n    def m(self):\n        def inner(): ...\n        return inner\n"
    task = task_of(code)
    assert task.name == "A.m.inner"
    assert task.found.is_nested and not task.found.is_method


def test_a_name_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(UsageProblem, match=r"no function g\. It has: f\."):
        task_of("def f(): ...\n", "g")


def test_a_finished_function_that_is_named_is_repaired() -> None:
    task = task_of(DONE, "done")
    assert not task.unfinished
    assert task.old_body == "return x"


def test_a_file_that_is_not_python_is_refused_with_the_place() -> None:
    with pytest.raises(UsageProblem, match=r"m\.py:2:"):
        task_of("x = 1\ndef f(:\n    pass\n")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads the newer syntax")
def test_syntax_of_a_newer_python_is_told_from_an_error() -> None:
    with pytest.raises(UsageProblem, match=r"needs Python 3\.12"):
        task_of("def f[T](x: T) -> T: ...\n")
    with pytest.raises(UsageProblem, match=r"m\.py:1"):
        task_of("def f[T(x: T) -> T: ...\n")


DEEP = {
    "elif": "if 0: pass\n" + "elif 1: pass\n" * 800,
    "a sum": "x = " + " + ".join("1" * 800) + "\n",
    "a chain": "x = a" + ".b" * 800 + "\n",
    "too deep": "x = a" + ".b" * 9000 + "\n",
    "brackets": "x = " + "[" * 300 + "]" * 300 + "\n",
}


@pytest.mark.parametrize("code", DEEP.values(), ids=DEEP)
def test_deep_code_beside_the_target_is_no_crash(code: str) -> None:
    try:
        task = task_of(code + "def f(): ...\n")
    except UsageProblem as problem:
        assert "m.py" in problem.message
        return
    assert task.read("def f():\n    return 1\n").file.endswith(b"    return 1\n")


# ---------------------------------------------------------------- any file

PIECES = b"""\
def f():
    ...
    pass
async def f(x):
\treturn
class A(Protocol):
    def f(self):
        ...
@overload
# coding: latin-1
# TODO
if 1:
    \"""
'''
import a.b
from . import x
from .. import *
def f(): ...
    def f(): return 1
else:
x = (
match 1:
    case 1:
lambda: (
""".split(b"\n")
ODD = [b"\\", b"\f", b"\xef\xbb\xbf", b"\xe9", b"\0", b"from " + b"a" * 300 + b" import b"]
lines = st.sampled_from(PIECES + ODD)
arbitrary = st.binary(max_size=50) | st.tuples(
    st.lists(lines, max_size=8), st.sampled_from([b"\n", b"\r\n", b"\r"])
).map(lambda pair: pair[1].join(pair[0]))


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    arbitrary | files().map(lambda pieces: pieces.data), st.sampled_from([None, "f", "A.f", "."])
)
def test_any_file_is_opened_or_refused(tmp_path: Path, data: bytes, function: str | None) -> None:
    path = tmp_path / "m.py"
    path.write_bytes(data)
    try:
        task = open_task(path, function, body_only=False)
    except UsageProblem:
        return
    assert task.id and task.scope(500) and task.candidate(data).module == "m"
    assert task.read("nothing").why
