"""The Reflexion loop: write, run, reflect, and again with what was learned.

Algorithm 1 of Shinn et al., "Reflexion: Language Agents with Verbal Reinforcement Learning",
NeurIPS 2023 (arXiv:2303.11366v4), with the best attempt as the answer instead of the last, and
with an evaluator that asks whether the test or the code is at fault before anything is learned.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from reflexfix import agreement
from reflexfix import suite as suites
from reflexfix.agreement import Aside
from reflexfix.ask import WARMER, Ask
from reflexfix.attempt import SOLVED, Attempt, Label, Sandbox, Suite, UserTests, Verdict
from reflexfix.background import in_background
from reflexfix.memory import Lesson, Memory
from reflexfix.model import Answer
from reflexfix.mutation import Gate
from reflexfix.proving import Proof
from reflexfix.rules import Rules, Stopped
from reflexfix.suite import SuiteReport
from reflexfix.watch import Watch

Event = SuiteReport | Attempt | Lesson | Aside | Gate | Stopped


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
    tried: list[Attempt] = field(default_factory=list)
    outvoted: bool = False
    """Whether own tests were put aside, so that the answers vouch for each other."""
    gate: Gate | None = None
    """Whether the suite that the answer passes notices wrong versions of it."""

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
        yield from self._prove()

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
            fresh = base is None or self._starts_over(base)
            answer = first or self._next_answer(number, base, fresh, watch)
            attempt = replace(self._attempt(number, answer, watch), fresh=fresh)
            first = None
            yield attempt
            base = self._weigh(attempt)
            if settled := self._settled():
                yield from self._settle(settled)
                return
            if number < self.rules.trials and (why := watch.sees(attempt)):
                yield Stopped(why)
                return

    def _learn(self, base: Attempt, watch: Watch) -> Iterator[Lesson]:
        """Turn a failure into a lesson, if the code is at fault and there is something to say."""
        if not (self.rules.reflect and base.code) or self._is_doubtful(base):
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

    # ------------------------------------------------------------ whose fault

    def _is_doubtful(self, base: Attempt) -> bool:
        """Whether own tests alone speak against an answer, and no other was asked for yet.

        Then the tests may be what is wrong, and an independent answer tells: before that, nothing
        is learned.
        """
        if not self.rules.agreement or not agreement.is_sound(base.verdict):
            return False
        sound = sum(one.fresh and agreement.is_sound(one.verdict) for one in self.tried)
        return sound < agreement.QUORUM

    def _settled(self) -> agreement.Settled | None:
        if not self.rules.agreement or self.rules.last:
            return None
        return agreement.settled(self.tried)

    def _settle(self, settled: agreement.Settled) -> Iterator[Event]:
        """Take the answer that others agree with, and put aside the tests that it fails."""
        self.best, self.outvoted = settled.attempt, bool(settled.asides)
        yield from settled.asides
        if settled.asides:
            yield Stopped(f"{settled.votes} independent answers do the same")

    def _prove(self) -> Iterator[Event]:
        """See whether the suite that an answer passes would have noticed a wrong one."""
        if not self.rules.mutants or self.best is None or not self.best.verdict.solved:
            return
        counted = {one.case.name for one in self.best.verdict.judged}
        aside = {case.name for case in self.suite.cases} - counted
        left = self.suite.without(aside)
        proof = Proof(self.ask, self.sandbox, self.rules, self.best, left)
        try:
            yield from proof.events()
        finally:
            self.best, self.gate = proof.best, proof.gate
            self.suite = replace(self.suite, cases=(*self.suite.cases, *proof.more))

    # ------------------------------------------------------------ steps

    def _first_body_and_tests(self) -> tuple[Answer | None, SuiteReport]:
        """Ask for the first body and for the tests at the same time: neither needs the other."""
        rules, user = self.rules.suite, self.user
        if self.start is not None:
            return None, suites.write(self.ask, rules, user, self.sandbox)
        report = in_background(lambda: suites.write(self.ask, rules, user, self.sandbox))
        first = self.ask.implement(self.memory)
        return first, report.result()

    def _starts_over(self, base: Attempt) -> bool:
        """Whether the next try is written without the old code in sight."""
        restart = self.rules.restart
        if restart == "auto":
            restart = "stuck" if self.start is not None else "always"
        stuck = restart == "stuck" and self.memory.useless() >= 2
        return self._is_doubtful(base) or restart == "always" or stuck

    def _next_answer(self, number: int, base: Attempt | None, fresh: bool, watch: Watch) -> Answer:
        """Ask for the next try: an independent one, a fresh start, or a better version."""
        if base is None:
            return self.ask.implement(self.memory, WARMER if watch.warm else None)
        if self._is_doubtful(base):
            return self.ask.warmer(number).implement(self.memory)
        if fresh:
            return self.ask.warmer(number).anew(base, self.memory)
        return self.ask.improve(base, self.memory, WARMER if watch.warm else None)

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
        the earlier one stands, unless more independent answers agree with another.
        """
        before = self.best
        self.tried.append(attempt)
        self.best = chosen(self.tried, self.rules)
        if before is not None:
            self.memory.weigh(attempt.lessons, before.verdict.rank(), attempt.verdict.rank())
        as_good = before is None or attempt.verdict.rank() >= self.best.verdict.rank()
        return attempt if as_good and attempt.code else self.best

    def _lesson(self, attempt: Attempt) -> Lesson | None:
        """Buy one lesson; one that is known already is asked for anew once, then given up."""
        lesson = self.ask.reflect(attempt, self.memory)
        if not lesson.text or self.memory.knows(lesson.text):
            lesson = self.ask.reflect(attempt, self.memory, again=lesson.text)
        if not lesson.text or self.memory.knows(lesson.text):
            return None
        self.memory.add(lesson)
        return lesson


def chosen(tried: Sequence[Attempt], rules: Rules) -> Attempt:
    """Say which of the attempts so far is the answer."""
    if rules.last or not rules.test:
        return tried[-1]
    coded = [attempt for attempt in tried if attempt.code] or tried[-1:]
    if rules.agreement:
        return agreement.best(coded)
    return max(coded, key=lambda attempt: attempt.verdict.rank())


def label(run: Run) -> Label:
    """Say what the run's answer is worth; without tests nothing is proved."""
    if run.best is None or not run.rules.test or run.suite.empty:
        return "unproven"
    said = run.best.verdict.label()
    if said not in SOLVED:
        return said
    if run.outvoted and not run.best.verdict.trusted_pass:
        return "unproven"
    return said if run.gate is None or run.gate.holds else "weak"
