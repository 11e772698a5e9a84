"""What a verdict is worth."""

from __future__ import annotations

import pytest

from reflexfix.attempt import Case, Judged, Limits, Origin, Result, Status, Verdict


def judged(origin: Origin, status: Status, **more: object) -> Judged:
    return Judged(Case("c", "", "", origin), Result("c", status, **more))  # type: ignore[arg-type]


def test_zero_cases_are_never_a_pass() -> None:
    assert not Verdict().solved
    assert Verdict().label() == "unproven"


@pytest.mark.parametrize(
    "status",
    ["failed", "error", "timeout", "memory", "output", "no-verdict", "compile-error"],
)
def test_whatever_is_not_passed_is_not_solved(status: Status) -> None:
    verdict = Verdict((judged("own", "passed"), judged("own", status)))
    assert not verdict.solved and verdict.label() == "failed"


def test_a_forged_control_leaves_nothing_counted_as_passed() -> None:
    verdict = Verdict((judged("own", "passed"),) * 4, control="forged")
    assert not verdict.solved and verdict.rank() == (0, 0) and verdict.label() == "failed"


def test_an_unstable_test_is_not_counted() -> None:
    verdict = Verdict((judged("own", "passed"), judged("own", "failed", unstable=True)))
    assert verdict.solved
    assert not Verdict((judged("own", "failed", unstable=True),)).solved


@pytest.mark.parametrize(
    ("origins", "label"),
    [
        (["user"], "verified"),
        (["example"], "likely"),
        (["own"] * 3, "likely"),
        (["own"] * 2, "weak"),
    ],
)
def test_the_label_says_what_the_tests_are_worth(origins: list[Origin], label: str) -> None:
    assert Verdict(tuple(judged(o, "passed") for o in origins)).label() == label


def test_trusted_tests_rank_before_own_ones() -> None:
    trusted = Verdict((judged("example", "passed"), judged("own", "failed")))
    own = Verdict((judged("example", "failed"), *[judged("own", "passed")] * 5))
    assert trusted.rank() > own.rank()


def test_a_longer_test_has_a_longer_evaluation() -> None:
    assert Limits().with_test_seconds(30).total_seconds == 60
    assert Limits().with_test_seconds(1).total_seconds == Limits().total_seconds
