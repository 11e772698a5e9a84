"""A batch on a Dask cluster on loopback: a scheduler and two workers, one of which dies."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Command
from endpoint import serving
from test_batch import arguments, begin, dawdling, lines, report, until, write_rows

pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
pytestmark = [pytest.mark.container, pytest.mark.usefixtures("no_container_left")]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def dask(folder: Path, env: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a part of the cluster in a process group of its own, for as long as the `with` lasts."""
    command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]]
    with (folder / f"{arguments[0]}.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log,
                                   start_new_session=True)  # fmt: skip
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def connects(address: str) -> bool:
    host, _, port = address.removeprefix("tcp://").partition(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def cluster(folder: Path, env: dict[str, str]) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler and two workers of one thread; gives its address and the first worker."""
    address = f"tcp://127.0.0.1:{free_port()}"
    env = {**env, "DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "True"}
    alone = ["--host", "127.0.0.1"]
    worker = ["worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", *alone]
    with contextlib.ExitStack() as stack:
        port = address.rpartition(":")[2]
        scheduler = ["scheduler", *alone, "--port", port, "--no-dashboard"]
        stack.enter_context(dask(folder, env, *scheduler))
        until(lambda: connects(address))
        first = stack.enter_context(dask(folder, env, *worker))
        stack.enter_context(dask(folder, env, *worker))
        yield address, first


def test_a_lost_workers_tasks_run_again_elsewhere(tmp_path: Path, command: Command) -> None:
    file, out = write_rows(tmp_path, 8), tmp_path / "out"
    with (
        serving(dawdling(0.2)) as endpoint,
        cluster(tmp_path, command.env) as (address, first),
    ):
        call = [*arguments(file, out, endpoint), "--cluster", address]
        process = begin(command, call)
        until(lambda: some_are_done(process, out), 120)
        os.kill(first.pid, signal.SIGKILL)
        _, said = process.communicate(timeout=240)
        assert process.returncode == 0, said.decode()
        ids = [r["id"] for r in lines(out)]
        assert sorted(ids) == [f"Own/{n}" for n in range(8)]
        assert report(out)["reflexion"]["pass@1"]["right"] == 8
        asked = len(endpoint.asked)
        assert command(*call).code == 0 and len(endpoint.asked) == asked
    replay = command("batch", file, "--out", tmp_path / "again", "--replay", out)
    assert replay.code == 0, replay.err
    settle()


def some_are_done(process: subprocess.Popen[bytes], out: Path) -> bool:
    assert process.poll() is None, process.communicate()[1].decode()
    return (out / "results.jsonl").exists() and len(lines(out)) >= 2


def settle() -> None:
    """Give the containers of the killed worker the two seconds in which they end."""
    time.sleep(3)


def test_a_scheduler_that_does_not_answer_is_one_clear_line(
    tmp_path: Path, command: Command
) -> None:
    file = write_rows(tmp_path, 1)
    address = f"tcp://127.0.0.1:{free_port()}"
    ran = command("batch", file, "--out", "out", "--cluster", address, "--base-url",
                  "http://127.0.0.1:9/v1", "--model", "m")  # fmt: skip
    assert ran.code == 2 and f"No scheduler answers at {address}" in ran.err
    assert "Traceback" not in ran.err and "dask scheduler" in ran.err


def test_no_key_crosses_the_cluster(tmp_path: Path) -> None:
    import pickle

    from reflexfix.assemble import ModelChoice
    from reflexfix.attempt import Limits
    from reflexfix.batch.cluster import Spec
    from reflexfix.batch.work import After
    from reflexfix.cli import running

    options = {"model": "m", "test_model": "", "reflect_model": "", "base_url": "http://x/v1"}
    os.environ["OPENAI_API_KEY"] = "sk-secret"
    try:
        choice = running.choice_without_key(options)
    finally:
        del os.environ["OPENAI_API_KEY"]
    assert choice == ModelChoice(model="m", base_url="http://x/v1")
    assert b"sk-secret" not in pickle.dumps(Spec(choice, Limits(), After()))
    assert json.dumps(options)
