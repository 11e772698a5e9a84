"""One solve, from a file to a result: prepare, run the loop, keep the artefact."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from reflexfix import runlog
from reflexfix.agreement import Aside
from reflexfix.ask import Ask
from reflexfix.assemble import Models, Say
from reflexfix.attempt import (
    MEANING,
    SOLVED,
    Attempt,
    Label,
    Limits,
    Sandbox,
    Suite,
    TypeChecker,
    UserTests,
    Verdict,
)
from reflexfix.containers import image as images
from reflexfix.containers.sandbox import ContainerSandbox
from reflexfix.errors import BudgetSpent, ReflexfixError, UsageProblem
from reflexfix.loop import Event, Run, label
from reflexfix.memory import Lesson, Memory
from reflexfix.model import Answer, Budget, LoggedModel, Model, Request
from reflexfix.mutation import Gate
from reflexfix.rules import Rules, Stopped
from reflexfix.suite import SuiteReport, trusted_cases
from reflexfix.task import Task


@dataclass(frozen=True)
class Settings:
    """What a solve is asked to do, beside which model and which file."""

    rules: Rules
    limits: Limits
    window: int = 1
    temperature: float = 0.0
    seed: int = 0
    answer_tokens: int = 1024
    context_tokens: int = 2000
    hint: str = ""
    plain: bool = False
    """Ask for the first body by a plain prompt: what an experiment compares with."""


class Log(Protocol):
    """Whatever keeps the story of a run, as `runlog.RunLog` does."""

    def answer(self, request: Request, answer: Answer) -> None: ...
    def suite(self, report: SuiteReport) -> None: ...
    def attempt(self, attempt: Attempt) -> None: ...
    def lesson(self, lesson: Lesson) -> None: ...
    def aside(self, aside: Aside) -> None: ...
    def write(self, kind: str, **record: Any) -> None: ...


@dataclass
class Outcome:
    """What came of a solve."""

    label: Label
    run: Run
    attempts: list[Attempt] = field(default_factory=list)
    stopped: str = ""
    tokens: tuple[int, int] = (0, 0)
    seconds: float = 0.0

    @property
    def solved(self) -> bool:
        return self.label in SOLVED

    @property
    def file(self) -> bytes:
        """The user's file with the best attempt in it; as it was where there is none."""
        return self.run.best.file if self.run.best else self.run.ask.task.original

    @property
    def trials(self) -> int:
        return sum(attempt.number > 0 for attempt in self.attempts)

    def as_json(self, run_folder: Path) -> dict[str, Any]:
        """Give the result with all attempts as one object."""
        task = self.run.ask.task
        return {
            "label": self.label,
            "meaning": MEANING[self.label],
            "solved": self.solved,
            "task": {"id": task.id, "name": task.name, "path": str(task.path)},
            "file": self.file.decode("utf-8", "surrogateescape"),
            "best": self.run.best.number if self.run.best else None,
            "attempts": [runlog.attempt_record(attempt) for attempt in self.attempts],
            "lessons": [asdict(lesson) for lesson in self.run.memory.lessons],
            "stopped": self.stopped,
            "tokens": {"in": self.tokens[0], "out": self.tokens[1]},
            "seconds": round(self.seconds, 3),
            "run": str(run_folder),
        }


# ---------------------------------------------------------------- before the first model call


def need_packages(task: Task, user: UserTests | None, sandbox: ContainerSandbox) -> None:
    """Hold that the image has what the file imports. Raises UsageProblem with the line to add."""
    wanted = tuple(dict.fromkeys([*task.packages, *(user.packages if user else ())]))
    missing = sandbox.missing(wanted)
    if missing:
        remedy = task.remedy(missing)
        raise UsageProblem(
            f"{task.path.name} uses {', '.join(missing)}, which the sandbox does not have.",
            hint=remedy,
        )


def as_it_stands(
    task: Task, user: UserTests | None, sandbox: ContainerSandbox, rules: Rules
) -> Verdict:
    """Judge the file as it is by what the user gave.

    Raises UsageProblem when the user's tests cannot even be loaded.
    """
    suite = Suite(cases=tuple(trusted_cases(task, rules.suite)), user=user)
    verdict = Verdict()
    if not suite.empty:
        verdict = sandbox.run(task.candidate(task.original), suite)
    if suite.empty or verdict.problem:
        hold_together(task, sandbox)
    for one in verdict.judged:
        not_loaded = one.result.status == "error" and one.case.name in (user.paths if user else ())
        if not_loaded and any(sign in one.result.message for sign in _LOADING):
            raise UsageProblem(f"{one.case.name} does not load: {last_line(one.result.message)}")
        uncompiled = one.result.status == "compile-error" and not verdict.problem
        if uncompiled and one.case.origin == "user":
            raise UsageProblem(f"{one.case.name} does not compile: {one.result.message}")
    if user is not None and not any(one.case.origin == "user" for one in verdict.judged):
        raise UsageProblem(f"{', '.join(user.paths)} holds no test that could be run.")
    return verdict


def hold_together(task: Task, sandbox: Sandbox) -> None:
    """Hold that a file compiles but for its target. Raises UsageProblem with what is wrong."""
    if isinstance(sandbox, TypeChecker) and (said := sandbox.broken(task.candidate(task.original))):
        raise UsageProblem(f"{task.path.name} does not compile as it is: {said}")


_LOADING = ("ImportError", "ModuleNotFoundError", "SyntaxError", "cannot import name")


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if any(s in line for s in _LOADING)]
    return (lines or text.splitlines() or [""])[-1].removeprefix("E ").strip()


def own_code(task: Task) -> Attempt:
    """Make the user's own body the attempt to start from."""
    return Attempt(0, task.old_body, task.original, Verdict(), note="your own code")


def earlier(run_folder: Path, task: Task, memory: Memory) -> Attempt | None:
    """Take over the best attempt and the open lessons of an earlier run of the same task.

    Raises UsageProblem when it was about another task.
    """
    records = list(runlog.read(run_folder / runlog.FILE))
    begun = next((r.data for r in records if r.kind == "run"), {})
    if begun.get("task", {}).get("id") != task.id:
        raise UsageProblem(
            f"Run {run_folder.name} was about another task "
            f"({begun.get('task', {}).get('name', '?')}, {begun.get('task', {}).get('id', '?')}); "
            f"this is {task.name}, {task.id}."
        )
    for data in last_known_lessons(records):
        lesson = Lesson(**data)
        if not lesson.closed:
            memory.add(lesson)
    attempts = [r.data for r in records if r.kind == "attempt" and r.data.get("answer")]
    best = max(attempts, key=rank_of, default=None)
    if best is None:
        return None
    reading = task.read(best["answer"])
    note = f"trial {best['number']} of run {run_folder.name}"
    return Attempt(0, reading.code, reading.file, Verdict(), note=note) if reading.code else None


def last_known_lessons(records: list[runlog.Record]) -> list[dict[str, Any]]:
    """Give the lessons with their outcome where the run came to its end."""
    for record in records:
        if record.kind == "end":
            return [dict(lesson) for lesson in record.data.get("lessons", [])]
    return [
        {k: v for k, v in r.data.items() if k not in ("kind", "at")}
        for r in records
        if r.kind == "lesson"
    ]


def rank_of(attempt: Mapping[str, Any]) -> tuple[int, int, int]:
    passed = attempt["verdict"]["passed"]
    return (passed["trusted"], passed["own"], -int(attempt["number"]))


# ---------------------------------------------------------------- the run itself


def prepare(
    task: Task,
    settings: Settings,
    models: Models,
    sandbox: Sandbox,
    log: Log,
    user: UserTests | None,
    continued: Path | None,
) -> Run:
    """Make everything ready for the loop."""
    memory = Memory(settings.window)
    start = earlier(continued, task, memory) if continued else None
    if settings.hint:
        memory.add(Lesson(settings.hint, task.id, 0, "user", "", hint=True))
    if start is None and not task.unfinished:
        start = own_code(task)
    ask = ask_of(task, settings, models, lambda model: LoggedModel(model, log.answer))
    return Run(ask, sandbox, memory, settings.rules, user, start)


def ask_of(
    task: Task, settings: Settings, models: Models, wrapped: Callable[[Model], Model]
) -> Ask:
    """Make what asks about a task as the settings say; each model is wrapped first."""
    return Ask(
        task,
        actor=wrapped(models.actor),
        tester=wrapped(models.tester),
        reflector=wrapped(models.reflector),
        temperature=settings.temperature,
        seed=settings.seed,
        answer_tokens=settings.answer_tokens,
        context_tokens=settings.context_tokens,
        test_count=settings.rules.suite.most_own,
        told=settings.rules.told,
        differences=settings.rules.differences,
        derive=settings.rules.suite.derive,
        plain=settings.plain,
    )


def solve(run: Run, log: Log, budget: Budget, outcome: Outcome) -> Iterator[Event]:
    """Run the loop, yielding its events and filling in the outcome.

    A spent budget ends the run with the best so far; other trouble is logged and raised.
    """
    started = time.monotonic()
    try:
        for event in run.events():
            keep(event, log, outcome)
            yield event
    except BudgetSpent as error:
        stopped = Stopped(error.message)
        keep(stopped, log, outcome)
        yield stopped
    except ReflexfixError as error:
        log.write("trouble", error=type(error).__name__, message=error.message)
        raise
    finally:
        outcome.label = label(run)
        outcome.tokens = (budget.spent_prompt, budget.spent_answer)
        outcome.seconds = time.monotonic() - started
    log.write(
        "end",
        label=outcome.label,
        best=run.best.number if run.best else None,
        trials=outcome.trials,
        lessons=[asdict(lesson) for lesson in run.memory.lessons],
        tokens={"in": outcome.tokens[0], "out": outcome.tokens[1]},
        seconds=round(outcome.seconds, 3),
    )


def keep(event: Event, log: Log, outcome: Outcome) -> None:
    """Write an event to the artefact and take it into the outcome."""
    if isinstance(event, SuiteReport):
        log.suite(event)
    elif isinstance(event, Attempt):
        log.attempt(event)
        outcome.attempts.append(event)
    elif isinstance(event, Lesson):
        log.lesson(event)
    elif isinstance(event, Aside):
        log.aside(event)
    elif isinstance(event, Gate):
        log.write("gate", tried=event.tried, noticed=event.noticed)
    elif isinstance(event, Stopped):
        log.write("stopped", why=event.why)
        outcome.stopped = event.why


def say_first_line(models: Models, sandbox: ContainerSandbox, say: Say) -> dict[str, str]:
    """Name model and sandbox, and what the engine does not hold; give both for the artefact."""
    python, weak = sandbox.weaknesses()
    image = sandbox.image.removeprefix("sha256:")[:12]
    where = f"{sandbox.engine}, Python {python}, image {image}"
    say(f"model: {models.where} · sandbox: {where}")
    for one in weak:
        say(f"warning: on this engine: {one}")
    base = images.base_of(sandbox.engine, sandbox.image)
    return {"model": models.where, "sandbox": where, "image": sandbox.image, "base": base}
