"""The rival of reflection: fresh samples of the first question, chosen by the same tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from reflexfix import suite as suites
from reflexfix.loop import Event, Run
from reflexfix.rules import Stopped


@dataclass
class Resample(Run):
    """Asks for bodies until the tokens are used up or one passes; the best one is the answer.

    The suite is asked for as the loop asks for it, so that both are judged by the same tests.
    """

    tokens: int = 0
    """Prompt and answer tokens that may be used; the answer on the way is finished."""
    spent: Callable[[], int] = lambda: 0

    def events(self) -> Iterator[Event]:
        """Sample, yielding all that happens; `best` is the answer.

        Raises ModelTrouble, BudgetSpent, SandboxTrouble; `best` keeps what there was.
        """
        report = suites.write(self.ask, self.rules.suite, self.user, self.sandbox)
        self.suite = report.suite
        yield report
        number = 0
        while number == 0 or self.spent() < self.tokens:
            number += 1
            attempt = self._attempt(number, self.ask.warmer(number).implement(self.memory))
            yield attempt
            self._weigh(attempt)
            if attempt.verdict.solved:
                return
            if report.suite.empty:
                yield Stopped("no usable test was written: nothing can be chosen by")
                return
