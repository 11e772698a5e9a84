"""Independent answers against own tests: who is believed, and what is put aside."""

from __future__ import annotations

import pytest

from reflexfix import agreement
from reflexfix.attempt import Attempt, Case, Judged, Origin, Result, Verdict

TRUSTED = Case("example 1", "assert f(1) == 2", "assert f(1) == 2", "example")
OWN = tuple(Case(f"own {n}", f"assert f({n}) == 0", f"assert f({n}) == 0", "own") for n in (1, 2))


def result(case: Case, value: str) -> Judged:
    """Judge a case by what the answer gave: `ok` is what the test expects."""
    if value == "ok":
        return Judged(case, Result(case.name, "passed"))
    if value == "crash":
        return Judged(case, Result(case.name, "error", message="IndexError"))
    return Judged(case, Result(case.name, "failed", expected="0", actual=value))


def attempt(number: int, *values: str, fresh: bool = True) -> Attempt:
    """An attempt whose values for the trusted and the two own tests are these."""
    judged = tuple(result(case, v) for case, v in zip((TRUSTED, *OWN), values, strict=True))
    return Attempt(number, f"return {number}", b"", Verdict(judged, control="held"), fresh=fresh)


def test_two_answers_that_do_the_same_put_the_own_tests_that_they_fail_aside() -> None:
    tried = [attempt(1, "ok", "7", "ok"), attempt(2, "ok", "8", "8"), attempt(3, "ok", "7", "ok")]
    assert agreement.settled(tried[:2]) is None
    found = agreement.settled(tried)
    assert found is not None and found.attempt.number == 1 and found.votes == 2
    assert [aside.case.name for aside in found.asides] == ["own 1"]
    assert found.asides[0].why == "2 independent answers give 7 instead"
    assert found.attempt.verdict.solved
    assert len(found.attempt.verdict.judged) == 2


def test_answers_that_crash_alike_outweigh_no_test() -> None:
    tried = [attempt(1, "ok", "crash", "ok"), attempt(2, "ok", "crash", "ok")]
    assert agreement.votes(tried[0], tried) == 2
    assert agreement.settled(tried) is None


def test_a_trusted_test_is_never_put_aside() -> None:
    tried = [attempt(1, "5", "ok", "ok"), attempt(2, "5", "ok", "ok")]
    assert agreement.settled(tried) is None


def test_an_answer_that_saw_an_earlier_one_has_no_vote() -> None:
    tried = [attempt(1, "ok", "7", "ok"), attempt(2, "ok", "7", "ok", fresh=False)]
    assert agreement.settled(tried) is None


def test_an_answer_that_cannot_be_run_agrees_with_nobody() -> None:
    broken = [Attempt(n, "return", b"", Verdict(problem="SyntaxError"), fresh=True) for n in (1, 2)]
    assert agreement.settled(broken) is None
    assert agreement.votes(broken[0], broken) == 0


def test_a_forged_verdict_agrees_with_nobody() -> None:
    judged = (result(OWN[0], "7"),)
    forged = [Attempt(n, "x", b"", Verdict(judged, control="forged"), fresh=True) for n in (1, 2)]
    assert agreement.settled(forged) is None


def test_trusted_tests_come_before_dual_agreement() -> None:
    lone = attempt(1, "ok", "3", "ok")
    agreed = [attempt(2, "ok", "ok", "4"), attempt(3, "ok", "ok", "4")]
    wrong = [attempt(n, "9", "ok", "ok") for n in (4, 5, 6)]
    assert agreement.best([lone, *agreed, *wrong]).number == 2
    assert agreement.best([lone, *wrong]).number == 1


def test_a_lone_answer_that_own_tests_speak_for_is_not_outvoted_by_two_that_pass_none() -> None:
    tried = [attempt(1, "ok", "3", "ok"), attempt(2, "ok", "4", "4"), attempt(3, "ok", "4", "4")]
    assert agreement.best(tried).number == 1 and agreement.settled(tried) is None
    without = [attempt(1, "ok", "3", "3"), *tried[1:]]
    assert agreement.best(without).number == 2
    found = agreement.settled(without)
    assert found is not None and found.attempt.number == 2


def test_an_answer_that_saw_an_earlier_one_speaks_for_itself_alone() -> None:
    tried = [attempt(1, "ok", "3", "3"), attempt(2, "ok", "ok", "4", fresh=False)]
    assert agreement.best(tried).number == 2


def test_of_answers_without_agreement_most_own_tests_win_then_the_first() -> None:
    tried = [attempt(1, "ok", "3", "3"), attempt(2, "ok", "ok", "4"), attempt(3, "ok", "5", "ok")]
    assert agreement.best(tried).number == 2


@pytest.mark.parametrize("origin", ["user", "example"])
def test_what_the_user_vouches_for_makes_an_answer_unsound(origin: Origin) -> None:
    case = Case("t", "assert f(1) == 2", "assert f(1) == 2", origin)
    assert not agreement.is_sound(Verdict((result(case, "3"),)))
    assert agreement.is_sound(Verdict((result(OWN[0], "3"),)))
    assert not agreement.is_sound(Verdict())
