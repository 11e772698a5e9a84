"""Of the tests that a model writes, those are kept that any program might fail."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_files import status_of, task_of

from reflexfix.attempt import Case
from reflexfix.task import Dropped

FILE = '''LIMIT = 3


class Box:
    pass


def helper(x):
    return x


def f(x, y=0):
    """Add.

    >>> f(1, 1)
    2
    """
    ...
'''


def read(answer: str, file: str = FILE) -> tuple[list[Case], list[Dropped]]:
    task = task_of(file, "f" if "Box" in file else None)
    return task.own_tests(answer, task.examples())


def kept(answer: str) -> list[str]:
    return [case.source for case in read(answer)[0]]


def reasons(answer: str, file: str = FILE) -> list[str]:
    return [dropped.reason for dropped in read(answer, file)[1]]


# ---------------------------------------------------------------- what is found

FOUND = {
    "plain": "assert f(2) == 2",
    "fenced": "```python\nassert f(2) == 2\n```",
    "prose around": "Here are the tests:\n\nassert f(2) == 2\n\nThese cover the usual case.",
    "prose between, unfenced": "1. The usual case:\nassert f(2) == 2\n2. Nothing else (really).",
    "an open fence": "```python\nassert f(2) == 2",
    "a broken one beside it": "```python\nassert f(1 ==\nassert f(2) == 2\n```",
    "CRLF": "```python\r\nassert f(2) == 2\r\n```\r\n",
    "a test function": "def test_it():\n    assert f(2) == 2",
    "a test class": "class TestIt:\n    def test_it(self):\n        assert f(2) == 2",
    "unittest": "import unittest\n\nclass T(unittest.TestCase):\n    def test_it(self):\n"
    "        self.assertEqual(f(2), 2)\n\nif __name__ == '__main__':\n    unittest.main()",
    "an import of the function": "from solution import f\n\nassert f(2) == 2",
    "the function repeated": "def f(x, y=0):\n    return x\n\nassert f(2) == 2",
    "a run at the end": "def test_it():\n    assert f(2) == 2\n\ntest_it()\nprint('ok')",
    "a check": "def check(g):\n    assert g(2) == 2\n\ncheck(f)",
    "a check that nobody calls": "def verify():\n    assert f(2) == 2",
    "a check that is called": "def verify():\n    assert f(2) == 2\n\nverify()",
    "parameters": "import pytest\n\n@pytest.mark.parametrize('a, b', [(2, 2)])\n"
    "def test_it(a, b):\n    assert f(a) == b",
    "an asyncio mark": "@pytest.mark.asyncio\nasync def test_it():\n    assert f(2) == 2",
    "a message": "assert f(2) == 2, 'adds'",
    "a loop": "for a in [2, 3]:\n    assert f(a) == a",
    "more lines": "assert f(\n    2,\n    0,\n) == (\n    2\n)",
    "a text of more lines": "assert f('''a\nassert no\n''', '') == '''a\nassert no\n'''",
    "a temporary file": "def test_it(tmp_path):\n    (tmp_path / 'a').write_text('2')\n"
    "    assert f((tmp_path / 'a').read_text(), '') == '2'",
    "an io object": "import io\n\nassert f(io.StringIO('2').read(), '') == '2'",
    "an error in try": "try:\n    f(None)\nexcept TypeError:\n    pass\n"
    "else:\n    raise AssertionError('none')",
    "an error expected": "with pytest.raises(TypeError):\n    f(None)",
    "a setUp": "import unittest\n\nclass T(unittest.TestCase):\n    def setUp(self):\n"
    "        self.a = 2\n\n    def test_it(self):\n        self.assertEqual(f(self.a), 2)",
}
RIGHT, WRONG = "def f(x, y=0):\n    return x + y\n", "def f(x, y=0):\n    return '?'\n"


@pytest.mark.parametrize("answer", FOUND.values(), ids=FOUND)
def test_a_test_is_found_passes_what_is_right_and_fails_what_is_wrong(answer: str) -> None:
    (case,) = read(answer)[0]
    assert status_of(case, RIGHT) == "passed"
    assert status_of(case, WRONG) in ("failed", "error")


def test_each_assertion_becomes_a_case_with_what_it_builds_on() -> None:
    answer = "a = 2\nb = a + 1\nunused = f(7)\n\ndef test_it():\n    c = b\n    assert f(c) == 3\n"
    answer += "    assert f(a) == 2\n\nassert f(0) == 0\n"
    assert kept(answer) == [
        "a = 2\nb = a + 1\nc = b\nassert f(c) == 3",
        "a = 2\nb = a + 1\nassert f(a) == 2",
        "assert f(0) == 0",
    ]


def test_parameters_are_unrolled_by_every_mark() -> None:
    answer = "@pytest.mark.parametrize('a', [1, pytest.param(2, id='two')])\n"
    answer += "@pytest.mark.parametrize(('b', 'c'), [(3, 4), [5, 6]])\n"
    answer += "def test_it(a, b, c):\n    assert f(a, b) == c\n"
    assert len(kept(answer)) == 4


def test_very_many_parameters_are_bounded_and_do_not_fill_the_memory() -> None:
    row = f"@pytest.mark.parametrize('NAME', {list(range(3000))})\n"
    marks = "".join(row.replace("NAME", name) for name in "abcd")
    started = time.monotonic()
    assert len(kept(f"{marks}def test_it(a, b, c, d):\n    assert f(a, b) == c + d\n")) <= 50
    assert time.monotonic() - started < 5


def test_unittest_is_said_in_plain_asserts() -> None:
    answer = (
        "class T(unittest.TestCase):\n    def test_it(self):\n        self.assertIn(f(2), [2])\n"
    )
    answer += "        self.assertAlmostEqual(f(0.1, 0.2), 0.3)\n        self.assertIsNone(f(3))\n"
    answer += "        with self.assertRaises(TypeError):\n            f(None)\n"
    answer += "        self.assertRaises(TypeError, f, 'a')\n        self.assertFalse(f(0))\n"
    found = kept(answer)
    assert len(found) == 6
    assert not any("self" in source or "unittest" in source for source in found)


def test_a_forgotten_import_is_added() -> None:
    assert kept("assert f(math.inf) == math.inf") == ["import math\nassert f(math.inf) == math.inf"]


# ---------------------------------------------------------------- what is dropped, and why

DROPPED = {
    "another function": ("assert helper(2) == 2", "does not call f"),
    "nothing called": ("assert 1 + 1 == 2", "does not call f"),
    "a constant": ("assert True or f(1)", "is true by itself"),
    "a tuple": ("assert (f(1) == 1, 'message')", "is true by itself"),
    "a list": ("assert [f(1)]", "is true by itself"),
    "the same on both sides": ("assert f(2) == f(2)", "is true by itself"),
    "one or its opposite": ("assert f(2) or not f(2)", "is true by itself"),
    "an object": ("assert isinstance(f(2), object)", "is true by itself"),
    "a length": ("assert len(f(2)) >= 0", "is true by itself"),
    "a length the other way": ("assert 0 <= len(f(2))", "is true by itself"),
    "a length below nothing": ("assert len(f(2)) > -1", "is true by itself"),
    "a truth on a condition": ("if f(2) == 2:\n    assert True", "does not call f"),
    "a truth of a result": ("a = f(2)\nif a:\n    assert a == a", "is true by itself"),
    "a swallowed failure": (
        "try:\n    assert f(2) == 2\nexcept AssertionError:\n    pass",
        "is true by itself",
    ),
    "a swallowed failure of all kinds": (
        "try:\n    assert f(2) == 2\nexcept:\n    print('no')",
        "is true by itself",
    ),
    "a failure that is taken for the error": (
        "try:\n    f(None)\n    assert False\nexcept Exception:\n    assert True",
        "is true by itself",
    ),
    "a suppressed failure": (
        "import contextlib\nwith contextlib.suppress(Exception):\n    assert f(2) == 2",
        "is true by itself",
    ),
    "a helper that is not there": ("assert f(make()) == 2", "uses make, which is not there"),
    "a fixture that is not there": (
        "def test_it(db):\n    assert f(db) == 2",
        "uses the fixture db",
    ),
    "too many arguments": ("assert f(1, 2, 3) == 2", "with 3 arguments; it takes 2"),
    "an unknown keyword": ("assert f(1, z=2) == 2", "with z=, which it does not take"),
    "too few arguments": ("assert f() == 2", "with too few arguments"),
    "the network": ("import socket\nassert f(socket.gethostname()) == 1", "uses the network"),
    "the network in parts": (
        "from urllib.request import urlopen\nassert f(urlopen) == 1",
        "network",
    ),
    "the environment": ("import os\nassert f(os.environ['HOME']) == 1", "uses the environment"),
    "the environment by name": ("from os import getenv\nassert f(getenv('A')) == 1", "environment"),
    "the environment by another name": ("import os as o\nassert f(o.environ) == 1", "environment"),
    "a process": ("import subprocess\nassert f(subprocess.run('ls')) == 1", "uses other processes"),
    "a shell": ("import os\nassert f(os.system('ls')) == 1", "uses other processes"),
    "a hidden import": ("assert f(__import__('socket')) == 1", "uses the network"),
    "an absolute path": ("assert f(open('/etc/passwd').read()) == 1", "uses an absolute path"),
    "an absolute path by name": ("assert f(open(file='/etc/hosts').read()) == 1", "absolute path"),
    "an absolute path in parts": (
        "n = 1\nassert f(open(f'/etc/{n}').read()) == 1",
        "absolute path",
    ),
    "a home folder": ("import os\nassert f(os.path.expanduser('~/x')) == 1", "absolute path"),
    "what does not parse": ("assert f(1 ==", "does not parse"),
    "what is no program": (
        "with pytest.raises(ValueError):\n    return f(2)",
        "does not run: 'return' outside function",
    ),
    "what is nested too deep": ("assert f(" + "-" * 500 + "1) == 1", "is nested too deep"),
    "a strange mark": ("@given(st.integers())\ndef test_it(a):\n    assert f(a) == a", "unrolled"),
    "a class that is set up once": (
        "class T(unittest.TestCase):\n    def setUpClass(cls):\n        cls.a = 1\n\n"
        "    def test_it(self):\n        self.assertEqual(f(self.a), 2)",
        "uses setUpClass",
    ),
    "what an example says": ("assert f(1,1)  ==  2, 'as said'", "repeats another test"),
}


@pytest.mark.parametrize(("answer", "reason"), DROPPED.values(), ids=DROPPED)
def test_a_test_that_tells_nothing_is_dropped_with_the_reason(answer: str, reason: str) -> None:
    cases, dropped = read(answer)
    assert cases == []
    (one,) = dropped
    assert reason in one.reason
    assert one.shown


def test_repeats_are_dropped_however_they_are_written() -> None:
    answer = (
        "assert f(2) == 2\nassert f( 2 ) == (2), 'again'\ndef test_it():\n    assert f(2) == 2\n"
    )
    assert len(kept(answer)) == 1
    assert reasons(answer) == ["repeats another test"] * 2


@pytest.mark.parametrize(
    "answer", ["# assert f(2) == 2", "'''\nassert f(2) == 2\n'''", "", "None."]
)
def test_what_is_no_code_is_no_test(answer: str) -> None:
    assert read(answer) == ([], [])


def test_a_definition_alone_is_no_test_that_passes() -> None:
    assert kept("def make():\n    return f(2)\n\nclass C:\n    x = f(2)\n") == []


def test_a_mapped_function_is_no_wrong_call() -> None:
    assert len(kept("assert list(map(f, [1], [2])) == [3]\nassert sorted([2], key=f) == [2]")) == 2


def test_a_path_that_is_the_functions_own_argument_is_allowed() -> None:
    assert len(kept("assert f('/usr', '/bin') == '/usr/bin'")) == 1


ASYNC = "async def f(x):\n    ...\n"


def test_a_coroutine_that_is_never_awaited_is_no_test() -> None:
    assert reasons("assert f(2) == 2", ASYNC) == ["never awaits f"]
    answer = "import asyncio\nassert asyncio.run(f(2)) == 2\n\nasync def test_it():\n"
    assert len(read(answer + "    assert await f(3) == 3\n", ASYNC)[0]) == 2


def test_a_method_is_tested_through_its_class() -> None:
    file = "class A:\n    def f(self, x):\n        ...\n"
    assert [c.mode for c in read("assert A().f(2) == 2", file)[0]] == ["in-process"]
    assert reasons("assert f(2) == 2", file) == ["does not call f"]


def test_a_property_is_tested_by_its_use() -> None:
    file = "class A:\n    @property\n    def f(self):\n        ...\n"
    assert len(read("a = A()\nassert a.f == 2", file)[0]) == 1


# ---------------------------------------------------------------- any answer

PLAIN = """\

assert f(1) == 1
assert f(1) == (
    assert f(2) == 2
def test_a():
def test_b(x, tmp_path):
class TestA(unittest.TestCase):
    def test_m(self):
        self.assertEqual(f(1), 1)
        self.x = f(1)
    def setUp(self):
@pytest.mark.parametrize("x", [1, 2])
@pytest.mark.parametrize("x,y", [(1,), 2])
@pytest.mark.parametrize(argnames=1)
with pytest.raises(ValueError):
with pytest.raises(ValueError) as e, g():
    f(1)
try:
except (ValueError, TypeError):
else:
for x in f(1):
while f(1):
    return f(1)
    yield f(1)
async def test_c():
    await f(1)
import a.b as c, os
from os import *
from . import f
lambda: f(1)
x = y = f(1)
x: int = f(1)
(x := f(1))
global x
del f
f = 1
match f(1):
    case {"a": x, **rest}:
assert (lambda *a, **k: f)(1)()
assert f(*[1], **{"y": 2}) == 1
assert [f(x) for x in (1, 2) if f(x)]
assert f"{f(1)!r:>{f(2)}}" == "1"
Some prose: here (it is).
```
```python
'''
    pass
"""
ODD = ["\f", "\0", "\ud800", "assert f(" + "(" * 120, "assert f(1) == " + "-" * 79 + "1"]
lines = st.sampled_from([*PLAIN.split("\n"), *ODD])


@settings(max_examples=400, deadline=None)
@given(st.lists(lines, max_size=12).map("\n".join) | st.text(max_size=60))
def test_any_answer_is_filtered_without_a_crash(answer: str) -> None:
    cases, dropped = read(answer)
    for case in cases:
        compile(case.source, "<test>", "exec", dont_inherit=True)
        assert case.shown and case.name
    assert all(d.reason and d.shown for d in dropped)


LONG = {
    "prose": "The case (a) is: f = needed.\n" * 40_000,
    "asserts": "".join(f"assert f({n}) == {n}\n" for n in range(20_000)),
    "broken asserts": "assert f(1, (\n" * 70_000,
    "fences": "```\nassert f(1) == (\n```\n" * 40_000,
}


@pytest.mark.parametrize("answer", LONG.values(), ids=LONG)
def test_a_megabyte_of_tests_is_read_within_seconds(answer: str) -> None:
    started = time.monotonic()
    read(answer)
    assert time.monotonic() - started < 5
