"""Benchmarks in their published forms: a row is known by its fields and read into a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from reflexfix.benchmarks import (
    evalplus,
    humaneval,
    humaneval_x,
    mbpp,
    multipl_e,
    own,
    quixbugs,
)
from reflexfix.benchmarks.problem import BadRow, Problem, Program, Wishes
from reflexfix.benchmarks.rows import NoProblem, Row, rows
from reflexfix.errors import UsageProblem
from reflexfix.rust.task import RustTask
from reflexfix.task import task_of

ENDINGS = {"python": ".py", "rust": ".rs"}


@dataclass(frozen=True)
class Format:
    """A published form: the fields that tell it, and what makes a problem of a row of it."""

    name: str
    fields: frozenset[str]
    problem: Callable[[Row, Wishes], Problem]

    def fits(self, row: Row) -> bool:
        return self.fields <= row.fields.keys()


def _format(name: str, fields: str, problem: Callable[[Row, Wishes], Problem]) -> Format:
    return Format(name, frozenset(fields.split()), problem)


FORMATS = (
    _format("MBPP+", "task_id prompt entry_point base_input assertion", evalplus.mbpp_plus),
    _format("HumanEval+", "task_id prompt entry_point base_input plus_input", evalplus.humaneval),
    _format("HumanEvalPack", "task_id prompt buggy_solution test", humaneval_x.pack),
    _format("HumanEval", "task_id prompt entry_point test", humaneval.problem),
    _format("HumanEval-X", "task_id prompt declaration test", humaneval_x.problem),
    _format("MultiPL-E", "prompt language", multipl_e.problem),
    _format("MBPP", "task_id text code test_list", mbpp.full),
    _format("MBPP+ as programs", "task_id prompt code test_list test", evalplus.mbpp_program),
    _format("MBPP, sanitized", "task_id prompt code test_list", mbpp.sanitized),
    _format("MBPP, a list of tests", "task_id prompt code test", mbpp.listed),
    _format("QuixBugs", "task_id entry_point buggy fixed", quixbugs.problem),
    _format("reflexfix's own", "id language source target tests", own.problem),
)
"""The forms that are known; the first that fits a row is its own."""


def read(paths: Sequence[Path], wishes: Wishes) -> Iterator[Problem | BadRow]:
    """Give the problems of these files in order, and the rows that are none.

    Raises UsageProblem before the first row for a file that is missing or of no known form, and
    with file and line where a file turns out to be broken.
    """
    opened = [_recognised(path) for path in paths]
    return _problems(chain.from_iterable(opened), wishes)


def _recognised(path: Path) -> Iterator[Row | BadRow]:
    """Open a file and look at its first row. Raises UsageProblem."""
    found = rows(path)
    first = next(found, None)
    if first is None:
        raise UsageProblem(f"{path}:1: this file has no rows.")
    if isinstance(first, BadRow):
        raise UsageProblem(f"{path}:{first.line}: {first.why}")
    if format_of(first) is None:
        known = ", ".join(form.name for form in FORMATS)
        fields = ", ".join(sorted(first.fields)[:12])
        raise UsageProblem(
            f"{path}:{first.line}: this is no form of a benchmark that is known here ({known}).",
            hint=f"its first row has the fields {fields}",
        )
    return chain([first], found)


def format_of(row: Row) -> Format | None:
    return next((form for form in FORMATS if form.fits(row)), None)


def _problems(found: Iterator[Row | BadRow], wishes: Wishes) -> Iterator[Problem | BadRow]:
    seen: dict[str, str] = {}
    for row in found:
        one = row if isinstance(row, BadRow) else _problem(row, wishes)
        if isinstance(one, Problem) and isinstance(row, Row):
            place = f"{row.file}:{row.line}"
            first = seen.setdefault(one.id, place)
            one = one if first == place else row.bad(f"the id {one.id} stands already at {first}")
        yield one


def _problem(row: Row, wishes: Wishes) -> Problem | BadRow:
    form = format_of(row)
    if form is None:
        return row.bad("is of no form that is known here")
    try:
        return opened(form.problem(row, wishes))
    except NoProblem as error:
        return row.bad(str(error))
    except UsageProblem as error:
        return row.bad(error.message)


def opened(problem: Problem) -> Problem:
    """Make sure that a problem's file opens as a task, and that its tests are of it.

    Raises UsageProblem.
    """
    task = task_of(problem.source.encode("utf-8"), path_of(problem), problem.function)
    if isinstance(task, RustTask) and isinstance(problem.hidden, Program):
        for tests in filter(None, (problem.hidden.source, problem.visible)):
            task.tests_in(tests.encode("utf-8"), Path("tests.rs"))
    return problem


def path_of(problem: Problem) -> Path:
    """Name the file of a problem: a module's name that nothing else has."""
    return Path("solution" + ENDINGS[problem.language])
