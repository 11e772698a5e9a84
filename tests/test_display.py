"""What a person reads of a run."""

from __future__ import annotations

from reflexfix import display, feedback
from reflexfix.attempt import Case, Judged, Origin, Result, Suite, Verdict
from reflexfix.suite import SuiteReport
from reflexfix.task import Dropped


def judged(shown: str, origin: Origin = "own", **result: object) -> Judged:
    return Judged(Case("c", "", shown, origin), Result("c", **result))  # type: ignore[arg-type]


FAILED = judged("assert f(1) == 2", status="failed", expected="2", actual="3")
PASSED = judged("assert f(2) == 3", status="passed")


def test_tests_are_told_with_the_reasons_for_dropping() -> None:
    cases = (Case("a", "", "x", "own"), Case("b", "", "y", "example"))
    dropped = (Dropped("p", "repeats another test"), Dropped("q", "does not call f"))
    lines = list(display.suite_lines(SuiteReport(Suite(cases), 3, dropped)))
    assert lines == [
        "tests: 1 example in the docstring",
        "tests: 1 kept of 3 (1 repeats another test, 1 does not call f)",
    ]


def test_a_score_says_what_is_odd() -> None:
    assert display.score(Verdict((PASSED, FAILED))) == "1 of 2 passed"
    assert "FORGED" in display.score(Verdict((PASSED,), control="forged"))
    assert "control: none" in display.score(Verdict((PASSED,)))
    inside = judged("x", status="passed", mode="in-process")
    assert "1 in-process" in display.score(Verdict((inside,), control="held"))


def test_each_failing_test_is_one_line() -> None:
    assert list(display.failure_lines(Verdict((PASSED, FAILED)))) == ["assert f(1) == 2 -> got 3"]
    many = list(display.failure_lines(Verdict((FAILED,) * 9)))
    assert many[-1] == "and 3 more" and len(many) == 7


def test_an_unstable_test_is_shown() -> None:
    one = judged("assert f(1)", status="failed", unstable=True)
    assert "unstable" in next(display.failure_lines(Verdict((one, PASSED))))


def test_control_characters_are_escaped() -> None:
    assert display.safe("a\x1b[31m\x07\x9b\tb\n\ud800") == "a\\x1b[31m\\x07\\x9b\tb\n\\ud800"


def test_feedback_holds_test_expected_actual_and_place() -> None:
    text = feedback.explain(FAILED)
    assert text == "assert f(1) == 2\nexpected: 2\nactual:   3\nso it is one too large"
    raised = judged(
        "assert f(0) == 1", status="error", message="KeyError: 0", frames=("m.py:3 in f: d[x]",)
    )
    assert "error: KeyError: 0\n  at m.py:3 in f: d[x]" in feedback.explain(raised)


def test_feedback_is_bounded_and_trusted_tests_come_first() -> None:
    long = judged("assert f(9) == 9", status="failed", expected="e" * 5000, actual="a" * 5000)
    example = judged("f(0) == 0", "example", status="failed", expected="0", actual="1")
    text = feedback.failures(Verdict((long, long, FAILED, FAILED, FAILED, example)))
    assert text.startswith("f(0) == 0")
    assert len(text) < feedback.MOST_CHARACTERS + 100
    assert "more)" in text


def test_two_runs_of_a_failure_read_the_same() -> None:
    first = "at 0x7f12ab34cd56 after 0.123 seconds"
    second = "at 0x7fffffffffff after 4.5 seconds"
    assert feedback.without_noise(first) == feedback.without_noise(second)
