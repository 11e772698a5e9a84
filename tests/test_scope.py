"""What the model is told of a file fits the budget, begins with what matters, and says the rest."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_files import Pieces, files, task_of

from reflexfix.python.scope import tokens_in

TARGET = '''
@deco
def f(x: Kind) -> "Other":
    """Use near() and LIMIT."""
    # mind the gap
    old_secret = 1
    return old_secret
'''
NEAR = '''
import os
from kinds import Kind

LIMIT = 3


class Other(Kind):
    """Another."""

    def far(self):
        return deep(self)


def deep(x):
    return LIMIT


def near(x):
    """Nearby."""
    return deep(x)
'''


def filler(count: int) -> str:
    return "\n".join(
        f"def pad_{n}(a):\n    b = a\n    c = b\n    return c + {n}\n" for n in range(count)
    )


def scope(text: str, tokens: int = 600, name: str = "f") -> str:
    return task_of(text, name).scope(tokens)


def test_a_short_file_is_shown_whole_but_for_the_old_body() -> None:
    shown = scope(NEAR + TARGET)
    for line in (NEAR + TARGET).splitlines():
        assert ("old_secret" in line) is (line not in shown)
    assert "    # mind the gap\n    ..." in shown
    assert "left out" not in shown


@pytest.mark.parametrize("above", [0, 600, 1250])
def test_a_file_of_five_thousand_lines_makes_no_larger_prompt(above: int) -> None:
    text = NEAR + filler(above) + TARGET + filler(1250 - above)
    assert len(text.splitlines()) > 5000
    shown = scope(text)
    assert tokens_in(shown) <= 600
    assert tokens_in(shown) > 300
    for line in ("LIMIT = 3", "from kinds import Kind", "def near(x):", "class Other(Kind):"):
        assert line in shown
    assert '"""Use near() and LIMIT."""' in shown
    assert "# left out here: " in shown and "more definitions (pad_" in shown


def test_what_the_target_names_comes_before_what_stands_beside_it() -> None:
    shown = scope(NEAR + filler(300) + TARGET, 170)
    assert "def near(x):" in shown
    assert "pad_299" not in shown


def test_what_those_name_comes_next() -> None:
    assert "def deep(x):" in scope(NEAR + filler(300) + TARGET, 220)


def test_a_large_function_is_shown_by_its_signature() -> None:
    large = "def near(x):\n" + "    x += 1\n" * 500 + "    return x\n"
    shown = scope(large + TARGET, 300)
    assert "def near(x): ..." in shown
    assert "x += 1" not in shown


CLASS = '''
class Box(Base):
    """A box."""

    size: int = 3

    def __init__(self, items):
        self.items = items

{methods}

    def total(self) -> int:
        """Sum up, as part_3() does."""
        old_secret = 1
        return old_secret


def after():
    return 1
'''


@pytest.mark.parametrize("tokens", [200, 600, 2000])
def test_a_method_of_a_huge_class_fits_as_well(tokens: int) -> None:
    methods = "\n".join(
        f"    def part_{n}(self, a):\n        '''Doc.'''\n        return a + {n}\n"
        for n in range(900)
    )
    shown = scope(CLASS.format(methods=methods), tokens, "Box.total")
    assert tokens_in(shown) <= tokens
    assert "old_secret" not in shown
    for line in ("class Box(Base):", "size: int = 3", "self.items = items", "def part_3(self, a):"):
        assert line in shown
    assert "    def total(self) -> int:" in shown
    assert "left out here" in shown


def test_a_nested_function_is_shown_in_what_holds_it() -> None:
    text = "def out(a):\n    b = a\n\n    def f(x):\n        ...\n\n    return f(b)\n"
    shown = scope(text, 600, "out.f")
    lines = ["def out(a):", "b = a", "def f(x):", "        ...", "return f(b)"]
    assert all(line in shown for line in lines)


def test_a_conditional_function_is_shown_under_its_condition() -> None:
    shown = scope("import os\nif os.name:\n    def f(x):\n        ...\n")
    assert "if os.name:\n    def f(x):\n        ..." in shown


def test_the_header_is_shown_as_it_is_written() -> None:
    header = (
        "@deco(\n    1\n)\nasync def f(\n    a,  # first\n    *,\n    b: {1: 2}[1:],\n) -> int:"
    )
    assert header in scope(header + "  # note\n    ...\n")


@settings(max_examples=100, deadline=None)
@given(files(), st.integers(50, 400))
def test_any_file_has_a_scope_that_names_the_target(pieces: Pieces, tokens: int) -> None:
    shown = task_of(pieces.data, pieces.name).scope(tokens)
    assert "def f(" in shown
    assert "\r" not in shown
    assert tokens_in(shown) <= tokens + 120
