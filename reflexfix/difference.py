"""What tells two values apart, in words: a small model does not see it in the values themselves."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

MOST_CHARACTERS = 4000
"""Longer values are not compared: parsing them would take longer than it is worth."""


def described(expected: str | None, actual: str | None) -> str:
    """Say in one clause how the actual value differs; "" where there is nothing simple to say.

    Both are values as Python writes them; what is no plain literal is not looked at.
    """
    if not expected or not actual or max(len(expected), len(actual)) > MOST_CHARACTERS:
        return ""
    try:
        wanted, came = ast.literal_eval(expected), ast.literal_eval(actual)
        return between(wanted, came)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError, OverflowError):
        return ""


def between(wanted: Any, came: Any) -> str:
    """Say how one value differs from the other."""
    if wanted == came and kind(wanted) == kind(came):
        return ""
    if came is None:
        return "nothing was returned"
    if kind(wanted) != kind(came):
        return f"it has to be {named(wanted)}, not {named(came)}"
    if isinstance(wanted, bool):
        return ""
    if isinstance(wanted, int | float):
        return of_numbers(wanted, came)
    if isinstance(wanted, str):
        return of_texts(wanted, came)
    if isinstance(wanted, list | tuple):
        return of_sequences(wanted, came)
    if isinstance(wanted, dict):
        return of_members(set(wanted), set(came), "the key") or of_values(wanted, came)
    if isinstance(wanted, set | frozenset):
        return of_members(wanted, came, "the element")
    return ""


def kind(value: Any) -> type:
    """Give the type that counts: whole numbers and floats are compared by value."""
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def named(value: Any) -> str:
    names = {
        bool: "True or False", int: "a number", float: "a number", str: "a string",
        list: "a list", tuple: "a tuple", dict: "a dictionary", set: "a set",
        type(None): "None",
    }  # fmt: skip
    return names.get(type(value), f"a {type(value).__name__}")


def of_numbers(wanted: float, came: float) -> str:
    if wanted == -came:
        return "the sign is the opposite"
    if round(came, 2) == wanted:
        return "it has to be rounded"
    gap = came - wanted
    if abs(gap) == 1:
        return "it is one too large" if gap > 0 else "it is one too small"
    return f"it is too {'large' if gap > 0 else 'small'}"


def of_texts(wanted: str, came: str) -> str:
    if wanted.lower() == came.lower():
        return "upper and lower case differ"
    if wanted.split() == came.split():
        return "the spaces differ"
    for whole, part, verb in ((wanted, came, "lacks"), (came, wanted, "has too much:")):
        if part and whole.endswith(part):
            return f"it {verb} {cut(whole[: -len(part)])} at its start"
        if part and whole.startswith(part):
            return f"it {verb} {cut(whole[len(part) :])} at its end"
    if wanted == came[::-1]:
        return "it is reversed"
    if len(wanted) == len(came) and sorted(wanted) == sorted(came):
        return "the characters are right and their order is wrong"
    return first_difference(wanted, came, "character")


def of_sequences(wanted: Any, came: Any) -> str:
    if list(wanted) == list(came)[::-1]:
        return "it is reversed"
    if sorted(map(repr, wanted)) == sorted(map(repr, came)):
        return "the elements are right and their order is wrong"
    more, less = counted(came) - counted(wanted), counted(wanted) - counted(came)
    if len(wanted) != len(came) and not less:
        return f"it has too much: {listed(more)}"
    if len(wanted) != len(came) and not more:
        return f"it lacks {listed(less)}"
    return first_difference(wanted, came, "element")


def of_members(wanted: Any, came: Any, what: str) -> str:
    if lacking := sorted(map(repr, wanted - came)):
        return f"it lacks {what} {cut(lacking[0], False)}"
    if over := sorted(map(repr, came - wanted)):
        return f"{what} {cut(over[0], False)} is too much"
    return ""


def of_values(wanted: dict[Any, Any], came: dict[Any, Any]) -> str:
    for key in wanted:
        if wanted[key] != came[key]:
            return f"at {key!r} stands {cut(came[key])} and not {cut(wanted[key])}"
    return ""


def first_difference(wanted: Any, came: Any, what: str) -> str:
    """Name the first place where two sequences differ; it is counted from 0."""
    for place, (one, other) in enumerate(zip(wanted, came, strict=False)):
        if one != other:
            return f"{what} {place} is {cut(other)} and has to be {cut(one)}"
    shorter = len(came) < len(wanted)
    return f"it has {len(came)} {what}s, {'fewer' if shorter else 'more'} than {len(wanted)}"


def counted(values: Any) -> Counter[str]:
    return Counter(map(repr, values))


def listed(some: Counter[str]) -> str:
    return cut(", ".join(sorted(some.elements())), False)


def cut(value: Any, quoted: bool = True) -> str:
    text = repr(value) if quoted else value
    return text if len(text) <= 60 else text[:57] + "..."
