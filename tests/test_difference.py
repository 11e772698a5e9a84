"""What tells two values apart, in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexfix.difference import described

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
        | st.sets(st.integers() | st.text(max_size=3), min_size=1, max_size=4)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("expected", "actual", "said"),
    [
        ("'0b11'", "'11'", "it lacks '0b' at its start"),
        ("'11'", "'0b11'", "it has too much: '0b' at its start"),
        ("'ab'", "'abc'", "it has too much: 'c' at its end"),
        ("'Ab'", "'aB'", "upper and lower case differ"),
        ("'a b'", "'a  b '", "the spaces differ"),
        ("'abc'", "'cba'", "it is reversed"),
        ("'abcd'", "'abdc'", "the characters are right and their order is wrong"),
        ("'catac'", "'catc'", "character 3 is 'c' and has to be 'a'"),
        ("3", "4", "it is one too large"),
        ("3", "-3", "the sign is the opposite"),
        ("0.33", "0.3333333", "it has to be rounded"),
        ("10", "4", "it is too small"),
        ("[1, 2]", "[2, 1]", "it is reversed"),
        ("[1, 2, 3]", "[1, 3, 2]", "the elements are right and their order is wrong"),
        ("[1, 2, 3]", "[1, 3]", "it lacks 2"),
        ("[1, 3]", "[1, 2, 3]", "it has too much: 2"),
        ("[1, 1]", "[1, 2]", "element 1 is 2 and has to be 1"),
        ("[1, 2]", "(1, 2)", "it has to be a list, not a tuple"),
        ("[]", "None", "nothing was returned"),
        ("{'a': 1}", "{'a': 2}", "at 'a' stands 2 and not 1"),
        ("{'a': 1}", "{}", "it lacks the key 'a'"),
        ("{1, 2}", "{1, 2, 3}", "the element 3 is too much"),
        ("True", "False", ""),
        ("2", "2.0", ""),
        ("Point(1)", "Point(2)", ""),
        (None, "1", ""),
        ("(" * 3000, "1", ""),
    ],
)
def test_it_is_said_in_one_clause(expected: str | None, actual: str, said: str) -> None:
    assert described(expected, actual) == said


@given(plain, plain)
def test_any_two_values_are_described_in_a_bounded_length(one: object, other: object) -> None:
    assert len(described(repr(one), repr(other))) < 200


@given(plain)
def test_equal_values_do_not_differ(value: object) -> None:
    assert described(repr(value), repr(value)) == ""


@given(st.text(max_size=30), st.text(max_size=30))
def test_text_that_is_no_value_is_passed_over(one: str, other: str) -> None:
    assert isinstance(described(one, other), str)
