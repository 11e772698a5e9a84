"""The nouns of a benchmark: a problem, its hidden tests, and a row that is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Language = Literal["python", "rust"]


@dataclass(frozen=True)
class Program:
    """Hidden tests as a program: it passes if it runs to its end without an exception or panic.

    Python: a module that is run where the answer's names are known; it makes all its calls
    itself (a `check` that nobody calls has been given its call). Rust: items that follow the
    answer, `#[test]` functions or one `main` of assertions.
    """

    source: str


@dataclass(frozen=True)
class Inputs:
    """Hidden tests as inputs: the answer has to give what the reference solution gives.

    The expected values are made by running `Problem.solution` in a container of its own.
    """

    arguments: tuple[str, ...]
    """Each the source of a tuple of positional arguments; `inf` and `nan` are known."""
    view: str = "value"
    """What is compared: an expression of `value` and `args`, over the reference's value too."""
    tolerance: float = 0.0
    """Absolute tolerance of floats; 0 compares exactly, but for the usual 1e-6 of floats."""


Hidden = Program | Inputs


@dataclass(frozen=True)
class Problem:
    """One row of a benchmark: a file with a stub, and what scores the answer to it."""

    id: str
    """The row's own name, unique in its file."""
    language: Language
    source: str
    """The whole file that a solve is given: stub or buggy body, with the prompt's helpers."""
    function: str
    """The target, as `--function` takes it."""
    hidden: Hidden
    """Scores the final answer, and never steers a loop."""
    base: Hidden | None = None
    """The benchmark's first tests where `hidden` adds to them (EvalPlus): a second score."""
    visible: str = ""
    """Tests that the row itself shows: trusted by the loop, left out of the hidden ones."""
    solution: str = ""
    """The whole file with the reference solution; "" where the row has none."""
    seconds: float = 10.0
    """Time limit of one hidden test, at least; EvalPlus takes 4 times the reference's if longer."""
    packages: tuple[str, ...] = ()
    """What answer or tests import and the sandbox has to have."""
    notes: tuple[str, ...] = ()
    """What a report has to say of it: `hidden tests stand in the prompt: 1`, `needs crate rand`."""


@dataclass(frozen=True)
class BadRow:
    """A row that is no problem, and why; the others run."""

    file: str
    line: int
    """From 1; for a JSON list the position in it."""
    why: str


@dataclass(frozen=True)
class Wishes:
    """What the user wants of the rows."""

    visible_tests: int = 0
    """How many of a row's asserts are shown and trusted (MBPP)."""
    repair: bool = False
    """Take the buggy body along as attempt 0 where the row has one (HumanEvalFix, QuixBugs)."""
