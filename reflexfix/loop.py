"""The Reflexion loop: write, run, reflect, and again with what was learned.

Algorithm 1 of Shinn et al., "Reflexion: Language Agents with Verbal Reinforcement Learning",
NeurIPS 2023 (arXiv:2303.11366v4), with the best attempt as the answer instead of the last.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from reflexfix import suite as suites
from reflexfix.ask import Ask
from reflexfix.attempt import Attempt, Label, Sandbox, Suite, UserTests, Verdict
from reflexfix.background import in_background
from reflexfix.memory import Lesson, Memory
from reflexfix.model import Answer
from reflexfix.suite import SuiteReport, SuiteRules

WARMER = 0.8
"""The temperature of a try after the same failing answer came twice."""


@dataclass(frozen=True)
class Rules:
    """How a run is conducted."""

    trials: int = 4
    """All attempts, the first one included."""
    reflect: bool = True
    test: bool = True
    suite: SuiteRules = field(default_factory=SuiteRules)


@dataclass(frozen=True)
class Stopped:
    """The loop ended before its trials were used up, and why."""

    why: str


Event = SuiteReport | Attempt | Lesson | Stopped


@dataclass
class Run:
    """One task on its way: what is asked, what judges, what was learned, what is best."""

    ask: Ask
    sandbox: Sandbox
    memory: Memory
    rules: Rules
    user: UserTests | None = None
    start: Attempt | None = None
    """What to start from, not judged yet: the user's own body, or an earlier run's best."""
    best: Attempt | None = None
    suite: Suite = field(default_factory=Suite)

    def events(self) -> Iterator[Event]:
        """Solve the task, yielding all that happens; `best` is the answer.

        Raises ModelTrouble, BudgetSpent, SandboxTrouble; `best` keeps what there was.
        """
        if not self.rules.test:
            yield from self.untested()
            return
        first, report = self._first_body_and_tests()
        self.suite = report.suite
        yield report
        if report.suite.empty:
            self.best = self._attempt(1, first or self.ask.implement(self.memory))
            yield self.best
            yield Stopped("no usable test was written: nothing can be proved")
            return
        yield from self.attempts(first)

    def attempts(self, first: Answer | None) -> Iterator[Event]:
        """Try, run, reflect; the next try is conditioned on the lesson."""
        watch, base = Watch(), None
        if self.start is not None:
            base = self._weigh(replace(self.start, verdict=self._judge(self.start.file)))
            yield base
        for number in range(1, self.rules.trials + 1):
            if base is not None:
                if base.verdict.solved:
                    return
                yield from self._learn(base, watch)
            attempt = self._attempt(number, first or self._next_answer(base, watch), watch)
            first = None
            yield attempt
            base = self._weigh(attempt)
            if number < self.rules.trials and (why := watch.sees(attempt)):
                yield Stopped(why)
                return

    def _learn(self, base: Attempt, watch: Watch) -> Iterator[Lesson]:
        """Turn a failure into a lesson, if there is code to learn from and something new to say."""
        if not (self.rules.reflect and base.code):
            return
        lesson = self._lesson(base)
        if lesson is None:
            watch.warm = True
        else:
            yield lesson

    def untested(self) -> Iterator[Event]:
        """The paper's ablation without tests: the reflector says `done`; the last answer stands."""
        for number in range(1, self.rules.trials + 1):
            base = self.best
            answer = (
                self.ask.improve(base, self.memory) if base else self.ask.implement(self.memory)
            )
            self.best = self._attempt(number, answer)
            yield self.best
            if number == self.rules.trials or not self.best.code:
                return
            lesson = self.ask.reflect(self.best, self.memory)
            if lesson.text.strip("`'\". ").lower().startswith("done"):
                yield Stopped("the reflector takes it to be done")
                return
            self.memory.add(lesson)
            yield lesson

    # ------------------------------------------------------------ steps

    def _first_body_and_tests(self) -> tuple[Answer | None, SuiteReport]:
        """Ask for the first body and for the tests at the same time: neither needs the other."""
        rules, user = self.rules.suite, self.user
        if self.start is not None:
            return None, suites.write(self.ask, rules, user, self.sandbox)
        report = in_background(lambda: suites.write(self.ask, rules, user, self.sandbox))
        first = self.ask.implement(self.memory)
        return first, report.result()

    def _next_answer(self, base: Attempt | None, watch: Watch) -> Answer:
        warmer = WARMER if watch.warm else None
        if base is None:
            return self.ask.implement(self.memory, warmer)
        return self.ask.improve(base, self.memory, warmer)

    def _attempt(self, number: int, answer: Answer, watch: Watch | None = None) -> Attempt:
        """Read an answer, put it into the file, and let the tests judge it."""
        started = time.monotonic()
        reading = self.ask.task.read(answer.text)
        notes = [reading.why] if reading.why and reading.code else []
        if answer.cut_off:
            notes.append("the answer was cut off at its length limit")
        if watch is not None and watch.warm:
            notes.append(f"temperature {WARMER} after the same answer came twice")
        if not reading.code:
            problem = "; ".join([reading.why, *notes])
            verdict, file = Verdict(problem=problem), self.ask.task.original
        else:
            verdict, file = self._judge(reading.file), reading.file
        return Attempt(
            number=number,
            code=reading.code,
            file=file,
            verdict=verdict,
            seconds=answer.seconds + time.monotonic() - started,
            note="; ".join(notes),
            lessons=tuple(lesson.id for lesson in self.memory.in_sight()),
            answer=answer.text,
        )

    def _judge(self, file: bytes) -> Verdict:
        if self.suite.empty:
            return Verdict()
        return self.sandbox.run(self.ask.task.candidate(file), self.suite)

    def _weigh(self, attempt: Attempt) -> Attempt:
        """Keep the best attempt, judge the lessons, and say where the next try starts from.

        A try that is as good as the best is the better start, being the newer one; as the answer
        the earlier one stands.
        """
        before = self.best
        if before is not None:
            self.memory.weigh(attempt.lessons, before.verdict.rank(), attempt.verdict.rank())
        if before is None or attempt.verdict.rank() > before.verdict.rank() or not before.code:
            self.best = attempt
            return attempt
        if attempt.verdict.rank() == before.verdict.rank() and attempt.code:
            return attempt
        return before

    def _lesson(self, attempt: Attempt) -> Lesson | None:
        """Buy one lesson; one that is known already is asked for anew once, then given up."""
        lesson = self.ask.reflect(attempt, self.memory)
        if not lesson.text or self.memory.knows(lesson.text):
            lesson = self.ask.reflect(attempt, self.memory, again=lesson.text)
        if not lesson.text or self.memory.knows(lesson.text):
            return None
        self.memory.add(lesson)
        return lesson


@dataclass
class Watch:
    """Notices that a run goes in circles, or that an example may be wrong."""

    last: str = ""
    warm: bool = False
    """The temperature was raised, which is done once."""
    doubted: dict[tuple[str, str], str] = field(default_factory=dict)
    """For each way in which one example alone failed: the code that did."""

    def sees(self, attempt: Attempt) -> str:
        """Say why it is no use going on; "" when it is."""
        if why := self._doubts(attempt):
            return why
        key = attempt.code or attempt.verdict.problem
        same, self.last = key == self.last, key
        if same and self.warm:
            return "the same failing answer came again, although the temperature was raised"
        self.warm = self.warm or same
        return ""

    def _doubts(self, attempt: Attempt) -> str:
        failures = attempt.verdict.failures
        if len(failures) != 1 or failures[0].case.origin != "example" or attempt.verdict.problem:
            return ""
        one = failures[0]
        way = (one.case.name, one.result.actual or one.result.message)
        before = self.doubted.setdefault(way, attempt.code)
        if before == attempt.code:
            return ""
        return (
            f"two different answers fail only this example, in the same way: {one.case.shown}: "
            "the example may be wrong (--distrust-examples counts examples like own tests)"
        )


def label(run: Run) -> Label:
    """Say what the run's answer is worth; without tests nothing is proved."""
    if run.best is None or not run.rules.test or run.suite.empty:
        return "unproven"
    return run.best.verdict.label()
