"""Record and replay: what was asked once need not be asked again."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from reflexfix.errors import UsageProblem
from reflexfix.model import Answer, Request, ScriptedModel
from reflexfix.recording import RecordedModel, Recording, UnknownRequest, key_of, opened

ASKED = Request("implement", "system \ud800", "write f", 0.0, 0, 100)


def test_an_answer_is_asked_for_once(tmp_path: Path) -> None:
    script = ScriptedModel(["one", "two"])
    model = RecordedModel(Recording(tmp_path), "m", script)
    assert model.complete(ASKED).text == model.complete(ASKED).text == "one"
    assert len(script.asked) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"question": "improve"}, {"system": "s"}, {"prompt": "p"}, {"temperature": 0.8},
        {"seed": 1}, {"answer_tokens": 99},
    ],
)  # fmt: skip
def test_whatever_is_asked_differently_is_another_question(change: dict[str, object]) -> None:
    assert key_of("m", replace(ASKED, **change)) != key_of("m", ASKED)  # type: ignore[arg-type]


def test_another_model_is_another_question() -> None:
    assert key_of("m", ASKED) != key_of("n", ASKED)


def test_a_replay_gives_the_answer_back_whole(tmp_path: Path) -> None:
    answer = Answer("text \ud800 é", "length", 11, 100, 1.5, "m")
    Recording(tmp_path).keep("m", ASKED, answer)
    assert RecordedModel(opened(tmp_path), "m").complete(ASKED) == answer


def test_a_replay_names_the_request_that_it_does_not_know(tmp_path: Path) -> None:
    Recording(tmp_path).keep("m", ASKED, Answer("x"))
    with pytest.raises(UnknownRequest, match=r"implement .*seed 7.*write f") as raised:
        RecordedModel(opened(tmp_path), "m").complete(replace(ASKED, seed=7))
    assert raised.value.exit_code == 3 and "--replay-or-ask" in raised.value.hint


def test_an_answer_that_a_budget_cut_is_not_kept(tmp_path: Path) -> None:
    class Cut:
        name = "m"

        def complete(self, request: Request) -> Answer:
            return Answer("half", "length", 5, request.answer_tokens - 1)

    model = RecordedModel(Recording(tmp_path), "m", Cut())
    assert model.complete(ASKED).text == "half"
    assert Recording(tmp_path).find("m", ASKED) is None


def test_an_empty_folder_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="no recorded answers"):
        opened(tmp_path)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.keep("m", ASKED, Answer("x"))
    path = next(recording.files())
    path.write_text("{")
    with pytest.raises(UsageProblem, match=path.name):
        recording.find("m", ASKED)


def test_many_threads_may_record_at_once(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    asked = [replace(ASKED, seed=n % 5) for n in range(40)]
    threads = [
        threading.Thread(target=recording.keep, args=("m", one, Answer(str(one.seed))))
        for one in asked
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [recording.find("m", one) for one in asked]
    assert [answer and answer.text for answer in found] == [str(one.seed) for one in asked]
    assert len(list(recording.files())) == 5 and recording.models() == ["m"]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".json"]
