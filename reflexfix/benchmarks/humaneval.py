"""HumanEval and what is written in its form: a prompt to be completed, and `check(candidate)`."""

from __future__ import annotations

from reflexfix.benchmarks.problem import Problem, Program, Wishes
from reflexfix.benchmarks.python_text import called, stub_of
from reflexfix.benchmarks.rows import Row

PROGRAM_SECONDS = 30.0
"""What a program of EvalPlus may take, which has all of a row's inputs in it."""


def problem(row: Row, wishes: Wishes) -> Problem:
    """Read a row of HumanEval (MIT, OpenAI), of its repaired copy, or of EvalPlus's OriginFmt."""
    function, prompt = row.text("entry_point"), row.text("prompt")
    source, notes = stub_of(prompt, function)
    body = row.text("canonical_solution", "")
    tests = called(row.text("test"), function)
    packages = packages_in(tests)
    return Problem(
        id=row.text("task_id"),
        language="python",
        source=source,
        function=function,
        hidden=Program(tests),
        solution=prompt + body if body.strip() else "",
        seconds=PROGRAM_SECONDS if packages else Problem.seconds,
        packages=packages,
        notes=notes,
    )


def packages_in(tests: str) -> tuple[str, ...]:
    """Name what the tests need beside the standard library."""
    return ("numpy",) if mentions_import(tests, "numpy") else ()


def mentions_import(tests: str, package: str) -> bool:
    return f"import {package}" in tests or f"from {package}" in tests
