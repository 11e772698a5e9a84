"""One problem through its arms: the loop first, then the hidden tests, and each only once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from reflexfix import resampling, runlog, scoring, solving
from reflexfix.agreement import Aside
from reflexfix.assemble import Models
from reflexfix.attempt import Attempt, Sandbox
from reflexfix.batch.arms import Arm
from reflexfix.batch.result import PostHoc, Result, Tokens
from reflexfix.benchmarks.formats import path_of
from reflexfix.benchmarks.problem import Problem
from reflexfix.errors import BudgetSpent, ModelTrouble, SandboxTrouble
from reflexfix.loop import Run, chosen
from reflexfix.memory import Lesson, Memory
from reflexfix.model import Answer, Budget, Request
from reflexfix.scoring import Sandboxes
from reflexfix.suite import SuiteReport
from reflexfix.task import Task, task_of


@dataclass(frozen=True)
class After:
    """What is looked at after the final score, and decides nothing."""

    attempts: bool = False
    """Judge each trial's best so far by the hidden tests."""
    suites: bool = True
    """See whether the reference solution passes the loop's own suite."""
    samples: int = 0
    """Independent samples a task for pass@k."""


@dataclass(frozen=True)
class Bench:
    """What all workers share."""

    models: Models
    sandboxes: Sandboxes
    budget: Budget
    after: After = After()


@dataclass
class Story:
    """Keeps the story of one run in memory, and counts what its answers cost."""

    suites: dict[str, Any] = field(default_factory=dict)
    asides: list[dict[str, str]] = field(default_factory=list)
    gate: dict[str, Any] | None = None
    attempts: list[Attempt] = field(default_factory=list)
    tokens: Tokens = field(default_factory=Tokens)
    model_seconds: float = 0.0

    def answer(self, request: Request, answer: Answer) -> None:
        used = (answer.prompt_tokens, answer.answer_tokens)
        self.tokens = Tokens(self.tokens.prompt + used[0], self.tokens.answer + used[1])
        self.model_seconds += answer.seconds

    def suite(self, report: SuiteReport) -> None:
        cases = [{"origin": c.origin, "shown": c.shown, "mode": c.mode} for c in report.suite.cases]
        dropped = [{"shown": d.shown, "reason": d.reason} for d in report.dropped]
        more: dict[str, Any] = {"cases": cases, "dropped": dropped, "written": report.written}
        before = self.suites if report.further else {}
        self.suites = {key: before[key] + more[key] if before else more[key] for key in more}

    def attempt(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def aside(self, aside: Aside) -> None:
        self.asides.append({"shown": aside.case.shown, "reason": aside.why})

    def lesson(self, lesson: Lesson) -> None:
        """Lessons are read from the memory at the end, with their outcome."""

    def write(self, kind: str, **record: Any) -> None:
        """Keep what the mutants told; what else happens is in the outcome."""
        if kind == "gate":
            self.gate = record


def work(
    problem: Problem, arms: tuple[Arm, ...], bench: Bench, known: Mapping[str, Result]
) -> Iterator[Result]:
    """Run the arms that have no result yet; trouble with one of them is its result.

    Raises BudgetSpent when the batch may not ask any more: then nothing is said of the task.
    """
    done = dict(known)
    for arm in arms:
        if arm.name not in done:
            done[arm.name] = result = run_arm(problem, arm, bench, done)
            yield result


def run_arm(problem: Problem, arm: Arm, bench: Bench, done: Mapping[str, Result]) -> Result:
    """Come to an answer, then have it scored. Raises BudgetSpent."""
    blank = Result(problem.id, arm.name, problem.language, notes=problem.notes)
    if arm.resample and arm.tokens is None and (trouble := done["reflexion"].trouble):
        return replace(blank, trouble=trouble, message="the arm reflexion has no result here")
    started = time.monotonic()
    try:
        result = attempt_arm(problem, arm, bench, done, blank)
    except BudgetSpent:
        raise
    except ModelTrouble as error:
        result = replace(blank, trouble="model", message=error.message)
    except SandboxTrouble as error:
        result = replace(blank, trouble="sandbox", message=error.message)
    return replace(result, seconds=round(time.monotonic() - started, 3))


def attempt_arm(
    problem: Problem, arm: Arm, bench: Bench, done: Mapping[str, Result], blank: Result
) -> Result:
    task = task_of(problem.source.encode(), path_of(problem), problem.function)
    sandbox = bench.sandboxes.get(problem.language, problem.packages, 0)
    story = Story()
    run = prepared(problem, task, arm, bench, sandbox, story, done)
    outcome = solving.Outcome("failed", run)
    for _ in solving.solve(run, story, bench.budget, outcome):
        pass
    bench.budget.left(1)  # a run that the budget cut short is no run
    final = outcome.file
    score = scoring.score(problem, final, bench.sandboxes)
    judged = sum(attempt.verdict.seconds for attempt in story.attempts)
    result = replace(
        blank,
        label=outcome.label,
        score=score,
        suite={**story.suites, "aside": story.asides, "gate": story.gate},
        attempts=tuple(runlog.attempt_record(attempt) for attempt in story.attempts),
        best=run.best.number if run.best else None,
        lessons=tuple(lesson_record(lesson) for lesson in run.memory.lessons),
        stopped=outcome.stopped,
        answer=sha256(final).hexdigest(),
        tokens=story.tokens,
        model_seconds=round(story.model_seconds, 3),
        sandbox_seconds=round(judged + score.seconds, 3),
    )
    return looked_at(result, problem, task, run, story, bench)


def prepared(
    problem: Problem,
    task: Task,
    arm: Arm,
    bench: Bench,
    sandbox: Sandbox,
    story: Story,
    done: Mapping[str, Result],
) -> Run:
    """Make the arm's run ready."""
    rules = arm.settings.rules
    shown = replace(rules.suite, shown=problem.visible)
    settings = replace(arm.settings, rules=replace(rules, suite=shown))
    run = solving.prepare(task, settings, bench.models, sandbox, story, None, None)
    run.ask = replace(run.ask, shown=problem.visible.strip())
    if not arm.resample:
        return run
    tokens = done["reflexion"].tokens.all if arm.tokens is None else arm.tokens
    return resampling.Resample(
        run.ask, sandbox, run.memory, run.rules, start=None, tokens=tokens,
        spent=lambda: story.tokens.all,
    )  # fmt: skip


def lesson_record(lesson: Lesson) -> dict[str, Any]:
    names = ("text", "attempt", "outcome", "closed")
    return {name: getattr(lesson, name) for name in names}


# ---------------------------------------------------------------- after the final score


def looked_at(
    result: Result, problem: Problem, task: Task, run: Run, story: Story, bench: Bench
) -> Result:
    """Add what is only looked at: nothing here can reach a loop, which has ended."""
    if bench.after.suites and problem.solution and not run.suite.empty:
        verdict = run.sandbox.run(task.candidate(problem.solution.encode()), run.suite)
        result = replace(result, accepts=verdict.solved)
    if bench.after.attempts:
        result = replace(result, post_hoc=tuple(each_best(result, problem, run, story, bench)))
    if bench.after.samples and result.arm == "base":
        result = replace(result, samples=tuple(sampled(problem, run, bench)))
    return result


def each_best(
    result: Result, problem: Problem, run: Run, story: Story, bench: Bench
) -> Iterator[PostHoc]:
    """Judge each trial's best so far, each distinct answer once; the final score is not repeated.

    The best so far is chosen as the loop chooses.
    """
    known = {result.answer: result.passed}
    for count, attempt in enumerate(story.attempts, 1):
        best = chosen(story.attempts[:count], run.rules)
        key = sha256(best.file).hexdigest()
        if key not in known:
            known[key] = scoring.score(problem, best.file, bench.sandboxes).passed
        yield PostHoc(attempt.number, known[key])


def sampled(problem: Problem, run: Run, bench: Bench) -> Iterator[PostHoc]:
    """Draw samples of the first question and judge each by the hidden tests."""
    known: dict[bytes, bool] = {}
    for number in range(1, bench.after.samples + 1):
        reading = run.ask.task.read(run.ask.warmer(number).implement(Memory()).text)
        file = reading.file if reading.code else run.ask.task.original
        if file not in known:
            known[file] = scoring.score(problem, file, bench.sandboxes).passed
        yield PostHoc(number, known[file])
