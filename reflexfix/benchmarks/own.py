"""Our own form of a benchmark: one JSON object a line, with a file, a target and tests."""

from __future__ import annotations

from typing import cast

from reflexfix.benchmarks import rust_text
from reflexfix.benchmarks.problem import Language, Problem, Program, Wishes
from reflexfix.benchmarks.python_text import called
from reflexfix.benchmarks.rows import NoProblem, Row

MOST_SECONDS = 600.0


def problem(row: Row, wishes: Wishes) -> Problem:
    """Read a row: id, language, source, target, tests; and what else it may have."""
    language = row.text("language").lower()
    if language not in ("python", "rust"):
        raise NoProblem(f"language is {language!r}; it has to be python or rust")
    target, tests = row.text("target"), "\n".join([*row.texts("tests"), ""])
    visible = "\n".join([*row.texts("visible_tests"), ""]).lstrip("\n")
    if not tests.strip():
        raise NoProblem("has no tests")
    read = called if language == "python" else _items
    return Problem(
        id=row.text("id"),
        language=cast(Language, language),
        source=row.text("source"),
        function=target,
        hidden=Program(read(tests, target)),
        visible=read(visible, target) if visible else "",
        solution=row.text("solution", ""),
        seconds=seconds_of(row),
        packages=tuple(row.texts("packages")),
    )


def _items(tests: str, target: str) -> str:
    return rust_text.laid_open(tests)


def seconds_of(row: Row) -> float:
    value = row.fields.get("seconds", 10.0)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NoProblem("seconds is no number")
    if not 0 < value <= MOST_SECONDS:
        raise NoProblem(f"seconds is {value:g}; it has to lie above 0, up to {MOST_SECONDS:g}")
    return float(value)
