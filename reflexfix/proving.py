"""What a pass proves: whether tests notice wrong versions of the answer; if not, more tests.

Mutants that survive are what a test writer is shown, as in MuTAP (Dakhel et al., 2023,
arXiv:2308.16557); the mutants themselves are those of `mutation`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from reflexfix import mutation
from reflexfix import suite as suites
from reflexfix.agreement import Aside, got
from reflexfix.ask import Ask
from reflexfix.attempt import Attempt, Case, Sandbox, Suite, Verdict
from reflexfix.mutation import Gate
from reflexfix.rules import Rules
from reflexfix.suite import SuiteReport

SHOWN = 3
"""How many wrong versions a model is shown."""


@dataclass
class Proof:
    """An answer that passes its tests, and what they are found to be worth."""

    ask: Ask
    sandbox: Sandbox
    rules: Rules
    best: Attempt
    suite: Suite
    """The tests that count."""
    gate: Gate | None = None
    more: tuple[Case, ...] = ()
    """Tests that joined the suite."""

    def events(self) -> Iterator[Gate | SuiteReport | Aside]:
        """Try the tests on wrong versions; where none is noticed, ask once for tests that do.

        A new test joins the others if the answer passes it. One that it fails speaks against the
        test or the answer, and nobody can say against which: then the answer stays weakly proved.
        Raises ModelTrouble, BudgetSpent, SandboxTrouble.
        """
        self.gate = self._gate()
        yield self.gate
        if self.gate.holds or not (self.rules.more_tests and self.rules.suite.own):
            return
        report = self._more()
        yield report
        verdict = self._judge(report.suite)
        against = tuple(
            Aside(one.case, f"the answer gives {got(one.result.actual)}: one of them is wrong")
            for one in verdict.failures
        )
        yield from against
        if against or not verdict.solved:
            return
        self.more = report.suite.cases
        self.suite = replace(self.suite, cases=(*self.suite.cases, *self.more))
        judged = (*self.best.verdict.judged, *verdict.judged)
        self.best = replace(self.best, verdict=replace(self.best.verdict, judged=judged))
        self.gate = self._gate()
        yield self.gate

    def _gate(self) -> Gate:
        task, most = self.ask.task, self.rules.mutants
        return mutation.gate(task, self.sandbox, self.suite, self.best.file, most)

    def _more(self) -> SuiteReport:
        assert self.gate is not None
        shown = (changed(self.best.file, one) for one in self.gate.survivors[:SHOWN])
        versions = "\n\n".join(f"{n}. {text}" for n, text in enumerate(shown, 1))
        answer = self.ask.tell_apart(self.best, versions)
        return suites.more(self.ask.task, self.rules.suite, self.suite, answer, self.sandbox)

    def _judge(self, suite: Suite) -> Verdict:
        if suite.empty:
            return Verdict()
        return self.sandbox.run(self.ask.task.candidate(self.best.file), suite)


def changed(file: bytes, mutant: bytes) -> str:
    """Say which lines of a file a wrong version changes."""
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (file, mutant))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    lines = []
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind != "equal":
            lines += [f"instead of: {line.strip()}" for line in old[i:j]]
            lines += [f"this: {line.strip()}" for line in new[k:m]] or ["nothing"]
    return "\n".join(lines)
