"""The tables of the experiment: made again from the lines that are kept, which hold no text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from batches import PostHoc, attempt, result, verdict

from reflexfix.batch import report

ROOT = Path(__file__).parents[1]
SECRET = "TEXT_OF_A_BENCHMARK"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A batch's folder with two tasks in three arms, full of text."""
    folder = tmp_path / "out"
    folder.mkdir()
    told = {
        "suite": {
            "cases": [{"origin": "own", "shown": SECRET}, {"origin": "example", "shown": SECRET}],
            "dropped": [{"shown": SECRET, "reason": SECRET}],
            "aside": [{"shown": SECRET, "reason": SECRET}],
            "gate": {"tried": 1, "noticed": True},
        },
        "lessons": ({"text": SECRET, "attempt": 1, "outcome": "helped", "closed": ""},),
        "message": SECRET,
        "stopped": SECRET,
    }
    lines = []
    for arm, right in (("base", (False, False)), ("resample", (True, False)),
                       ("reflexion", (True, True))):  # fmt: skip
        for task, passed in zip(("T/1", "T/2"), right, strict=True):
            said = {**attempt(1, verdict((3, 3))), "code": SECRET, "fresh": True, "answer": SECRET}
            curve = (PostHoc(1, False), PostHoc(2, passed))
            one = result(task, arm, passed, attempts=(said,), post_hoc=curve, **told)
            lines.append(json.dumps(one.record()))
    (folder / "results.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def ran(script: str, *arguments: object) -> str:
    command = [sys.executable, f"benchmarks/{script}.py", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def kept(out: Path, tmp_path: Path) -> Path:
    file = tmp_path / "kept.jsonl"
    file.write_text(ran("evaluator", "--compact", out))
    return file


def test_no_text_of_a_benchmark_is_kept(kept: Path) -> None:
    lines = kept.read_text().splitlines()
    assert len(lines) == 6 and SECRET not in kept.read_text()


def test_a_run_that_went_on_from_kept_lines_keeps_them(kept: Path, out: Path) -> None:
    (out / "results.jsonl").write_text(kept.read_text())
    assert ran("evaluator", "--compact", out) == kept.read_text()
    (out / "parameters.json").write_text('{"arms": {"base": {}, "reflexion": {}}}')
    told = report.write(out)
    assert len(told["arms"]) == 2 and "T/1" in (out / "report.html").read_text()


def test_the_tables_are_made_again_from_the_lines(kept: Path) -> None:
    told = ran("evaluator", "--from", kept)
    assert "| reflexion | 2/2 = 100.0 %" in told and "| base | 0/2 = 0.0 %" in told
    assert "| reflexion against resample | 2 | 1 | 0 | +50.0" in told
    assert "not shown" in told
    assert "- reflexion against base: won T/1, T/2; lost none" in told
    assert "1: 0, 2: 2 of 2 | 2 helped" in told


def test_what_tests_votes_and_mutants_were_worth_is_told(kept: Path) -> None:
    told = ran("evaluator", "--from", kept)
    assert "- own tests that a right answer fails: 0 of 6" in told
    assert "- tasks with outvoted own tests: 2, right: 2" in told
    assert "first mutant was noticed: 2; a later one: 0; none: 0; without a mutant: 0" in told
    assert "- tries after a failed example: 0, pass all examples: 0" in told


def test_what_is_left_to_run_is_listed(kept: Path) -> None:
    sets = json.loads((ROOT / "benchmarks" / "results" / "sets.json").read_text())
    report = sets["humaneval"]["report"]
    done, half = report[:2]
    lines = [
        line.replace("T/1", done).replace("T/2", half) for line in kept.read_text().splitlines()
    ]
    lines = [line for line in lines if not (half in line and '"arm": "base"' in line)]
    kept.write_text("\n".join(lines) + "\n")
    told = ran("evaluator", "--left", kept, "--set", "humaneval.report").strip().split(",")
    assert told == report[1:]


def test_the_picture_is_a_picture(kept: Path) -> None:
    drawn = ElementTree.fromstring(ran("picture", kept))
    said = [node.text for node in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "reflexion 100 %" in said and "resample 50 %" in said and "helped" in said
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}polyline"))) == 2


def test_a_wrong_command_line_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/evaluator.py", "--replay", "x"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2 and "--replay needs --file" in done.stderr
