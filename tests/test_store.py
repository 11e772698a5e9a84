"""A batch's folder: resumed by id, held by one process, refused when the parameters differ."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest
from batches import PostHoc, attempt, result, verdict

from reflexfix.batch import store as stores
from reflexfix.batch.store import RESULTS, Store
from reflexfix.errors import UsageProblem


def test_a_result_comes_back_as_it_was(tmp_path: Path) -> None:
    kept = result(
        "HumanEval/0", "x", True, post_hoc=(PostHoc(1, True),), samples=(PostHoc(1, False),),
        lessons=({"text": "\ud800 odd", "attempt": 1, "outcome": "hurt", "closed": ""},),
        attempts=(attempt(1, verdict((1, 2))),), notes=("needs crate x",), accepts=False,
    )  # fmt: skip
    Store(tmp_path).add(kept)
    (found,) = Store(tmp_path).results()
    assert found == kept


def test_a_troubled_task_runs_again_and_a_finished_one_does_not(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(result("a", "x", False, score=None, trouble="model", message="away"))
    store.add(result("b", "x", True))
    assert set(store.finished()) == {("b", "x")}
    store.add(result("a", "x", True))
    assert set(store.finished()) == {("a", "x"), ("b", "x")}
    assert [(r.id, r.trouble) for r in store.results()] == [("b", ""), ("a", "")]


def test_the_last_trouble_of_a_task_is_told_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for message in ("first", "second"):
        store.add(result("a", "x", False, score=None, trouble="model", message=message))
    assert [r.message for r in store.results()] == ["second"]


def test_a_finished_task_is_never_counted_twice(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(result("a", "x", True))
    store.add(result("a", "x", False))
    assert [r.passed for r in store.results()] == [True]


def test_a_line_cut_short_loses_itself_alone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(result("a", "x", True))
    store.add(result("b", "x", True))
    path = tmp_path / RESULTS
    whole = path.read_bytes()
    for cut in (2, 20, len(whole) // 4):
        path.write_bytes(whole[:-cut])
        again = Store(tmp_path)
        assert set(again.finished()) == {("a", "x")}
        again.add(result("b", "x", True))
        assert set(again.finished()) == {("a", "x"), ("b", "x")}


def test_other_parameters_are_refused_with_what_differs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.begin({"models": ["m"], "arms": {"x": {"trials": 4}}})
    store.begin({"models": ["m"], "arms": {"x": {"trials": 4}}})
    with pytest.raises(UsageProblem, match=r'models: \["m"\] then, \["n"\] now') as raised:
        store.begin({"models": ["n"], "arms": {"x": {"trials": 4}}})
    assert "--out" in raised.value.hint and "arms" not in raised.value.message


def hold(folder: Path, ready: object, go: object) -> None:
    with stores.opened(folder):
        ready.set()  # type: ignore[attr-defined]
        go.wait(30)  # type: ignore[attr-defined]


def test_a_second_process_on_one_folder_is_refused(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, go = context.Event(), context.Event()
    other = context.Process(target=hold, args=(tmp_path, ready, go))
    other.start()
    try:
        assert ready.wait(30)
        with pytest.raises(UsageProblem, match="Another process"), stores.opened(tmp_path):
            pass
    finally:
        go.set()
        other.join(30)
    with stores.opened(tmp_path):
        pass


def test_lines_of_another_kind_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / RESULTS).write_text('[]\n{"x": 1}\nnonsense\n' + json.dumps("text") + "\n")
    assert list(Store(tmp_path).results()) == []
