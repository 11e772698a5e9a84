"""The tests that judge: the user's first, then the docstring's examples, then the model's own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from reflexfix.ask import Ask
from reflexfix.attempt import Case, Sandbox, Suite, TypeChecker, UserTests
from reflexfix.model import Answer
from reflexfix.task import Dropped, Task


@dataclass(frozen=True)
class SuiteReport:
    """A suite with the story of how it came about."""

    suite: Suite
    written: int = 0
    """How many own tests the model wrote, kept or not."""
    dropped: tuple[Dropped, ...] = ()
    further: bool = False
    """Whether these are tests that were asked for when others proved little."""

    @property
    def own(self) -> int:
        return sum(case.origin == "own" for case in self.suite.cases)

    @property
    def examples(self) -> int:
        return sum(case.origin == "example" for case in self.suite.cases)


@dataclass(frozen=True)
class SuiteRules:
    """What a suite is made of."""

    own: bool = True
    most_own: int = 6
    distrust_examples: bool = False
    derive: bool = False
    """Have the model work each expected value out, step by step, before it writes the assert."""
    watch: bool = False
    """Tell of a call that fails with which values it ended."""
    shown: str = ""
    """Tests that came with the task, as text: trusted like the docstring's examples."""


def trusted_cases(task: Task, rules: SuiteRules) -> list[Case]:
    """Make cases of the docstring's examples; distrusted ones count like own tests."""
    cases = task.examples()
    if rules.shown:
        shown, _ = task.own_tests(rules.shown, cases)
        cases += [replace(c, name=f"shown {n}", origin="example") for n, c in enumerate(shown, 1)]
    if not rules.distrust_examples:
        return cases
    return [replace(c, origin="own") if c.origin == "example" else c for c in cases]


def build(
    task: Task,
    rules: SuiteRules,
    user: UserTests | None = None,
    answers: Iterable[Answer] = (),
    sandbox: Sandbox | None = None,
) -> SuiteReport:
    """Put a suite together from what the user gave and what the model wrote."""
    examples = trusted_cases(task, rules)
    kept: list[Case] = []
    dropped: list[Dropped] = []
    for answer in answers:
        kept, dropped = task.own_tests(answer.text, examples)
    wrong = ill_typed(task, sandbox, (*examples, *kept))
    dropped += [Dropped(case.shown, wrong[case.name]) for case in (*examples, *kept)
                if case.name in wrong]  # fmt: skip
    examples, kept = ([c for c in some if c.name not in wrong] for some in (examples, kept))
    over = [
        Dropped(case.shown, f"one more than {rules.most_own}") for case in kept[rules.most_own :]
    ]
    cases = (*examples, *kept[: rules.most_own])
    control, value = task.control((*cases, *(user.cases if user else ())))
    suite = Suite(cases, user, control, value, rules.watch)
    return SuiteReport(suite, len(kept) + len(dropped), (*dropped, *over))


def more(
    task: Task, rules: SuiteRules, suite: Suite, answer: Answer, sandbox: Sandbox | None = None
) -> SuiteReport:
    """Build a suite of further own tests alone; those that repeat one of the suite are dropped."""
    kept, dropped = task.own_tests(answer.text, suite.cases)
    wrong = ill_typed(task, sandbox, tuple(kept))
    dropped += [Dropped(case.shown, wrong[case.name]) for case in kept if case.name in wrong]
    fit = [case for case in kept if case.name not in wrong][: rules.most_own]
    cases = tuple(replace(case, name=f"more {n}") for n, case in enumerate(fit, 1))
    report = Suite(cases=cases, control=suite.control, control_value=suite.control_value)
    written = len(kept) + len(dropped) - len(wrong)
    return SuiteReport(report, written, tuple(dropped), further=True)


def ill_typed(task: Task, sandbox: Sandbox | None, cases: tuple[Case, ...]) -> dict[str, str]:
    """Name the cases that do not fit the signature, where the language can tell beforehand."""
    if not isinstance(sandbox, TypeChecker):
        return {}
    return sandbox.type_check(task.candidate(task.original), cases)


def write(
    ask: Ask, rules: SuiteRules, user: UserTests | None = None, sandbox: Sandbox | None = None
) -> SuiteReport:
    """Ask for own tests and build the suite; ask once more if no test at all survived."""
    report = build(ask.task, rules, user, [ask.write_tests()] if rules.own else [], sandbox)
    if report.suite.empty and rules.own:
        report = build(ask.task, rules, user, [ask.write_tests(again=True)], sandbox)
    return report
