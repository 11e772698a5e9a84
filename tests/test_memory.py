"""What was learned: the window, the outcome of lessons, and that nothing sinks unseen."""

from __future__ import annotations

import pytest

from reflexfix.memory import Lesson, Memory, plain


def lesson(text: str, **more: object) -> Lesson:
    return Lesson(text, "task", 1, "model", "now", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("window", [1, 2, 3])
def test_at_most_a_window_of_lessons_is_in_sight(window: int) -> None:
    memory = Memory(window)
    for number in range(5):
        memory.add(lesson(f"lesson number {'abcde'[number]}"))
    assert [x.text[-1] for x in memory.in_sight()] == list("abcde")[5 - window :]


def test_a_lesson_that_leaves_the_window_is_closed_with_the_reason() -> None:
    memory = Memory(1)
    memory.add(lesson("first"))
    memory.add(lesson("second"))
    assert memory.lessons[0].closed == "left the window of 1"
    assert len(memory.lessons) == 2


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [((0, 1), (1, 0), "helped"), ((1, 1), (1, 1), "no change"), ((1, 3), (1, 2), "hurt")],
)
def test_the_outcome_is_what_the_next_attempt_says_against_the_best(
    before: tuple[int, int], after: tuple[int, int], outcome: str
) -> None:
    memory = Memory(1)
    memory.add(lesson("x"))
    memory.weigh([memory.lessons[0].id], before, after)
    assert memory.lessons[0].outcome == outcome
    assert bool(memory.lessons[0].closed) is (outcome == "hurt")


def test_a_hint_is_always_in_sight_and_never_retracted() -> None:
    memory = Memory(1)
    memory.add(lesson("mine", hint=True))
    for text in ("a", "b"):
        memory.add(lesson(text))
    memory.weigh([x.id for x in memory.lessons], (1, 1), (0, 0))
    assert [x.text for x in memory.in_sight()] == ["mine"]


def test_only_lessons_that_were_used_are_weighed() -> None:
    memory = Memory(3)
    memory.add(lesson("used"))
    memory.add(lesson("unused"))
    memory.weigh([memory.lessons[0].id], (0, 0), (1, 1))
    assert [x.outcome for x in memory.lessons] == ["helped", "unknown"]


@pytest.mark.parametrize(
    "same", ["Handle  EMPTY lists", "handle empty lists!", "Handle empty lists 3"]
)
def test_a_lesson_is_known_whatever_its_case_space_and_numbers(same: str) -> None:
    memory = Memory()
    memory.add(lesson("Handle empty lists."))
    assert memory.knows(same)
    assert not memory.knows("Handle full lists.")
    assert plain("A  b-3") == "a b"
