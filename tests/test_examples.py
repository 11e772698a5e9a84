"""The examples of a docstring become tests; where one can be read in two ways, it becomes none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_files import status_of, task_of

from reflexfix.attempt import Case
from reflexfix.python.task import PythonTask


def with_doc(doc: str, header: str = "def f(x, y=0):", above: str = "") -> PythonTask:
    lines = "\n".join("    " + line if line else "" for line in doc.split("\n"))
    return task_of(f'{above}{header}\n    r"""{lines.strip()}\n    """\n    ...\n')


def cases(doc: str, header: str = "def f(x, y=0):", above: str = "") -> list[Case]:
    return with_doc(doc, header, above).examples()


def sources(doc: str, header: str = "def f(x, y=0):", above: str = "") -> list[str]:
    return [case.source for case in cases(doc, header, above)]


# ---------------------------------------------------------------- forms that are read

READ = {
    "doctest": (">>> f(1)\n2", "assert f(1) == 2"),
    "doctest with a comment": (">>> f(1)  # one == 1\n2", "assert f(1) == 2"),
    "doctest over lines": (
        ">>> f(\n...     [1,\n...      2])\n[\n 1]",
        "assert f([1, 2]) == [\n 1]",
    ),
    "doctest that compares": (">>> f(1) == 2\nTrue", "assert f(1) == 2"),
    "doctest that compares and fails": (">>> f(1) == 2\nFalse", "assert not (f(1) == 2)"),
    "doctest of an operation": (">>> f(1) + 1\n3", "assert (f(1) + 1) == 3"),
    "doctest of a part": (">>> f(1)[0]\n3", "assert f(1)[0] == 3"),
    "doctest with a directive": (
        ">>> f(1)  # doctest: +NORMALIZE_WHITESPACE\n[1]",
        "assert f(1) == [1]",
    ),
    "doctest that prints a value": (">>> print(f(1))\n2", "assert str(f(1)) == '2'"),
    "==": ("f(1) == 2", "assert f(1) == 2"),
    "assert": ("assert f(1) == 2", "assert f(1) == 2"),
    "prompt and ==": (">>> f(1) == 2", "assert f(1) == 2"),
    "->": ("f(1) -> 2", "assert f(1) == 2"),
    "=>": ("f(1) => 2", "assert f(1) == 2"),
    "==>": ("f(1)==>2", "assert f(1) == 2"),
    "arrow": ("f(1) ➞ 2", "assert f(1) == 2"),
    "long arrow": ("f(1) → 2", "assert f(1) == 2"),
    "=": ("f(1) = 2", "assert f(1) == 2"),
    "# =>": ("f(1) # => 2", "assert f(1) == 2"),
    "#": ("f(1)   # 2", "assert f(1) == 2"),
    "# returns": ("f(1)  # returns 2", "assert f(1) == 2"),
    "returns": ("f(1) returns 2", "assert f(1) == 2"),
    "should return": ("f(1) should return 2.", "assert f(1) == 2"),
    "evaluates to": ("f(1) evaluates to 2", "assert f(1) == 2"),
    "bullet": ("* f(1) -> 2", "assert f(1) == 2"),
    "dash": ("- f(1) -> 2", "assert f(1) == 2"),
    "number": ("1. f(1) -> 2", "assert f(1) == 2"),
    "backticks": ("`f(1)` returns `2`", "assert f(1) == 2"),
    "a word and a colon": ("Example: f(1) == 2", "assert f(1) == 2"),
    "for": ("for f(1) == 2", "assert f(1) == 2"),
    "e.g.": ("E.g., f(1) == 2", "assert f(1) == 2"),
    "a reason behind it": ("f(1) == 2 because it is.", "assert f(1) == 2"),
    "a remark behind it": ("f(1) == 'No' (the name is wrong)", "assert f(1) == 'No'"),
    "a comment behind it": ("f(1) returns [1] # of [1, 2], the one", "assert f(1) == [1]"),
    "a clause behind it": ("f(1) == 2, as said above", "assert f(1) == 2"),
    "a second sentence": ("f(1) == 2. Or so.", "assert f(1) == 2"),
    "true": ("f(1) => true", "assert f(1) == True"),
    "a negative number": ("f(-1) == -15.", "assert f(-1) == -15"),
    "a whole float": ("f(1) == 6.00", "assert f(1) == 6.00"),
    "a fraction": ("f(1, 3) -> 0.33", "assert round(f(1, 3), 2) == 0.33"),
    "brackets in a text": ("f('a)(') == ')'", "assert f('a)(') == ')'"),
    "a dict": ("f({1: 2}) == {'a': (1,)}", "assert f({1: 2}) == {'a': (1,)}"),
    "an error": ("f(-1) raises ValueError", ""),
    "an error in prose": ("f(-1) should raise a ValueError.", ""),
}


@pytest.mark.parametrize(("doc", "source"), READ.values(), ids=READ)
def test_an_example_is_read_in_whatever_form_it_is_written(doc: str, source: str) -> None:
    (found,) = sources("What it does.\n\n" + doc)
    assert found == source or (not source and "except ValueError" in found)


SILENT = {
    "a variable": "f(n) == 2",
    "a variable among values": "f(1, n) = 2",
    "a name that is no value": "is f(a) => False",
    "a formula": "f(2) = 1 + 1",
    "a formula that ends in the value": "f(2) -> 9 - 4 - 2 = 3",
    "a recurrence": "f(3) == f(2) + f(1)",
    "a condition": "f(2) == 1 if odd",
    "a condition behind a comma": "f(2) = 1, if n is even",
    "an alternative": "f(2) returns 1 or 2",
    "about": "f(2) returns about 3",
    "roughly": "f(2) returns 3 (roughly)",
    "dots": "f(2) == 3.1415...",
    "dots in a row": "f(2) == [1, 2, ...]",
    "a row without brackets": "f(2) = 1, 2",
    "a value in brackets": 'f(2) == ("a")',
    "a length": "len(f(2)) == 3",
    "a factor": "2 * f(2) == 3",
    "a sign": "-f(2) == 3",
    "a negation": "not f(2) == 3",
    "a wrong use": "never f(2) == 3",
    "another function": "gf(2) == 3",
    "a method": "x.f(2) == 3",
    "another comparison": "f(2) != 3",
    "at most": "f(2) <= 3",
    "more elements": "f(2) returns 5 elements",
    "a type": "f(2) -> int",
    "a remark that is no value": "f(2)  # 5 calls",
    "an unknown error": "f(2) raises an error",
    "an error on a condition": "f(2) raises ValueError if it is odd",
    "broken quotes": 'f(2) == ""a"',
    "an unclosed call": "f(2 == 3",
    "a signature": "f(x: int, y) -> None",
    "doctest that is skipped": ">>> f(1)  # doctest: +SKIP\n2",
    "doctest without a value": ">>> f(1)",
    "doctest of an object": ">>> f(1)\n<object at 0x7f00>",
    "doctest with dots": ">>> f(1)  # doctest: +ELLIPSIS\n[1, ..., 9]",
    "doctest with prose right below": ">>> f(1)\n2\nAnd so on.",
    "doctest of an unknown name": ">>> f(unknown)\n2",
    "doctest of another function": ">>> len([1])\n1",
    "doctest of an unknown module": ">>> import numpy\n>>> f(numpy.pi)\n2",
    "doctest of an odd error": ">>> f(1)\nTraceback (most recent call last):\nIt broke: (1)",
    "doctest that contradicts itself": ">>> f(1)\n2\n>>> f(1)\n3",
    "a factor without a gap": "2*f(2) == 3",
    "a product with a bullet's look": "y * f(2) == 3",
    "forms that contradict each other": "f(1) == 2\nf(1) -> 3",
}


@pytest.mark.parametrize("doc", SILENT.values(), ids=SILENT)
def test_what_can_be_read_in_two_ways_is_left_out(doc: str) -> None:
    assert sources("What it does.\n\n" + doc) == []


def test_lines_of_mathematics_are_no_examples_where_the_types_differ() -> None:
    doc = "f(1) = 3\nf(2) = 1\n\nExamples:\n>>> f(3)\n[1, 3]"
    assert sources(doc) == ["assert f(3) == [1, 3]"]


def test_examples_of_one_type_may_be_written_with_an_equals_sign() -> None:
    assert len(sources("f(1) = 3\nf(2) = None\nf(3) = 2.5\n")) == 3


def test_the_same_example_is_there_once() -> None:
    assert sources(">>> f(1)\n2\n>>> f(1)\n2\n\nf( 1 ) == 2") == ["assert f(1) == 2"]


# ---------------------------------------------------------------- what is around an example


def test_earlier_lines_set_the_stage_as_far_as_they_matter() -> None:
    setup = ">>> import math\n>>> a = 1\n>>> other = f(9)\n>>> b = a + 1\n"
    assert sources(setup + ">>> f(b)\n3\n>>> f(math.pi)\n4") == [
        "a = 1\nb = a + 1\nassert f(b) == 3",
        "import math\nassert f(math.pi) == 4",
    ]


def test_a_change_in_place_is_an_example_of_the_call_before() -> None:
    assert sources(">>> xs = [2, 1]\n>>> f(xs)\n>>> xs\n[1, 2]") == [
        "xs = [2, 1]\nf(xs)\nassert xs == [1, 2]"
    ]


def test_the_import_of_the_file_itself_is_left_out() -> None:
    assert sources(">>> from m import f\n>>> f(1)\n2") == ["assert f(1) == 2"]


def test_names_of_the_file_may_be_used() -> None:
    assert sources(">>> f(LIMIT)\n2", above="LIMIT = 3\n\n") == ["assert f(LIMIT) == 2"]


METHOD = '''
class Box:
    def f(self):
        """Sum.

        f() == 3
        >>> Box().f()
        3
        """
'''


def test_an_example_on_a_method_needs_its_object() -> None:
    (case,) = task_of(METHOD).examples()
    assert case.source == "assert Box().f() == 3"
    assert case.mode == "in-process"


def test_a_coroutine_is_driven() -> None:
    plain = ">>> f(1)\n2\n>>> await f(2)\n3\n>>> 1 + await f(4)\n9\n"
    driven = ">>> import asyncio\n>>> asyncio.run(f(3))\n4\n"
    assert sources(plain + driven, "async def f(x):") == [
        "assert __import__('asyncio').run(f(1)) == 2",
        "assert __import__('asyncio').run(f(2)) == 3",
        "import asyncio\nassert asyncio.run(f(3)) == 4",
    ]


# ---------------------------------------------------------------- what they accept and reject

TRACE = "Traceback (most recent call last):\n    ...\n"
JUDGED = {
    "a value": (">>> f(1)\n2", "return 2", "return 3"),
    "a list of other spacing": (">>> f(1)\n[1,2]", "return [1, 2]", "return [2]"),
    "a fraction": ("f(1) -> 0.33", "return 1 / 3", "return 0.3"),
    "an error": (
        f">>> f(1)\n{TRACE}ValueError: bad x",
        "raise ValueError('bad x')",
        "raise ValueError('good x')",
    ),
    "an error with dots": (
        f">>> f(1)\n{TRACE}ValueError: bad ...",
        "raise ValueError('bad one')",
        "raise KeyError('bad one')",
    ),
    "an error that must come": ("f(1) raises ValueError", "raise ValueError", "return 1"),
    "an error without its detail": (
        f">>> f(1)  # doctest: +IGNORE_EXCEPTION_DETAIL\n{TRACE}ValueError: a",
        "raise ValueError('b')",
        "return 1",
    ),
    "something printed": (
        "Print it.\n\n>>> f(1)\none\ntwo",
        "print('one\\ntwo')",
        "print('one')",
    ),
    "a number printed": ("Print it.\n\n>>> f(1)\n1", "print(x)", "print(x + 1)"),
    "a number returned where printing is spoken of": (
        "Does not print.\n\n>>> f(1)\n1",
        "return 1",
        "return 2",
    ),
    "a text without its quotes": (
        ">>> f(1)\nHello, you!",
        "return 'Hello, you!'",
        "return 'Hello'",
    ),
    "an object by its looks": (">>> f(1)\nrange(0, 1)", "return range(x)", "return range(2)"),
}


@pytest.mark.parametrize(("doc", "right", "wrong"), JUDGED.values(), ids=JUDGED)
def test_a_right_body_passes_and_a_wrong_one_fails(doc: str, right: str, wrong: str) -> None:
    (case,) = cases("What it does.\n\n" + doc)
    assert status_of(case, f"def f(x, y=0):\n    {right}\n") == "passed"
    assert status_of(case, f"def f(x, y=0):\n    {wrong}\n") in ("failed", "error")


def test_what_is_printed_is_judged_in_one_process() -> None:
    assert [case.mode for case in cases("Print x.\n\n>>> f(1)\n1\n")] == ["in-process"]
    assert [case.mode for case in cases(">>> f(1)\n1\n")] == ["split"]


def test_examples_are_trusted_and_numbered() -> None:
    found = cases(">>> f(1)\n2\n>>> f(2)\n3")
    assert [(case.name, case.origin, case.trusted) for case in found] == [
        ("example 1", "example", True),
        ("example 2", "example", True),
    ]


# ---------------------------------------------------------------- any docstring

PLAIN = """\
>>> f(1)
>>> f(
... 2)
>>> x = f(1)
>>> x
2
[1, 2]
f(1) == 2
f(1) ->
Traceback (most recent call last):
    ...
ValueError: x
E: (
>>>f(1)
>>>
f(1) => ...
f(((
f(1) = '
* `f(1)` -> `2`
    >>> f(2)
f(1) raises (
\t3
f(**{}) -> {**{}}
>>> await f(1)
f('\\ud800') == '\\udc00'
>>> f(lambda: (yield))
f(1) == 1e999
f(1) -> set()
"""
ODD = ["f(" + "(" * 150, "f(-" * 60, "f(1) == " + "9" * 5000, "f(1) == " + "-" * 900 + "1"]
lines = st.sampled_from([*PLAIN.split("\n"), *ODD])


@settings(max_examples=300, deadline=None)
@given(st.lists(lines, max_size=8).map("\n".join) | st.text("f(1) =->#'\"[],.\n", max_size=40))
def test_any_docstring_gives_runnable_examples_or_none(doc: str) -> None:
    for case in with_doc(doc.replace('"""', "")).examples():
        compile(case.source, "<test>", "exec")
        assert case.shown
