"""What happens when the engine fails: never a wrong verdict, never a leak, one clear line."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Command
from endpoint import scripted, serving
from own_engine import Daemon, own_engine

from reflexfix.attempt import Candidate, Case, Limits, Suite, Verdict
from reflexfix.containers.engine import Engine
from reflexfix.containers.sandbox import ContainerSandbox
from reflexfix.errors import SandboxTrouble

pytestmark = [
    pytest.mark.container,
    # docker-py leaves the socket open with which it could not connect
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("dockerd"), reason="needs root and dockerd"
    ),
]


@pytest.fixture(autouse=True)
def leave_no_garbage() -> Iterator[None]:
    """Collect what docker-py left open here, not in some later test."""
    yield
    gc.collect()


STUB = b"def f(x):\n    ...\n"
SUITE = Suite((Case("a", "assert f(1) == 2", "", "own"), Case("b", "assert f(2) == 3", "", "own")))


def body(text: str) -> Candidate:
    file = f"def f(x):\n    {text}\n".encode()
    return Candidate({"m.py": file}, "m", "f", stub_files={"m.py": STUB})


RIGHT, SLOW = body("return x + 1"), body("import time; time.sleep(2); return x + 1")


@pytest.fixture(scope="module")
def daemon(engine: Engine, sandbox_image: str) -> Iterator[Daemon]:
    if engine.name != "docker":
        pytest.skip("the engine to be broken is a dockerd")
    with own_engine(Path(tempfile.mkdtemp(prefix="rx-engine-"))) as made:
        made.copy_image(engine, sandbox_image)
        yield made


@pytest.fixture
def broken(daemon: Daemon, sandbox_image: str) -> Iterator[ContainerSandbox]:
    """A sandbox on the engine of our own; afterwards that engine is up again and empty."""
    engine = daemon.connect()
    with closing(engine.client), ContainerSandbox(engine, sandbox_image, Limits(), pool=1) as made:
        yield made
    deadline = time.monotonic() + 15
    while daemon.running() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert daemon.running() == 0


def judged(sandbox: ContainerSandbox, candidate: Candidate) -> Verdict | None:
    try:
        return sandbox.run(candidate, SUITE)
    except SandboxTrouble:
        return None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_daemon_that_dies_in_the_middle_is_trouble_and_no_verdict(
    number: signal.Signals, daemon: Daemon, broken: ContainerSandbox
) -> None:
    assert broken.run(RIGHT, SUITE).solved
    found: list[Verdict | None] = []
    thread = threading.Thread(target=lambda: found.append(judged(broken, SLOW)))
    thread.start()
    time.sleep(1.0)
    daemon.end(number)
    thread.join(60)
    daemon.start()
    assert all(verdict is None or verdict.solved for verdict in found)  # a right one or none
    assert found == [None] or number == signal.SIGTERM  # a daemon that ends in order may wait


def test_a_daemon_that_was_restarted_is_used_again(
    daemon: Daemon, broken: ContainerSandbox
) -> None:
    assert broken.run(RIGHT, SUITE).solved
    daemon.end()
    daemon.start()
    assert broken.run(RIGHT, SUITE).solved


def test_a_container_removed_by_somebody_else_is_replaced_once(
    daemon: Daemon, sandbox_image: str
) -> None:
    def remove() -> None:
        time.sleep(1.0)
        with closing(daemon.connect().client) as client:
            for found in client.api.containers():
                client.api.remove_container(found["Id"], force=True)

    other = threading.Thread(target=remove)
    other.start()
    mine = daemon.connect()
    with closing(mine.client), ContainerSandbox(mine, sandbox_image, Limits(), 0) as alone:
        verdict = alone.run(SLOW, SUITE)
    other.join()
    assert verdict.solved


def test_a_deleted_image_is_trouble(daemon: Daemon, engine: Engine, sandbox_image: str) -> None:
    mine = daemon.connect()
    tag = mine.client.images.get(sandbox_image).tags[0]
    mine.client.images.remove(tag, force=True)
    refused = pytest.raises(SandboxTrouble, match="could not be started")
    with closing(mine.client), ContainerSandbox(mine, sandbox_image, Limits(), 0) as it, refused:
        it.run(RIGHT, SUITE)
    daemon.copy_image(engine, sandbox_image)


def test_the_command_ends_with_4_when_the_engine_dies(
    daemon: Daemon, tmp_path: Path, command: Command
) -> None:
    (tmp_path / "m.py").write_text("def f(x):\n    ...\n")
    slow = "```python\ndef f(x):\n    import time\n    time.sleep(3)\n    return x\n```"
    with serving(scripted(implement=[slow], write_tests=["assert f(1) == 1"])) as endpoint:
        timer = threading.Timer(4.0, lambda: daemon.end(signal.SIGKILL))
        timer.start()
        ran = command("solve", "m.py", "--base-url", endpoint.url, "--trials", "1",
                      DOCKER_HOST=daemon.url)  # fmt: skip
        timer.join()
    daemon.start()
    assert ran.code in (4, 0), ran.err  # 0 where the verdict was in before the engine died
    if ran.code == 4:
        assert "Traceback" not in ran.err and "reflexfix: " in ran.err


def test_a_full_disk_of_the_engine_is_trouble(engine: Engine, sandbox_image: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="rx-small-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=700m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        with own_engine(folder) as small:
            small.copy_image(engine, sandbox_image)
            # unbuffered: what is left in a buffer would fail once more when the file is closed
            with (folder / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError):
                while True:
                    filler.write(b"x" * 2**20)
            mine = small.connect()
            refused = pytest.raises(SandboxTrouble)
            sandbox = ContainerSandbox(mine, sandbox_image, Limits(), 0)
            with closing(mine.client), sandbox, refused:
                sandbox.run(RIGHT, SUITE)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)
