"""Scores are counted from results, and say what was post hoc."""

from __future__ import annotations

from typing import Any

from batches import PostHoc, Tokens, attempt, result, score, verdict

from reflexfix.batch import scores


def counted(*some: Any) -> dict[str, Any]:
    arms = scores.count(some)
    return {name: arm.record(times=True) for name, arm in arms.items()}


def test_pass_at_1_is_the_share_of_final_answers_that_pass() -> None:
    told = counted(result("a", "base", True), result("b", "base", False))["base"]["pass@1"]
    assert (told["right"], told["n"], told["share"]) == (1, 2, 0.5)
    assert told["low"] < 0.5 < told["high"]


def test_trouble_is_never_counted_as_unsolved() -> None:
    troubled = result("b", "base", False, score=None, trouble="sandbox", message="gone")
    told = counted(result("a", "base", True), troubled)["base"]
    assert told["pass@1"]["n"] == 1 and told["trouble"] == {"sandbox": 1}


def test_a_wrong_answer_that_its_own_tests_let_pass_is_a_false_positive() -> None:
    told = counted(result("a", "x", False), result("b", "x", True))["x"]["own_tests"]
    assert (told["false_positives"]["right"], told["false_positives"]["n"]) == (1, 2)
    assert told["false_negatives"]["n"] == 0


def test_a_right_answer_that_fails_an_own_test_is_a_false_negative() -> None:
    failing = (attempt(1, verdict((2, 3), (1, 1))),)
    told = counted(result("a", "x", True, attempts=failing, label="unproven"))["x"]
    assert (told["own_tests"]["false_negatives"]["right"]) == 1
    assert told["trusted_tests"]["false_positives"]["n"] == 1
    assert told["trusted_tests"]["false_positives"]["right"] == 0


def test_the_answer_that_stands_is_weighed_not_the_last_one() -> None:
    attempts = (attempt(1, verdict((3, 3))), attempt(2, verdict((0, 3))))
    told = counted(result("a", "x", True, attempts=attempts))["x"]["own_tests"]
    assert told["false_positives"]["n"] == 1 and told["false_negatives"]["n"] == 0
    told = counted(result("a", "x", True, attempts=attempts, best=2))["x"]["own_tests"]
    assert told["false_positives"]["n"] == 0 and told["false_negatives"]["n"] == 1


def test_labels_are_held_against_the_hidden_tests() -> None:
    told = counted(result("a", "x", True), result("b", "x", False, label="weak"))["x"]["labels"]
    assert told["likely"]["right"] == 1 and told["weak"]["right"] == 0
    assert set(told) == {"likely", "weak"}


def test_the_learning_curve_goes_on_after_the_last_trial() -> None:
    late = result("a", "x", True, post_hoc=(PostHoc(1, False), PostHoc(2, True)))
    soon = result("b", "x", True, post_hoc=(PostHoc(1, True),))
    never = result("c", "x", False, post_hoc=(PostHoc(1, False), PostHoc(2, False)))
    told = counted(late, soon, never)["x"]["post_hoc"]["right_after_trial"]
    assert told["n"] == 3 and told["right"]["1"] == 1 and told["right"]["2"] == 2
    longer = result("d", "x", False, post_hoc=tuple(PostHoc(n, False) for n in range(1, 5)))
    told = counted(late, soon, never, longer)["x"]["post_hoc"]["right_after_trial"]
    assert told["right"] == {"1": 1, "2": 2, "3": 2, "4": 2}


def test_pass_at_k_is_the_mean_over_tasks() -> None:
    first = result("a", "base", True, samples=(PostHoc(1, True), PostHoc(2, False)))
    second = result("b", "base", True, samples=(PostHoc(1, False), PostHoc(2, False)))
    told = counted(first, second)["base"]["post_hoc"]["pass@k"]
    assert told == {"1": 0.25, "2": 0.5}


def test_tokens_are_told_a_task_and_a_solved_task() -> None:
    told = counted(
        result("a", "x", True, tokens=Tokens(10, 5)), result("b", "x", False, tokens=Tokens(20, 10))
    )["x"]["tokens"]
    assert told["per_task"] == 22.5 and told["per_solved_task"] == 45.0


def test_a_verdict_that_turned_on_time_is_listed() -> None:
    late = verdict((0, 1))
    late["results"][0]["status"] = "timeout"
    told = counted(
        result("a", "x", False, attempts=(attempt(1, late),)),
        result("b", "x", False, score=score(False, status="timeout", limited=True)),
        result("c", "x", True),
    )["x"]
    assert told["turned_on_a_time_limit"] == ["a", "b"]


def test_a_base_score_is_counted_beside_the_hidden_one() -> None:
    told = counted(
        result("a", "x", False, score=score(False, base=True)),
        result("b", "x", True, score=score(True, base=True)),
    )["x"]
    assert told["base"]["right"] == 2 and told["pass@1"]["right"] == 1


def test_pairs_hold_only_tasks_that_both_arms_have() -> None:
    arms = scores.count(
        [
            result("a", "base", False), result("b", "base", True), result("c", "base", True),
            result("a", "x", True), result("b", "x", True), result("d", "x", True),
        ]
    )  # fmt: skip
    (pair,) = scores.pairs(arms)
    told = pair.record()
    assert (told["n"], told["won"], told["lost"], told["p"]) == (2, ["a"], [], 1.0)
    assert told["shown"] is False and told["low"] < 0 < told["high"]


def test_a_difference_is_shown_only_where_its_interval_excludes_zero() -> None:
    some = [result(str(n), "base", False) for n in range(40)]
    some += [result(str(n), "x", n < 20) for n in range(40)]
    (pair,) = scores.pairs(scores.count(some))
    assert pair.record()["shown"] is True


def test_a_difference_that_only_its_interval_shows_is_not_shown() -> None:
    some = [result(str(n), "base", n in (0, 1)) for n in range(40)]
    some += [result(str(n), "x", 2 <= n < 11) for n in range(40)]
    (pair,) = scores.pairs(scores.count(some))
    told = pair.record()
    assert told["low"] > 0 and told["p"] > 0.05 and told["shown"] is False


def test_without_times_two_runs_tell_the_same() -> None:
    quick, slow = (scores.count([result("a", "x", True, seconds=s)])["x"] for s in (1.0, 9.0))
    assert quick.record(times=False) == slow.record(times=False)
    assert quick.record(times=True) != slow.record(times=True)
