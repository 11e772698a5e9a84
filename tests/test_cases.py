"""Where a test runs is decided before any candidate is there, and the control is what must fail."""

from __future__ import annotations

import pytest
from python_files import status_of, task_of

from reflexfix.attempt import Case

FILE = """import functools
import random
from dataclasses import dataclass

LIMIT = (1, "a", -2)
CACHE = {}
count = 0


@dataclass
class Point:
    x: int


def bump():
    global count
    count += 1


def helper(x):
    return x


def f(x, y=0):
    ...
"""


def case_of(test: str, file: str = FILE, function: str = "f") -> Case:
    (case,), dropped = task_of(file, function).own_tests(test, [])
    assert dropped == []
    return case


# ---------------------------------------------------------------- split or in-process

SPLIT = {
    "a plain value": "assert f(1) == 2",
    "a constant of the file": "assert f(LIMIT) == 2",
    "a helper of the file": "assert f(helper(1)) == 2",
    "a sorted argument": "assert f(sorted([2, 1])) == [1, 2]",
    "a length that was computed": "assert f(len('ab')) == 2",
    "a standard value": "import datetime\nassert f(datetime.date(2024, 1, 1)) == 1",
    "an error": "with pytest.raises(ValueError):\n    f(1)",
    "a key function of the test": "assert sorted(f(1), key=lambda a: a) == [1]",
}


@pytest.mark.parametrize("test", SPLIT.values(), ids=SPLIT)
def test_a_test_of_plain_values_runs_beside_the_candidate(test: str) -> None:
    assert case_of(test).mode == "split"


TOGETHER = {
    "a class of the file": "assert f(1) == Point(1)",
    "a variable of the file": "assert f(1) == CACHE",
    "a global that is written": "f(1)\nassert f(1) == count",
    "a lambda": "assert f(lambda a: a) == 2",
    "a function of the test": "def g(a):\n    return a\nassert f(g) == 2",
    "a builtin function": "assert f(len, [1]) == 1",
    "a type": "assert f(int, '1') == 1",
    "a generator": "assert f(a for a in [1]) == 1",
    "capsys": "def test_it(capsys):\n    f(1)\n    assert capsys.readouterr().out == '1'",
    "a redirection": "import contextlib, io\no = io.StringIO()\n"
    "with contextlib.redirect_stdout(o):\n    a = f(1)\nassert f(o.getvalue()) == 1",
    "a stream that is put there": "import io, sys\nsys.stdout = io.StringIO()\na = f(1)\n"
    "assert sys.stdout.getvalue() == a",
    "a mock": "from unittest import mock\nwith mock.patch('m.x') as h:\n    assert f(1) == h(1)",
    "a seed": "import random\nrandom.seed(1)\nassert f(random.random()) == 1",
    "a warning": "with pytest.warns(UserWarning):\n    f(1)",
    "an attribute of the function": "f(1)\nassert f.cache_info().hits == f(0)",
}


@pytest.mark.parametrize("test", TOGETHER.values(), ids=TOGETHER)
def test_a_test_that_needs_the_object_itself_runs_in_one_process(test: str) -> None:
    case = case_of(test)
    assert (case.mode, case.may_fall_back) == ("in-process", False)


INNER = {
    "a method": ("class A:\n    def f(self):\n        ...\n", "A.f", "assert A().f() == 1"),
    "a nested function": (
        "def out(x):\n    def f():\n        ...\n    return f()\n",
        "out.f",
        "assert out(1) == 1",
    ),
    "a conditional function": ("if True:\n    def f(x):\n        ...\n", "f", "assert f(1) == 1"),
}


@pytest.mark.parametrize(("file", "name", "test"), INNER.values(), ids=INNER)
def test_what_cannot_be_replaced_alone_runs_in_one_process(file: str, name: str, test: str) -> None:
    assert case_of(test, file, name).mode == "in-process"


DIRECT = {
    "a literal": "assert f(1) == 2",
    "a literal on the left": "assert {'a': [1]} == f(1)",
    "None": "assert f(1) is None",
    "a negative number": "assert f(1) != -2",
    "a member": "assert f(1) in (1, 2)",
    "an order": "assert f(1) < 3",
    "a variable": "a = f(1)\nassert a == 2",
    "an annotated variable": "a: int = f(1)\nassert a == 2",
    "a walrus": "assert (a := f(1)) == 2",
    "an expected value": "expected = [1]\nassert f(1) == expected",
    "rows of parameters": "@pytest.mark.parametrize('a, b', [(1, 2)])\ndef test_it(a, b):\n"
    "    assert f(a) == b",
    "a loop over rows": "for a, b in [(1, 2), (3, 4)]:\n    assert f(a) == b",
    "a chain": "assert 1 == f(1) == 2",
    "two functions": "assert f(1) == f(2) == 3",
    "a part of a condition": "assert f(1) == 2 and f(2) == 3",
    "a negation": "assert not f(1) != 2",
    "a list of calls": "assert [f(1), f(2)] == [1, 2]",
    "a list that is made of calls": "assert [f(a) for a in (1, 2)] == [1, 2]",
    "all of them": "assert all(f(a) == 2 for a in (1, 2))",
    "an if": "if f(1) != 2:\n    raise AssertionError",
    "unittest": "class T(unittest.TestCase):\n    def setUp(self):\n        self.a = 1\n\n"
    "    def test_it(self):\n        self.assertEqual(f(self.a), 2)",
    "a repeated row": "assert f(1) == [0] * 3",
    "a made value": "assert f(1) == set()",
    "a made infinity": "assert f(1) == float('inf')",
    "a text with a value": "n = 2\nassert f(1) == f'{n}'",
    "a whole test": "def test_it(tmp_path):\n    assert f(str(tmp_path)) == 2",
}


@pytest.mark.parametrize("test", DIRECT.values(), ids=DIRECT)
def test_a_value_that_is_compared_with_a_plain_one_never_falls_back(test: str) -> None:
    case = case_of(test)
    assert (case.mode, case.may_fall_back) == ("split", False)


INDIRECT = {
    "a list of it": "assert list(f(1)) == [1]",
    "a part of it": "assert f(1)[0] == 1",
    "an attribute of it": "assert f(1).x == 1",
    "its type": "assert isinstance(f(1), dict)",
    "its truth": "assert f(1)",
    "a range": "assert f(1) == range(3)",
    "a value that is no plain one": "import array\nassert f(1) == array.array('i')",
    "its parts": "a, b = f(1)\nassert a == 1",
}


@pytest.mark.parametrize("test", INDIRECT.values(), ids=INDIRECT)
def test_a_value_that_only_the_object_can_answer_for_may_fall_back(test: str) -> None:
    case = case_of(test)
    assert (case.mode, case.may_fall_back) == ("split", True)


def test_awaited_values_are_compared_directly_as_well() -> None:
    file = "async def f(x):\n    ...\n"
    tests = "import asyncio\nassert asyncio.run(f(1)) == 2\n\nasync def test_it():\n"
    cases, _ = task_of(file).own_tests(tests + "    assert await f(3) == 4\n", [])
    assert [case.may_fall_back for case in cases] == [False, False]


def test_an_example_of_a_value_never_falls_back() -> None:
    file = 'def f(x):\n    """Doc.\n\n    >>> f(1)\n    2\n\n    f(2) -> 0.33\n    """\n'
    assert [case.may_fall_back for case in task_of(file).examples()] == [False, False]


# ---------------------------------------------------------------- the control

CONTROLLED = {
    "a comparison": "assert f(1) == 2",
    "a comparison the other way": "assert 2 == f(1)",
    "a variable": "a = f(1)\nassert a == 2",
    "a change in place": "a = [1]\nf(a)\nassert a == [2]",
    "a whole test": "def test_it(tmp_path):\n    a = f(1)\n    assert len('b') == 1\n"
    "    assert a == 2",
    "an error": "with pytest.raises(ValueError):\n    f(1)",
    "one process": "assert f(1) == Point(1)",
}
RIGHT = FILE.replace("    ...", "    return 2")
LIAR = FILE.replace("    ...", "    return Liar()") + (
    "class Liar:\n    def __eq__(self, other):\n        return True\n"
)


@pytest.mark.parametrize("test", CONTROLLED.values(), ids=CONTROLLED)
def test_the_control_fails_whatever_an_honest_body_returns(test: str) -> None:
    control, value = task_of(FILE, "f").control([case_of(test)])
    assert control is not None
    assert value in control.source
    assert not control.may_fall_back
    assert status_of(control, RIGHT) in ("failed", "error")


def test_the_control_is_about_the_value_that_the_candidate_made() -> None:
    test = "def test_it(tmp_path):\n    a = [1]\n    assert len(a) == 1\n    assert f(1) == 2"
    control, _ = task_of(FILE, "f").control([case_of(test)])
    assert control is not None
    assert status_of(control, LIAR) == "passed"


def test_a_control_is_made_anew_each_time_and_in_one_process_where_that_is_used() -> None:
    task = task_of(FILE, "f")
    cases = [case_of("assert f(1) == 2"), case_of("assert f(1) == Point(1)")]
    first, second = task.control(cases), task.control(cases)
    assert first[1] != second[1]
    assert first[0] is not None and first[0].mode == "in-process"


def test_without_a_test_that_can_be_turned_there_is_no_control() -> None:
    assert task_of(FILE, "f").control([case_of("assert f(1)")]) == (None, "")
    assert task_of(FILE, "f").control([]) == (None, "")
