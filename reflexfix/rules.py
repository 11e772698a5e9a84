"""How a run is conducted: what is tried, what the next try is told, and who is believed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from reflexfix.ask import Told
from reflexfix.suite import SuiteRules

Restart = Literal["never", "stuck", "always", "auto"]
"""When a try is written without the old code in sight: after two lessons in turn that did nothing
(`stuck`), each time, or (`auto`) each time for a stub and when stuck for a repair, where the old
code says what is wanted."""


@dataclass(frozen=True)
class Rules:
    """How a run is conducted."""

    trials: int = 4
    """All attempts, the first one included."""
    told: Told = "both"
    """What the next try is told of a failure."""
    restart: Restart = "auto"
    agreement: bool = True
    """Where only own tests fail, ask for independent answers, and believe what they do alike."""
    differences: bool = True
    """Say in words how the value that came differs from the one that was expected."""
    more_tests: bool = True
    """Ask once for tests that notice a wrong version, where those that there are do not."""
    last: bool = False
    """The last attempt is the answer, as in the paper, and not the best."""
    mutants: int = 6
    """How many wrong versions of an answer that passes are tried, until one is noticed; 0: none."""
    test: bool = True
    suite: SuiteRules = field(default_factory=SuiteRules)

    @property
    def reflect(self) -> bool:
        return self.told in ("lesson", "both")


@dataclass(frozen=True)
class Stopped:
    """The loop ended before its trials were used up, and why."""

    why: str
