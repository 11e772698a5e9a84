"""Agreement: what several independent answers do alike is believed before a lone own test.

Answers are grouped by what they do on the inputs of the tests, as in CodeT (Chen et al., 2022,
arXiv:2207.10397) and in minimum Bayes risk decoding by execution (Shi et al., 2022,
arXiv:2204.11454). Own tests lend their inputs; whether what they expect is right is what is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reflexfix.attempt import Attempt, Case, Result, Verdict

QUORUM = 2
"""How many independent answers have to do the same before they outweigh an own test."""

Behaviour = tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Aside:
    """An own test that no longer counts, and why."""

    case: Case
    why: str


@dataclass(frozen=True)
class Settled:
    """The answer that others agree with, judged by the tests that are left."""

    attempt: Attempt
    asides: tuple[Aside, ...]
    votes: int


def behaviour(verdict: Verdict) -> Behaviour | None:
    """Say what an answer did on each input; None where that cannot be told.

    Passing a test is having given the value that it expects, so two that pass did the same.
    """
    if verdict.problem or verdict.forged or not verdict.counted:
        return None
    return tuple((j.case.name, j.result.status, value(j.result)) for j in verdict.counted)


def value(result: Result) -> str:
    """Say what came of an input; what a test expects need not be said where that came."""
    return "" if result.passed else result.actual or result.message


def is_sound(verdict: Verdict) -> bool:
    """Whether nothing that is trusted speaks against an answer."""
    return behaviour(verdict) is not None and not any(j.case.trusted for j in verdict.failures)


def votes(attempt: Attempt, tried: Sequence[Attempt]) -> int:
    """Count the independent answers that do the same as this one, itself included."""
    mine = behaviour(attempt.verdict)
    if mine is None:
        return 0
    return sum(other.fresh and behaviour(other.verdict) == mine for other in tried)


def best(tried: Sequence[Attempt]) -> Attempt:
    """Choose by most trusted tests, then by dual agreement, then the first.

    Dual agreement is that of CodeT: how many answers do the same, times how many own tests they
    pass. So a lone answer that own tests speak for is not outvoted by two that pass none.
    """

    def worth(attempt: Attempt) -> tuple[int, int, int, int, int]:
        trusted, own = attempt.verdict.rank()
        agreeing = max(1, votes(attempt, tried))
        return (trusted, agreeing * own, agreeing, own, -attempt.number)

    return max(tried, key=worth)


def settled(tried: Sequence[Attempt]) -> Settled | None:
    """Give the answer that a quorum settles on against own tests, if there is one.

    Nothing trusted may fail with it; the own tests that do are put aside. Answers that crash on
    an input have only shown that nobody thought of it: that outweighs no test.
    """
    chosen = best(tried)
    agreeing = votes(chosen, tried)
    crashes = any(one.result.status != "failed" for one in chosen.verdict.failures)
    if agreeing < QUORUM or crashes or not is_sound(chosen.verdict):
        return None
    asides = tuple(
        Aside(one.case, f"{agreeing} independent answers give {got(one.result.actual)} instead")
        for one in chosen.verdict.failures
    )
    left = chosen.verdict.without({aside.case.name for aside in asides})
    return Settled(replace(chosen, verdict=left), asides, agreeing)


def got(actual: str | None) -> str:
    if actual is None:
        return "something else"
    return actual if len(actual) <= 60 else actual[:57] + "..."
