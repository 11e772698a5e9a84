"""The score: what hidden tests say of a file, and what they may not be talked into."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reflexfix import assemble
from reflexfix.attempt import Candidate, Case, Judged, Limits, Result, Suite, Values, Verdict
from reflexfix.benchmarks.problem import Inputs, Problem, Program
from reflexfix.containers.engine import Engine
from reflexfix.errors import SandboxTrouble
from reflexfix.python.hidden import mode_of
from reflexfix.python.task import PythonTask
from reflexfix.scoring import Sandboxes, of_verdict, score
from reflexfix.task import task_of

SOURCE = 'def add(first, second):\n    """Add two numbers."""\n'
RIGHT = "def add(first, second):\n    return first + second\n"
WRONG = "def add(first, second):\n    return first - second\n"
CHECK = "def check(candidate):\n    assert candidate(1, 2) == 3\n\ncheck(add)\n"
INPUTS = Inputs(("(1, 2)", "(0.1, 0.2)", "([1], [2])"))
PROGRAM = Problem("add", "python", SOURCE, "add", Program(CHECK), solution=RIGHT)
COMPARED = replace(PROGRAM, hidden=INPUTS, base=Inputs(("(1, 2)",)))


class Scripted:
    """A sandbox that keeps what it is asked, and says what it is told to."""

    def __init__(self, **results: str) -> None:
        self.statuses = results
        self.suites: list[Suite] = []
        self.asked: list[str] = []
        self.trouble = False
        self.problem = ""

    def run(self, candidate: Candidate, suite: Suite) -> Verdict:
        if self.trouble:
            raise SandboxTrouble("the engine is away")
        self.suites.append(suite)
        results = [
            Judged(c, Result(c.name, self.statuses.get(c.name, "passed"), c.mode))  # type: ignore[arg-type]
            for c in suite.cases
        ]
        return Verdict(tuple(results), control="held")

    def values(self, candidate: Candidate, source: str) -> Values:
        self.asked.append(source)
        return Values("" if self.problem else "gASVBAAAAAAAAABdlC4=", self.problem, 0.5)

    def missing(self, modules: tuple[str, ...]) -> tuple[str, ...]:
        return ()


class Opened:
    """Opens scripted sandboxes and keeps with what limits."""

    def __init__(self, sandbox: Scripted) -> None:
        self.sandbox = sandbox
        self.calls: list[tuple[str, tuple[str, ...], float]] = []

    @contextlib.contextmanager
    def __call__(self, language: str, packages: tuple[str, ...], limits: Limits) -> Iterator[Any]:
        self.calls.append((language, packages, limits.test_seconds))
        yield self.sandbox


def scripted(**results: str) -> tuple[Sandboxes, Scripted, Opened]:
    sandbox = Scripted(**results)
    opened = Opened(sandbox)
    return Sandboxes(opened), sandbox, opened


def task_for(problem: Problem) -> PythonTask:
    task = task_of(problem.source.encode(), Path("solution.py"), problem.function)
    assert isinstance(task, PythonTask)
    return task


# ---------------------------------------------------------------- what is asked


def test_trouble_of_the_sandbox_is_never_a_score() -> None:
    sandboxes, sandbox, _ = scripted()
    sandbox.trouble = True
    with sandboxes, pytest.raises(SandboxTrouble):
        score(PROGRAM, RIGHT.encode(), sandboxes)


def test_an_answer_is_not_scored_without_a_control() -> None:
    sandboxes, sandbox, _ = scripted()
    with sandboxes:
        score(PROGRAM, RIGHT.encode(), sandboxes)
    (suite,) = sandbox.suites
    assert suite.control is not None and suite.control_value in suite.control.source


def test_the_reference_is_asked_once_for_all_answers() -> None:
    sandboxes, sandbox, _ = scripted()
    with sandboxes:
        score(COMPARED, RIGHT.encode(), sandboxes)
        score(COMPARED, WRONG.encode(), sandboxes)
    assert len(sandbox.asked) == 2  # base and hidden
    assert len(sandbox.suites) == 2


def test_a_reference_that_gives_no_values_is_no_failed_answer() -> None:
    sandboxes, sandbox, _ = scripted()
    sandbox.problem = "ValueError: math domain error"
    with sandboxes:
        found = score(COMPARED, RIGHT.encode(), sandboxes)
    assert found.status == "no-reference" and "math domain" in found.message
    assert sandbox.suites == []


def test_a_slow_reference_gives_its_answers_four_times_its_time() -> None:
    sandboxes, sandbox, opened = scripted()
    sandbox.values = lambda candidate, source: Values("gASVBAAAAAAAAABdlC4=", "", 5.0)  # type: ignore[method-assign]
    with sandboxes:
        score(COMPARED, RIGHT.encode(), sandboxes)
    assert opened.calls[-1][2] >= 20


def test_one_sandbox_serves_all_problems_with_the_same_needs() -> None:
    sandboxes, _, opened = scripted()
    with sandboxes:
        for seconds in (1.0, 10.0, 10.0):
            score(replace(PROGRAM, seconds=seconds), RIGHT.encode(), sandboxes)
        score(replace(PROGRAM, packages=("numpy",)), RIGHT.encode(), sandboxes)
    assert [call[:2] for call in opened.calls] == [("python", ()), ("python", ("numpy",))]


def test_the_first_tests_are_a_score_of_their_own() -> None:
    sandboxes, _, _ = scripted(hidden="failed")
    with sandboxes:
        found = score(COMPARED, WRONG.encode(), sandboxes)
    assert (found.passed, found.base, found.status) == (False, True, "failed")
    sandboxes, _, _ = scripted(base="failed")
    with sandboxes:
        found = score(COMPARED, WRONG.encode(), sandboxes)
    assert (found.passed, found.base) == (False, False)


def test_a_row_that_adds_no_inputs_is_scored_by_the_first_ones() -> None:
    sandboxes, sandbox, _ = scripted()
    with sandboxes:
        found = score(replace(COMPARED, hidden=Inputs(())), RIGHT.encode(), sandboxes)
    assert found.passed and found.base
    assert [case.name for case in sandbox.suites[0].cases] == ["base"]


def test_rust_tests_that_need_a_crate_are_not_run() -> None:
    sandboxes, sandbox, _ = scripted()
    source = "fn half(n: i32) -> i32 {\n    todo!()\n}\n"
    tests = "#[test]\nfn t() {\n    assert_eq!(half(rand::random()), 3);\n}\n"
    problem = Problem("half", "rust", source, "half", Program(tests), packages=("rand",))
    with sandboxes:
        found = score(problem, source.encode(), sandboxes)
    assert found.status == "needs crate" and not sandbox.suites


# ---------------------------------------------------------------- what is said


def judged(status: str, **more: Any) -> Verdict:
    case = Case("hidden", "", "hidden", "user")
    return Verdict((Judged(case, Result("hidden", status, **more)),), control="held")  # type: ignore[arg-type]


def test_a_verdict_of_nothing_is_trouble() -> None:
    with pytest.raises(SandboxTrouble):
        of_verdict(Verdict())


def test_an_unstable_answer_has_not_passed() -> None:
    found = of_verdict(judged("failed", unstable=True))
    assert (found.passed, found.status) == (False, "unstable")


def test_a_forged_verdict_has_not_passed() -> None:
    found = of_verdict(replace(judged("passed"), control="forged"))
    assert (found.passed, found.forged, found.status) == (False, True, "forged")


def test_a_time_limit_that_decided_is_told() -> None:
    assert of_verdict(judged("timeout")).limited
    assert not of_verdict(judged("failed")).limited


# ---------------------------------------------------------------- where it runs


@pytest.mark.parametrize(
    ("tests", "mode"),
    [
        (CHECK, "split"),
        ("import random\nfor _ in range(9):\n    assert add(random.random(), 0) >= 0\n", "split"),
        ("class Node:\n    pass\n\nassert add(Node(), 1)\n", "in-process"),
        (
            "def check(candidate):\n    assert candidate(lambda n: n, 1)\n\ncheck(add)\n",
            "in-process",
        ),
    ],
)
def test_the_mode_is_decided_before_any_answer_is_there(tests: str, mode: str) -> None:
    assert mode_of(tests, task_for(PROGRAM), RIGHT)[0] == mode


def test_a_generator_is_tested_where_it_lives() -> None:
    solution = "def add(first, second):\n    yield first + second\n"
    assert (
        mode_of("assert list(add(1, 2)) == [3]\n", task_for(PROGRAM), solution)[0] == "in-process"
    )


# ---------------------------------------------------------------- in containers


@pytest.fixture(scope="module")
def real(engine: Engine) -> Iterator[Sandboxes]:
    def opened(language: str, packages: tuple[str, ...], limits: Limits) -> Any:
        return assemble.sandbox(limits, packages, print, 1, language)

    with Sandboxes(opened, Limits(test_seconds=5.0)) as sandboxes:
        yield sandboxes


@pytest.mark.container
def test_right_passes_and_wrong_fails(real: Sandboxes) -> None:
    right, wrong = (score(PROGRAM, file.encode(), real) for file in (RIGHT, WRONG))
    assert right.passed and right.mode == "split" and not right.forged
    assert not wrong.passed and wrong.status == "failed" and "expected 3" in wrong.message


@pytest.mark.container
@pytest.mark.parametrize(
    "body",
    [
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "raise SystemExit",
        "import os; os.kill(os.getppid(), 9); return 0",
        "class Any:\n        __eq__ = lambda *_: True\n    return Any()",
        "class Int(int):\n        __eq__ = lambda *_: True\n    return Int(5)",
        "global check\n    check = print\n    return 0",
        "import sys; sys.modules['builtins'].AssertionError = ValueError; return 0",
    ],
)
@pytest.mark.parametrize("mode", ["split", "in-process"])
def test_an_answer_that_leaves_early_or_pretends_has_not_passed(
    real: Sandboxes, body: str, mode: str
) -> None:
    tests = CHECK if mode == "split" else "class Here:\n    pass\n\n" + CHECK
    answer = f"def add(first, second):\n    {body}\n"
    found = score(replace(PROGRAM, hidden=Program(tests)), answer.encode(), real)
    assert found.mode == mode and not found.passed
    assert found.forged is ("__eq__" in body and mode == "in-process")


@pytest.mark.container
def test_a_program_in_one_process_that_raises_again_does_not_pass(real: Sandboxes) -> None:
    tests = (
        "class Here:\n    pass\n\ntry:\n    assert add(1, 2) == 3\n"
        "except AssertionError:\n    raise\n"
    )
    assert not score(replace(PROGRAM, hidden=Program(tests)), WRONG.encode(), real).passed


@pytest.mark.container
def test_an_endless_answer_is_decided_by_the_time_limit(real: Sandboxes) -> None:
    answer = "def add(first, second):\n    while True: pass\n"
    found = score(PROGRAM, answer.encode(), real)
    assert (found.passed, found.status, found.limited) == (False, "timeout", True)


@pytest.mark.container
def test_an_answer_that_does_not_load_has_not_passed(real: Sandboxes) -> None:
    found = score(PROGRAM, b"def add(first, second):\n    return (\n", real)
    assert not found.passed and found.status == "error" and "does not load" in found.message


@pytest.mark.container
def test_tests_use_names_of_the_prompt_and_the_answer_by_its_own(real: Sandboxes) -> None:
    source = "def twice(n):\n    return 2 * n\n\n\ndef add(first, second):\n    ...\n"
    tests = "def check(f):\n    assert f(1, 2) == add(2, 1) == twice(1) + 1\n\ncheck(add)\n"
    problem = replace(PROGRAM, source=source, hidden=Program(tests))
    assert score(problem, RIGHT.encode(), real).passed


@pytest.mark.container
def test_values_are_compared_with_those_of_the_reference(real: Sandboxes) -> None:
    right = score(COMPARED, RIGHT.encode(), real)
    assert right.passed and right.base and right.mode == "split"
    near = RIGHT.replace("first + second", "first + second + (1e-9 if first == 0.1 else 0 * first)")
    far = RIGHT.replace("first + second", "first + second + (1e-3 if first == 0.1 else 0)")
    numbers = replace(COMPARED, hidden=Inputs(("(1, 2)", "(0.1, 0.2)")))
    assert score(numbers, near.encode(), real).passed
    found = score(numbers, far.encode(), real)
    assert (found.passed, found.base) == (False, True) and "expected 0.3" in found.message
    loose = replace(numbers, hidden=replace(numbers.hidden, tolerance=0.01))  # type: ignore[type-var]
    assert score(loose, far.encode(), real).passed


@pytest.mark.container
def test_an_answer_that_changes_its_arguments_changes_no_input(real: Sandboxes) -> None:
    solution = "def add(first, second):\n    first += second\n    return first\n"
    problem = replace(COMPARED, hidden=Inputs(("([1], [2])",) * 2), solution=solution)
    assert score(problem, solution.encode(), real).passed


@pytest.mark.container
def test_values_are_looked_at_as_the_row_asks(real: Sandboxes) -> None:
    hidden = Inputs(("([1], [2])",), view="set(value)")
    other = "def add(first, second):\n    return (*second, *first)\n"
    sets = replace(COMPARED, base=None, hidden=hidden)
    lists = replace(sets, hidden=replace(hidden, view="value"))
    assert score(sets, other.encode(), real).passed
    assert not score(lists, other.encode(), real).passed


@pytest.mark.container
def test_values_too_large_to_be_kept_are_asked_for_again(real: Sandboxes) -> None:
    hidden = Inputs(("('x' * 5_000_000, 'y')",) * 2)
    assert score(replace(COMPARED, hidden=hidden), RIGHT.encode(), real).passed
    wrong = "def add(first, second):\n    return first\n"
    assert not score(replace(COMPARED, hidden=hidden), wrong.encode(), real).passed


@pytest.mark.container
def test_a_reference_that_raises_is_named(real: Sandboxes) -> None:
    hidden = Inputs(("(1, None)",))
    found = score(replace(COMPARED, hidden=hidden), RIGHT.encode(), real)
    assert found.status == "no-reference" and "TypeError" in found.message


RUST = Problem(
    "half",
    "rust",
    "/// Halve.\nfn half(n: i32) -> i32 {\n    todo!()\n}\n",
    "half",
    Program("fn main() {\n    let candidate = half;\n    assert_eq!(candidate(6), 3);\n}\n"),
)


@pytest.mark.container
def test_rust_answers_are_judged_by_the_items_of_the_tests(real: Sandboxes) -> None:
    right = score(RUST, b"fn half(n: i32) -> i32 {\n    n / 2\n}\n", real)
    assert right.passed and right.mode == "split"
    wrong = score(RUST, b"fn half(n: i32) -> i32 {\n    n / 3\n}\n", real)
    assert wrong.status == "failed" and not wrong.passed
    broken = score(RUST, b"fn half(n: i32) -> i32 {\n    n.x()\n}\n", real)
    assert broken.status == "compile-error"


@pytest.mark.container
def test_a_rust_answer_that_needs_a_crate_says_so(real: Sandboxes) -> None:
    answer = b"use regex::Regex;\nfn half(n: i32) -> i32 {\n    n / 2\n}\n"
    assert score(RUST, answer, real).status == "needs crate"


@pytest.mark.container
def test_a_rust_answer_that_ends_the_process_has_not_passed(real: Sandboxes) -> None:
    answer = b"fn half(_n: i32) -> i32 {\n    std::process::exit(0)\n}\n"
    assert not score(RUST, answer, real).passed
