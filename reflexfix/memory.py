"""What was learned in this run: lessons, their outcome, and the few that are in sight."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Outcome = Literal["unknown", "helped", "no change", "hurt"]


@dataclass(frozen=True)
class Lesson:
    """One reflection: what a failure taught."""

    text: str
    task: str
    """Id of the task, a hash of its text."""
    attempt: int
    """The attempt whose failure it was written on; 0 for a user's own hint."""
    model: str
    time: str
    """When it was written, in UTC, ISO 8601."""
    id: str = field(default_factory=lambda: secrets.token_hex(4))
    outcome: Outcome = "unknown"
    closed: str = ""
    """Why it is no longer in sight; "" while it is."""
    hint: bool = False
    """Given by the user: always in sight, never retracted."""


@dataclass
class Memory:
    """The lessons of one run; at most `window` of them are in sight, besides the user's hints."""

    window: int = 1
    lessons: list[Lesson] = field(default_factory=list)

    def in_sight(self) -> list[Lesson]:
        """List what the next try is conditioned on, the oldest first."""
        return [lesson for lesson in self.lessons if not lesson.closed]

    def knows(self, text: str) -> bool:
        """Say whether a lesson says what an earlier one said, case, space and numbers aside."""
        return plain(text) in {plain(lesson.text) for lesson in self.lessons}

    def add(self, lesson: Lesson) -> None:
        """Take in a lesson; the oldest one that no longer fits the window is closed, with why."""
        self.lessons.append(lesson)
        open_ones = [old for old in self.in_sight() if not old.hint]
        for old in open_ones[: max(0, len(open_ones) - self.window)]:
            self._change(old, closed=f"left the window of {self.window}")

    def weigh(self, used: Sequence[str], before: tuple[int, ...], after: tuple[int, ...]) -> None:
        """Say of the lessons that an attempt used what its tests said, against the best before.

        A lesson that hurt is retracted.
        """
        outcome: Outcome = "helped" if after > before else "hurt" if after < before else "no change"
        for lesson in list(self.lessons):
            if lesson.id in used and not lesson.hint and lesson.outcome == "unknown":
                closed = "retracted: it hurt" if outcome == "hurt" else lesson.closed
                self._change(lesson, outcome=outcome, closed=closed)

    def useless(self) -> int:
        """Count the latest lessons that did nothing one after the other, as far as is known."""
        outcomes = [one.outcome for one in self.lessons if one.outcome != "unknown"]
        after = outcomes[::-1]
        return after.index("helped") if "helped" in after else len(after)

    def _change(self, lesson: Lesson, outcome: Outcome | None = None, closed: str = "") -> None:
        changed = replace(lesson, outcome=outcome or lesson.outcome, closed=closed)
        self.lessons[self.lessons.index(lesson)] = changed


def plain(text: str) -> str:
    """Reduce a lesson to what it says: lower case, single spaces, no numbers."""
    return " ".join(re.sub(r"[\d\W_]+", " ", text.lower()).split())
