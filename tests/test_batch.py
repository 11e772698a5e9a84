"""A batch from file to report, with a scripted endpoint and real containers."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from endpoint import Endpoint, Reply, serving

pytestmark = [pytest.mark.container, pytest.mark.usefixtures("no_container_left")]
SECRET = "hidden_marker"
"""A word that stands in hidden tests alone."""


def row(number: int, factor: int) -> dict[str, str]:
    """A task of our own in the form of HumanEval: multiply by a factor, with one example."""
    name = f"times_{number}"
    return {
        "task_id": f"Own/{number}",
        "prompt": f'def {name}(x):\n    """Multiply x by {factor}.\n\n    >>> {name}(1)\n'
        f'    {factor}\n    """\n',
        "entry_point": name,
        "canonical_solution": f"    return x * {factor}\n",
        "test": f"def check(candidate):\n    {SECRET} = 7\n"
        f"    assert candidate({SECRET}) == {7 * factor}\n",
    }


def write_rows(folder: Path, count: int) -> Path:
    path = folder / "own.jsonl"
    path.write_text("".join(json.dumps(row(n, n + 2)) + "\n" for n in range(count)))
    return path


def clever(right: Callable[[int], bool] = lambda number: True) -> Callable[[str, Any], Reply]:
    """Answer rightly where asked to; elsewhere so that the example passes and nothing else."""

    def answer(question: str, body: dict[str, Any]) -> Reply:
        found = re.search(r"times_(\d+)", body["messages"][-1]["content"])
        assert found is not None
        number = int(found[1])
        name, factor = f"times_{number}", number + 2
        if question == "write_tests":
            return Reply(f"```python\nassert {name}(1) == {factor} + 0\n```")
        if question == "reflect":
            return Reply(f"Think of the factor {body['seed']}.")
        value = f"x * {factor}" if right(number) else f"{factor} if x == 1 else 0"
        return Reply(f"```python\ndef {name}(x):\n    return {value}\n```")

    return answer


@pytest.fixture
def always_right() -> Iterator[Endpoint]:
    with serving(clever()) as endpoint:
        yield endpoint


def arguments(file: Path, out: Path, endpoint: Endpoint, *more: str) -> list[str]:
    return ["batch", str(file), "--out", str(out), "--base-url", endpoint.url, "--model",
            "scripted", "--workers", "2", *more]  # fmt: skip


def report(out: Path) -> dict[str, dict[str, Any]]:
    told = json.loads((out / "report.json").read_text())
    return {arm["name"]: arm for arm in told["arms"]}


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]


def test_final_answers_are_scored_by_tests_that_no_loop_sees(
    tmp_path: Path, command: Command
) -> None:
    file, out = write_rows(tmp_path, 4), tmp_path / "out"
    with serving(clever(lambda number: number != 2)) as endpoint:
        ran = command(*arguments(file, out, endpoint, "--arm", "base", "--arm", "reflexion"))
        assert ran.code == 0, ran.err
        asked = [body for _, body, _ in endpoint.asked]
    told = report(out)
    assert told["reflexion"]["pass@1"]["right"] == told["base"]["pass@1"]["right"] == 3
    assert told["reflexion"]["own_tests"]["false_positives"]["right"] == 1
    assert told["reflexion"]["suites_that_accept_the_reference"]["right"] == 4
    wrong = [r["id"] for r in lines(out) if not r["score"]["passed"]]
    assert wrong == ["Own/2", "Own/2"]
    assert not any(SECRET in json.dumps(body) for body in asked)
    assert b"3/4" in ran.out and (out / "report.html").stat().st_size > 1000


def test_what_hidden_tests_say_of_attempts_comes_after_the_last_question(
    tmp_path: Path, command: Command
) -> None:
    """Two loops that differ in nothing but hidden tests ask the same questions."""
    questions = []
    for factor, name in ((1, "a"), (1000, "b")):
        file, out = tmp_path / f"{name}.jsonl", tmp_path / name
        hidden = f"def check(candidate):\n    assert candidate(7) == {7 * 2 * factor}\n"
        file.write_text(json.dumps({**row(0, 2), "test": hidden}) + "\n")
        with serving(clever(lambda number: False)) as endpoint:
            more = ("--score-attempts", "--k", "2", "--arm", "base", "--arm", "reflexion")
            ran = command(*arguments(file, out, endpoint, *more))
            assert ran.code == 0, ran.err
            questions.append(sorted(json.dumps(body) for _, body, _ in endpoint.asked))
    assert questions[0] == questions[1]
    told = report(tmp_path / "a")
    assert told["base"]["post_hoc"]["pass@k"] == {"1": 0.0, "2": 0.0}
    assert told["reflexion"]["post_hoc"]["right_after_trial"]["n"] == 1


def test_the_same_command_goes_on_where_it_stopped(
    tmp_path: Path, command: Command, always_right: Endpoint
) -> None:
    file, out = write_rows(tmp_path, 4), tmp_path / "out"
    first = command(*arguments(file, out, always_right, "--limit", "2"))
    assert first.code == 0, first.err
    kept, asked = lines(out), len(always_right.asked)
    again = command(*arguments(file, out, always_right, "--limit", "2"))
    assert again.code == 0 and lines(out) == kept and len(always_right.asked) == asked
    whole = command(*arguments(file, out, always_right))
    assert whole.code == 0 and len(always_right.asked) == 2 * asked
    assert sorted(r["id"] for r in lines(out)) == [f"Own/{n}" for n in range(4)]


@pytest.mark.parametrize("change", [["--trials", "3"], ["--temperature", "0.5"], ["data"]])
def test_other_parameters_are_refused_with_what_differs(
    change: list[str], tmp_path: Path, command: Command, always_right: Endpoint
) -> None:
    file, out = write_rows(tmp_path, 1), tmp_path / "out"
    assert command(*arguments(file, out, always_right)).code == 0
    if change == ["data"]:
        file, change = write_rows(tmp_path, 2), []
    ran = command(*arguments(file, out, always_right, *change))
    assert ran.code == 2 and "other parameters" in ran.err and "--out" in ran.err
    assert ("data:" if not change else "arms:") in ran.err


def test_a_replay_needs_no_model_and_scores_the_same_byte_for_byte(
    tmp_path: Path, command: Command
) -> None:
    file, out = write_rows(tmp_path, 3), tmp_path / "out"
    more = ["--arm", "base", "--arm", "resample", "--arm", "reflexion", "--score-attempts"]
    with serving(clever(lambda number: number != 1)) as endpoint:
        assert command(*arguments(file, out, endpoint, *more)).code == 0
    replays = []
    for name in ("one", "two"):
        ran = command("batch", file, "--out", tmp_path / name, "--replay", out, *more)
        assert ran.code == 0, ran.err
        replays.append((tmp_path / name / "scores.json").read_bytes())
    assert replays[0] == replays[1] == (out / "scores.json").read_bytes()


def test_a_replay_names_what_it_does_not_know_and_asks_only_when_told_to(
    tmp_path: Path, command: Command, always_right: Endpoint
) -> None:
    file, out = write_rows(tmp_path, 2), tmp_path / "out"
    assert command(*arguments(file, out, always_right, "--limit", "1")).code == 0
    asked = len(always_right.asked)
    ran = command("batch", file, "--out", tmp_path / "new", "--replay", out)
    assert ran.code == 3 and "No answer of scripted is recorded" in ran.err and "Own/1" in ran.err
    assert report(tmp_path / "new")["reflexion"]["trouble"] == {"model": 1}
    assert report(tmp_path / "new")["reflexion"]["pass@1"]["n"] == 1
    more = ("--replay", str(out), "--replay-or-ask")
    ran = command(*arguments(file, tmp_path / "newer", always_right, *more))
    assert ran.code == 0 and len(always_right.asked) == 2 * asked


def test_trouble_is_told_apart_and_tried_again(tmp_path: Path, command: Command) -> None:
    file, out = write_rows(tmp_path, 2), tmp_path / "out"
    good = clever()
    away = True

    def sometimes(question: str, body: dict[str, Any]) -> Reply:
        if away and "times_1" in body["messages"][-1]["content"]:
            return Reply(status=400, error="not today")
        return good(question, body)

    with serving(sometimes) as endpoint:
        ran = command(*arguments(file, out, endpoint))
        assert ran.code == 3 and "Own/1 reflexion: model trouble" in ran.err
        assert report(out)["reflexion"]["pass@1"]["n"] == 1
        away = False
        ran = command(*arguments(file, out, endpoint))
    assert ran.code == 0 and report(out)["reflexion"]["pass@1"]["right"] == 2
    assert report(out)["reflexion"]["trouble"] == {}


def test_a_bad_row_is_named_and_the_others_run(
    tmp_path: Path, command: Command, always_right: Endpoint
) -> None:
    file = tmp_path / "own.jsonl"
    bad = {**row(1, 3), "prompt": "def other(x):\n    ...\n"}
    rows = [row(0, 2), bad, row(0, 2), row(2, 4)]
    file.write_text("\n".join(map(json.dumps, rows)) + "\n")
    ran = command(*arguments(file, tmp_path / "out", always_right))
    assert ran.code == 0, ran.err
    assert re.search(r"own\.jsonl:2: not run: ", ran.err)
    assert re.search(r"own\.jsonl:3: not run: .*Own/0", ran.err)
    assert sorted(r["id"] for r in lines(tmp_path / "out")) == ["Own/0", "Own/2"]


def test_a_budget_ends_cleanly_and_nothing_is_said_of_what_it_cut(
    tmp_path: Path, command: Command, always_right: Endpoint
) -> None:
    file, out = write_rows(tmp_path, 6), tmp_path / "out"
    ran = command(*arguments(file, out, always_right, "--max-tokens", "900"))
    assert ran.code == 3 and "budget of 900 tokens" in ran.err
    done = lines(out)
    assert 0 < len(done) < 6 and all(r["score"]["passed"] for r in done)
    assert command(*arguments(file, out, always_right)).code == 0
    assert report(out)["reflexion"]["pass@1"]["right"] == 6


def test_resampling_uses_about_the_tokens_of_the_loop_and_its_suite(
    tmp_path: Path, command: Command
) -> None:
    file, out = write_rows(tmp_path, 1), tmp_path / "out"
    wrong = clever()

    def never(question: str, body: dict[str, Any]) -> Reply:
        if question in ("implement", "improve"):
            number = body["seed"] * 10 + len(body["messages"][-1]["content"]) % 7
            return Reply(f"```python\ndef times_0(x):\n    return {number}\n```")
        return wrong(question, body)

    with serving(never) as endpoint:
        ran = command(*arguments(file, out, endpoint, "--arm", "resample", "--arm", "reflexion"))
        assert ran.code == 0, ran.err
        questions = Counter(question for question, _, _ in endpoint.asked)
    used = {r["arm"]: sum(r["tokens"].values()) for r in lines(out)}
    one = max(a["tokens"]["prompt"] for a in lines(out))
    assert used["reflexion"] <= used["resample"] <= used["reflexion"] + one
    assert questions["write_tests"] == 1
    suites = {json.dumps(r["suite"]) for r in lines(out)}
    assert len(suites) == 1


def test_resampling_alone_has_to_be_told_its_tokens(
    tmp_path: Path, command: Command, always_right: Endpoint
) -> None:
    file = write_rows(tmp_path, 1)
    ran = command(*arguments(file, tmp_path / "out", always_right, "--arm", "resample"))
    assert ran.code == 2 and "--resample-tokens" in ran.err
    more = ("--arm", "resample", "--resample-tokens", "300")
    assert command(*arguments(file, tmp_path / "out", always_right, *more)).code == 0


def test_an_arm_of_ones_own_is_a_set_of_flags(
    tmp_path: Path, command: Command, always_right: Endpoint
) -> None:
    file, arms = write_rows(tmp_path, 1), tmp_path / "arms.toml"
    arms.write_text("[arms.short]\ntrials = 1\ntest-count = 2\n[arms.odd]\npool = 3\n")
    more = ("--arm", "short", "--arm-file", str(arms))
    ran = command(*arguments(file, tmp_path / "out", always_right, *more))
    assert ran.code == 0 and "short" in report(tmp_path / "out")
    more = ("--arm", "odd", "--arm-file", str(arms))
    ran = command(*arguments(file, tmp_path / "odd", always_right, *more))
    assert ran.code == 2 and "sets pool, which no arm can" in ran.err
    ran = command(*arguments(file, tmp_path / "none", always_right, "--arm", "nobody"))
    assert ran.code == 2 and "There is no arm nobody" in ran.err


def test_two_batches_are_compared_task_by_task(tmp_path: Path, command: Command) -> None:
    file = write_rows(tmp_path, 3)
    for name, right in (("a", lambda n: n > 0), ("b", lambda n: True)):
        with serving(clever(right)) as endpoint:
            assert command(*arguments(file, tmp_path / name, endpoint)).code == 0
    ran = command("compare", "a", "b")
    assert ran.code == 0 and b"not shown" in ran.out
    told = json.loads(command("compare", "a", "b", "--json").out)
    assert told["pairs"][0]["won"] == ["Own/0"] and told["pairs"][0]["lost"] == []
    assert command("compare", "a", "nowhere").code == 2


# ---------------------------------------------------------------- interrupted


def begin(command: Command, call: list[str], *, slow: bool = False) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "reflexfix", *call],
        cwd=command.folder, env=command.env, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


def dawdling(seconds: float) -> Callable[[str, Any], Reply]:
    good = clever()

    def answer(question: str, body: dict[str, Any]) -> Reply:
        time.sleep(seconds)
        return good(question, body)

    return answer


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_ctrl_c_drains_and_the_same_command_goes_on(tmp_path: Path, command: Command) -> None:
    file, out = write_rows(tmp_path, 8), tmp_path / "out"
    with serving(dawdling(0.3)) as endpoint:
        process = begin(command, arguments(file, out, endpoint))
        until(lambda: (out / "results.jsonl").exists() and bool(lines(out)))
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130 and b"finishing what is in flight" in said
        assert b"Traceback" not in said
        done = lines(out)
        assert 0 < len(done) < 8 and not any(r["trouble"] for r in done)
        assert (out / "report.json").exists()
        ran = command(*arguments(file, out, endpoint))
    assert ran.code == 0 and report(out)["reflexion"]["pass@1"]["right"] == 8


def test_a_second_ctrl_c_ends_at_once(tmp_path: Path, command: Command) -> None:
    file, out = write_rows(tmp_path, 4), tmp_path / "out"
    with serving(dawdling(20)) as endpoint:
        process = begin(command, arguments(file, out, endpoint))
        until(lambda: len(endpoint.asked) > 0)
        for _ in range(2):
            os.kill(process.pid, signal.SIGINT)
            time.sleep(0.5)
        started = time.monotonic()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and time.monotonic() - started < 10
    assert b"Traceback" not in said


def killed_at_random(count: int, tmp_path: Path, command: Command) -> None:
    """Kill a batch again and again, let it end, and hold that nothing is lost or doubled."""
    file, out = write_rows(tmp_path, 12), tmp_path / "out"
    chance = random.Random(count)
    with serving(dawdling(0.05)) as endpoint:
        call = arguments(file, out, endpoint, "--arm", "base", "--arm", "reflexion")
        for _ in range(count):
            process = begin(command, call)
            time.sleep(chance.uniform(0.3, 3.0))
            process.kill()
            process.communicate()
        ran = command(*call)
        assert ran.code == 0, ran.err
        asked = Counter(json.dumps(body, sort_keys=True) for _, body, _ in endpoint.asked)
    keys = [(r["id"], r["arm"]) for r in lines(out)]
    assert len(keys) == len(set(keys)) == 24
    told = report(out)
    assert told["base"]["pass@1"]["right"] == told["reflexion"]["pass@1"]["right"] == 12
    # an answer that came is never asked for again, but what a kill cut off in flight is
    assert sum(asked.values()) - len(asked) <= 4 * count


@pytest.mark.parametrize("count", [8, pytest.param(50, marks=pytest.mark.slow)])
def test_a_kill_at_any_moment_loses_and_doubles_no_task(
    count: int, tmp_path: Path, command: Command
) -> None:
    killed_at_random(count, tmp_path, command)


def test_resampling_says_nothing_where_the_loop_has_no_result(
    tmp_path: Path, command: Command
) -> None:
    file, out = write_rows(tmp_path, 1), tmp_path / "out"
    good = clever()

    def no_lessons(question: str, body: dict[str, Any]) -> Reply:
        if question == "write_tests":
            return Reply(status=400, error="not today")
        return good(question, body)

    with serving(no_lessons) as endpoint:
        more = ("--arm", "base", "--arm", "resample", "--arm", "reflexion")
        assert command(*arguments(file, out, endpoint, *more)).code == 3
    assert {r["arm"]: r["trouble"] for r in lines(out)} == {
        "reflexion": "model", "resample": "model", "base": "",
    }  # fmt: skip


def test_tasks_are_chosen_by_id_and_answers_are_kept_only_if_wanted(
    tmp_path: Path, command: Command, always_right: Endpoint
) -> None:
    file, out = write_rows(tmp_path, 5), tmp_path / "out"
    more = ("--ids", "Own/3,Own/1", "--shuffle", "7", "--no-record", "--no-check-suites")
    assert command(*arguments(file, out, always_right, *more)).code == 0
    assert sorted(r["id"] for r in lines(out)) == ["Own/1", "Own/3"]
    assert not (out / "answers").exists() and {r["accepts"] for r in lines(out)} == {None}


def test_visible_tests_are_shown_trusted_and_left_out_of_the_score(
    tmp_path: Path, command: Command, always_right: Endpoint
) -> None:
    tests = [f"assert times_0({n}) == {2 * n}" for n in (1, 7, 9)]
    mbpp = {"task_id": 5, "text": "Multiply by 2.", "code": "def times_0(x):\r\n    return x*2",
            "test_list": tests, "test_setup_code": "", "challenge_test_list": []}  # fmt: skip
    file, out = tmp_path / "mbpp.jsonl", tmp_path / "out"
    file.write_text(json.dumps(mbpp) + "\n")
    ran = command(*arguments(file, out, always_right, "--visible-tests", "1"))
    assert ran.code == 0, ran.err
    asked = [json.dumps(body) for _, body, _ in always_right.asked]
    assert all("times_0(1) == 2" in body for body in asked)
    assert not any("times_0(7)" in body or "times_0(9)" in body for body in asked)
    (kept,) = lines(out)
    assert kept["score"]["passed"]
    assert kept["notes"] == ["tests shown and not scored by: 1 of 3"]
    shown = [c["shown"] for c in kept["suite"]["cases"] if c["origin"] == "example"]
    assert shown == ["assert times_0(1) == 2"]
    assert "tests shown and not scored by" in (out / "report.html").read_text()


def test_a_repair_starts_from_the_bug(tmp_path: Path, command: Command) -> None:
    given = row(0, 2)
    bug = {**given, "task_id": "Python/0", "buggy_solution": "    return x * 3\n"}
    file, out = tmp_path / "pack.jsonl", tmp_path / "out"
    file.write_text(json.dumps(bug) + "\n")
    with serving(clever()) as endpoint:
        ran = command(*arguments(file, out, endpoint, "--repair"))
        assert ran.code == 0, ran.err
        asked = [(question, json.dumps(body)) for question, body, _ in endpoint.asked]
    assert "implement" not in {question for question, _ in asked}
    assert any(question == "improve" and "return x * 3" in body for question, body in asked)
    (kept,) = lines(out)
    assert [a["number"] for a in kept["attempts"]] == [0, 1] and kept["score"]["passed"]
