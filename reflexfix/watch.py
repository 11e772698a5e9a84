"""What is noticed while a run goes on: that it goes in circles, or that an example may be wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from reflexfix.attempt import Attempt

DOUBTERS = 3
"""How many different answers have to fail one example alike before it is doubted."""


@dataclass
class Watch:
    """Notices that a run goes in circles, or that an example may be wrong."""

    last: str = ""
    warm: bool = False
    """The temperature was raised, which is done once."""
    doubted: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """For each way in which one example alone failed: the answers that did."""

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
        doubters = self.doubted.setdefault(way, set())
        doubters.add(attempt.code)
        if len(doubters) < DOUBTERS:
            return ""
        return (
            f"{DOUBTERS} different answers fail only this example, in the same way: "
            f"{one.case.shown}: "
            "the example may be wrong (--distrust-examples counts examples like own tests)"
        )
