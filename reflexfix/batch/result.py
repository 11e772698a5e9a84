"""What one arm made of one problem: the line that a batch keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from reflexfix.attempt import SOLVED
from reflexfix.scoring import Score


@dataclass(frozen=True)
class PostHoc:
    """An answer that was judged by the hidden tests after the final one: it decides nothing."""

    number: int
    """The trial whose best so far it was, or the sample's number."""
    passed: bool


@dataclass(frozen=True)
class Tokens:
    """Tokens as the endpoint counts them; recorded answers count as if they were new."""

    prompt: int = 0
    answer: int = 0

    @property
    def all(self) -> int:
        return self.prompt + self.answer


@dataclass(frozen=True)
class Result:
    """One task in one arm. With `trouble` nothing is said of the task: it has to run again."""

    id: str
    arm: str
    language: str
    label: str = "failed"
    score: Score | None = None
    """What the hidden tests said of the final answer, in their one run."""
    trouble: str = ""
    """ "model" or "sandbox", where there is no verdict."""
    message: str = ""
    suite: Mapping[str, Any] = field(default_factory=dict)
    """The tests that the loop went by, as shown, with their origin, and those dropped."""
    accepts: bool | None = None
    """Whether those tests let the reference solution pass; looked at after scoring."""
    attempts: tuple[Mapping[str, Any], ...] = ()
    best: int | None = None
    """The number of the attempt that is the answer."""
    lessons: tuple[Mapping[str, Any], ...] = ()
    stopped: str = ""
    answer: str = ""
    """sha256 of the final file."""
    tokens: Tokens = field(default_factory=Tokens)
    seconds: float = 0.0
    model_seconds: float = 0.0
    sandbox_seconds: float = 0.0
    """Time that an evaluation took of the task's, scoring included."""
    post_hoc: tuple[PostHoc, ...] = ()
    samples: tuple[PostHoc, ...] = ()
    """Independent samples, judged for pass@k."""
    notes: tuple[str, ...] = ()

    @property
    def is_bare(self) -> bool:
        """Whether it was kept without its texts: counts stand in the place of tests."""
        return "own" in self.suite

    @property
    def passed(self) -> bool:
        return self.score is not None and self.score.passed

    @property
    def claims(self) -> bool:
        """Whether the loop took its answer to be right."""
        return self.label in SOLVED

    @property
    def limited(self) -> bool:
        """Whether a verdict in it turned on a limit of time."""
        statuses = (r["status"] for a in self.attempts for r in a["verdict"]["results"])
        late = any(status.endswith("timeout") for status in statuses)
        return late or (self.score is not None and self.score.limited)

    def record(self) -> dict[str, Any]:
        return asdict(self)


def read_result(data: Mapping[str, Any]) -> Result:
    """Read a line that was kept. Raises TypeError or LookupError for one of another form."""
    known = dict(data)
    known["score"] = Score(**known["score"]) if known["score"] else None
    known["tokens"] = Tokens(**known["tokens"])
    for name in ("post_hoc", "samples"):
        known[name] = tuple(PostHoc(**one) for one in known[name])
    for name in ("attempts", "lessons", "notes"):
        known[name] = tuple(known[name])
    return Result(**known)
