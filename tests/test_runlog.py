"""What a run leaves behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reflexfix import runlog
from reflexfix.errors import UsageProblem
from reflexfix.runlog import RunLog


def test_the_folder_lies_beside_the_nearest_mark_and_ignores_itself(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    home = runlog.home_of(deep / "f.py")
    assert home == tmp_path.resolve() / ".reflexfix"
    assert (home / ".gitignore").read_text() == "*\n"


def test_where_nothing_can_be_written_the_state_folder_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".reflexfix").write_text("a file is in the way")
    assert runlog.home_of(tmp_path / "f.py") == tmp_path / "state" / "reflexfix"


def test_records_are_on_the_disk_at_once_and_a_cut_line_is_tolerated(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        log.begin(task={"id": "x"}, original=b"\xff")
        log.write("stopped", why="because")
        path = log.folder / runlog.FILE
        assert len(path.read_text().splitlines()) == 2
    with path.open("a") as file:
        file.write('{"kind": "attempt", "num')
    assert [record.kind for record in runlog.read(path)] == ["run", "stopped"]


def test_the_newest_fifty_runs_are_kept(tmp_path: Path) -> None:
    for number in range(55):
        folder = tmp_path / "runs" / f"20200101-0000{number:02}-aaaa"
        folder.mkdir(parents=True)
        (folder / runlog.FILE).write_text(json.dumps({"kind": "run"}) + "\n")
    with RunLog(tmp_path) as log:
        pass
    kept = [run.name for run in runlog.runs(tmp_path)]
    assert len(kept) == runlog.KEPT_RUNS and kept[-1] == log.id


def test_a_run_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="no run"):
        runlog.find(tmp_path, None)
    with RunLog(tmp_path) as log:
        pass
    assert runlog.find(tmp_path, None).name == log.id
    assert runlog.find(tmp_path, log.id[:12]).name == log.id
    with pytest.raises(UsageProblem, match="no run zzz"):
        runlog.find(tmp_path, "zzz")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://me:secret@host:81/v1", "http://***@host:81/v1"),
        ("https://host/v1", "https://host/v1"),
        ("", ""),
    ],
)
def test_credentials_in_an_address_are_masked(url: str, shown: str) -> None:
    assert runlog.masked(url) == shown
