"""The score: one final file, judged by the tests that no loop has ever seen."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from reflexfix.attempt import Case, Judged, Limits, Mode, Oracle, Sandbox, Suite, Values, Verdict
from reflexfix.benchmarks.formats import path_of
from reflexfix.benchmarks.problem import Hidden, Inputs, Language, Problem, Program
from reflexfix.errors import SandboxTrouble, UsageProblem
from reflexfix.python import hidden as python_hidden
from reflexfix.python.task import PythonTask
from reflexfix.rust.task import RustTask
from reflexfix.task import task_of

How = Literal[
    "passed", "failed", "error", "timeout", "memory", "output", "no-verdict", "unstable",
    "compile-error", "compile-timeout", "needs crate", "forged", "no-reference",
]  # fmt: skip
"""How a score came about; `no-reference`: the row's own solution gives nothing to compare with."""

Open = Callable[[Language, tuple[str, ...], Limits], contextlib.AbstractContextManager[Sandbox]]
"""Opens a sandbox for a language that has these packages, with these limits."""


@dataclass(frozen=True)
class Score:
    """What the hidden tests say of one file."""

    passed: bool
    """Whether all hidden tests passed, the benchmark's first ones included, and none was forged."""
    base: bool | None
    """Whether the benchmark's first tests passed, where `hidden` adds to them; else None."""
    status: How
    mode: Mode
    forged: bool = False
    message: str = ""
    """What went wrong, in a few lines."""
    seconds: float = 0.0
    limited: bool = False
    """Whether it is a time limit that decided."""


@dataclass
class Sandboxes:
    """The sandboxes of all scores, opened when first needed. Use it in a `with` block."""

    open: Open
    limits: Limits = field(default_factory=Limits)
    opened: dict[tuple[str, tuple[str, ...], Limits], Sandbox] = field(default_factory=dict)
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    references: dict[str, Values] = field(default_factory=dict)
    """What reference solutions gave, by what they were asked."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Sandboxes:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def get(
        self, language: Language, packages: tuple[str, ...], seconds: float, memory_mb: int = 0
    ) -> Sandbox:
        """Give a sandbox in which one test may take at least this much. Raises SandboxTrouble."""
        limits = self.limits
        if seconds > limits.test_seconds:
            limits = limits.with_test_seconds(seconds)
        limits = replace(limits, memory_mb=max(limits.memory_mb, memory_mb))
        key = (language, packages, limits)
        with self.lock:
            if key not in self.opened:
                opened = self.open(language, packages, limits)
                self.opened[key] = self.stack.enter_context(opened)
            return self.opened[key]

    def for_python(self, problem: Problem, seconds: float) -> Sandbox:
        """Give the sandbox for a problem's hidden tests."""
        memory_mb = INPUTS_MB if isinstance(problem.hidden, Inputs) else 0
        return self.get("python", problem.packages, seconds, memory_mb)


INPUTS_MB = 2048
"""Memory where inputs are compared: some of EvalPlus's ask for values of hundreds of megabytes."""


def score(problem: Problem, file: bytes, sandboxes: Sandboxes) -> Score:
    """Judge a file by a problem's hidden tests, in a container of its own.

    Raises SandboxTrouble when no verdict could be had; that is never a failed score.
    """
    if problem.language == "rust":
        return _score_rust(problem, file, sandboxes)
    return _score_python(problem, file, sandboxes)


# ---------------------------------------------------------------- python


def _score_python(problem: Problem, file: bytes, sandboxes: Sandboxes) -> Score:
    task = task_of(problem.source.encode(), path_of(problem), problem.function)
    assert isinstance(task, PythonTask)
    parts = {"base": problem.base, "hidden": problem.hidden}
    try:
        written = {
            name: _written(hidden, problem, task, sandboxes)
            for name, hidden in parts.items()
            if hidden is not None and not is_empty(hidden)
        }
    except NoReference as error:
        limited = "limit of" in str(error)
        return Score(False, None, "no-reference", "split", message=str(error), limited=limited)
    cases = [
        with_fall_back(python_hidden.program_case(name, source, task, problem.solution), problem)
        for name, (source, _) in written.items()
    ]
    control, private = python_hidden.control_of(cases[-1], task)
    suite = Suite(cases=tuple(cases), control=control, control_value=private)
    seconds = max(problem.seconds, *(seconds for _, seconds in written.values()))
    sandbox = sandboxes.for_python(problem, math.ceil(seconds))
    return of_verdict(sandbox.run(task.candidate(file), suite))


def with_fall_back(case: Case, problem: Problem) -> Case:
    """Let values that cannot cross be looked at in place, where a row does not compare by ==."""
    hidden = problem.hidden
    if isinstance(hidden, Program):
        return case
    return replace(case, may_fall_back=hidden.view != "value")


def is_empty(hidden: Hidden) -> bool:
    """Whether there is no input to compare for: a row may add none to the first ones."""
    return isinstance(hidden, Inputs) and not hidden.arguments


def _written(
    hidden: Hidden, problem: Problem, task: PythonTask, sandboxes: Sandboxes
) -> tuple[str, float]:
    """Give hidden tests as a program, and how long it may take at least. Raises NoReference.

    Values that are too large to be kept are asked for again by the tests' own process.
    """
    if isinstance(hidden, Program):
        return hidden.source, 0.0
    values = _values(hidden, problem, task, sandboxes)
    if values.text:
        wanted, more = python_hidden.kept(values.text), len(values.text) / 2**20
    else:
        wanted = python_hidden.asked(task.name, problem.solution, hidden.view)
        more = values.seconds + LARGE_SECONDS
    compared = python_hidden.compared_program(
        task.name, hidden.arguments, hidden.view, hidden.tolerance, wanted
    )
    return compared, SLOWER * values.seconds + more


def _values(hidden: Inputs, problem: Problem, task: PythonTask, sandboxes: Sandboxes) -> Values:
    """Ask the reference solution, in a container of its own, once for all answers."""
    program = python_hidden.values_program(task.name, hidden.arguments, hidden.view)
    key = sha256(f"{problem.solution}\0{program}".encode()).hexdigest()
    with sandboxes.lock:
        known = sandboxes.references.get(key)
    if known is None:
        sandbox = sandboxes.for_python(problem, REFERENCE_SECONDS)
        assert isinstance(sandbox, Oracle)
        known = sandbox.values(task.candidate(problem.solution.encode()), program)
        with sandboxes.lock:
            sandboxes.references[key] = known
    if known.problem:
        raise NoReference(f"the reference solution gives no values: {known.problem}")
    return known


class NoReference(Exception):
    """The row's own solution gives nothing to compare with."""


SLOWER = 4
"""How many times the reference's time an answer may take, where that is more than the limit."""
LARGE_SECONDS = 30.0
"""What values that are too large to be kept may take on their way between two processes."""
REFERENCE_SECONDS = 300.0


# ---------------------------------------------------------------- rust


def _score_rust(problem: Problem, file: bytes, sandboxes: Sandboxes) -> Score:
    """Judge by the items of the tests; rows whose tests need a crate have no verdict here."""
    if problem.packages:
        message = f"the tests need the crate {', '.join(problem.packages)}"
        return Score(False, None, "needs crate", "split", message=message)
    task = task_of(problem.source.encode(), path_of(problem), problem.function)
    assert isinstance(task, RustTask) and isinstance(problem.hidden, Program)
    cases = task.tests_in(problem.hidden.source.encode(), Path("hidden.rs"))
    control, private = task.control(cases)
    suite = Suite(cases=cases, control=control, control_value=private)
    sandbox = sandboxes.get("rust", (), problem.seconds)
    found = of_verdict(sandbox.run(task.candidate(file), suite))
    if found.status != "compile-error" or not (crates := crates_of(file, problem.function)):
        return found
    return Score(
        False, None, "needs crate", found.mode, message=f"the answer uses {', '.join(crates)}"
    )


def crates_of(file: bytes, function: str) -> tuple[str, ...]:
    """Name the crates that an answer takes something from."""
    try:
        return task_of(file, Path("solution.rs"), function).packages
    except UsageProblem:
        return ()


# ---------------------------------------------------------------- what was said


def of_verdict(verdict: Verdict) -> Score:
    """Read the verdict of cases of which all have to pass; `base` is the case of that name."""
    base = [one for one in verdict.judged if one.case.name == "base"]
    failures = [one for one in verdict.judged if not one.result.passed]
    passed = bool(verdict.judged) and not failures and not verdict.forged and not verdict.problem
    worst = next(iter(failures), None)
    modes = {one.result.mode for one in verdict.judged}
    return Score(
        passed=passed,
        base=base[0].result.passed and not verdict.forged if base else None,
        status=how(verdict, worst, passed),
        mode="in-process" if "in-process" in modes else "split",
        forged=verdict.forged,
        message="" if passed else said(verdict, worst),
        seconds=verdict.seconds,
        limited=any(one.result.status in TIMES for one in failures),
    )


TIMES = ("timeout", "compile-timeout")


def how(verdict: Verdict, worst: Judged | None, passed: bool) -> How:
    """Say in one word how it ended. Raises SandboxTrouble where nothing was judged at all."""
    if verdict.forged:
        return "forged"
    if passed:
        return "passed"
    if worst is None:
        raise SandboxTrouble("The sandbox judged none of the hidden tests.")
    if worst.result.unstable:
        return "unstable"
    status = worst.result.status
    return "error" if status == "skipped" else status


def said(verdict: Verdict, worst: Judged | None) -> str:
    """Say what went wrong: the module's problem, or the first failed test's."""
    if verdict.forged:
        return "a test that cannot hold was said to hold"
    text = verdict.problem or (worst.result.message if worst is not None else "")
    return text.strip()[:SHOWN]


SHOWN = 600
"""How long a score's message may be, in characters."""
