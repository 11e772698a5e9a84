"""Ctrl-C while something long is fetched or built: one line, and nothing half-made is left."""

from __future__ import annotations

import fcntl
import http.server
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from reflexfix.containers import image as images
from reflexfix.containers.engine import Engine

CONTENT = bytes(range(256)) * 10
"""Stands for the model's file."""
ARRIVED = 700

CODE = f"""
from reflexfix import cli, local
local.MODEL_BYTES = {len(CONTENT)}
local.PIECES, local.PIECE_BYTES = 3, 1000
local.HUB_SECONDS = 30.0
cli.main()
"""


@dataclass
class Terminal:
    """A command at a terminal of its own, as a shell in the foreground would run it."""

    process: subprocess.Popen[bytes]
    screen: int
    shown: bytes = b""

    def read(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while select.select([self.screen], [], [], max(0.0, deadline - time.monotonic()))[0]:
            try:
                data = os.read(self.screen, 4096)
            except OSError:  # how Linux says that nobody has the other end
                return
            if not data:
                return
            self.shown += data
            if time.monotonic() > deadline:
                return

    def interrupt(self, how: str) -> int:
        """Press Ctrl-C, which reaches every process at the terminal, or tell the command alone."""
        if how == "ctrl-c":
            os.write(self.screen, b"\x03")
        else:
            self.process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read(0.1)
        self.read(0.1)
        return self.process.wait(1)

    def left(self) -> list[str]:
        """What still runs of all that the command started."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.process.pid and fields[0] != "Z":
                    found.append((entry / "cmdline").read_text())
            except OSError:
                continue
        return found

    def said(self) -> list[str]:
        return [line.strip() for line in self.shown.decode().splitlines() if line.strip()]


@contextmanager
def at_a_terminal(*command: str | Path, **env: str) -> Iterator[Terminal]:
    screen, other = pty.openpty()
    process = subprocess.Popen(
        command,
        stdin=other,
        stdout=other,
        stderr=other,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        start_new_session=True,
        preexec_fn=lambda: own_terminal(),
    )
    os.close(other)
    try:
        yield Terminal(process, screen)
    finally:
        process.kill()
        process.wait()
        os.close(screen)


def own_terminal() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@dataclass
class Asked:
    """What a server was asked that begins an answer and never ends it."""

    url: str
    paths: list[str] = field(default_factory=list)


@contextmanager
def never_ending(begin: Callable[[http.server.BaseHTTPRequestHandler], None]) -> Iterator[Asked]:
    over = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            begin(self)
            asked.paths.append(self.path)
            over.wait(60)
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        asked = Asked(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield asked
        finally:
            over.set()
            server.shutdown()


def begin_the_file(handler: http.server.BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(CONTENT)))
    handler.end_headers()
    handler.wfile.write(CONTENT[:ARRIVED])
    handler.wfile.flush()


def nothing(_handler: http.server.BaseHTTPRequestHandler) -> None:
    pass


def wait_until(claim: Callable[[], Any], seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, no hub and no index, and no proxy on the way to a double."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("REFLEXFIX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    return tmp_path / "cache"


HOW = pytest.mark.parametrize("how", ["ctrl-c", "one signal"])


@HOW
def test_a_download_that_is_interrupted_can_be_gone_on_with(how: str, offline: Path) -> None:
    part = offline / "qwen2.5-coder-1.5b-instruct-q4_k_m.part"
    with (
        never_ending(begin_the_file) as hub,
        at_a_terminal(sys.executable, "-c", CODE, "model", "pull", HF_ENDPOINT=hub.url) as terminal,
    ):
        wait_until(lambda: part.exists() and hub.paths)
        terminal.read(0.5)
        assert terminal.interrupt(how) == 130, terminal.shown
        ended(terminal)
    assert part.read_bytes() == CONTENT[: len(part.read_bytes())]
    assert {file.suffix for file in offline.iterdir()} <= {".part", ".lock"}


@HOW
def test_pip_is_interrupted_with_the_pull_that_started_it(how: str, offline: Path) -> None:
    with (
        never_ending(nothing) as index,
        at_a_terminal(
            sys.executable, "-c", CODE, "model", "pull", PIP_INDEX_URL=f"{index.url}/simple"
        ) as terminal,
    ):
        wait_until(lambda: index.paths)
        terminal.read(0.2)
        assert terminal.left()
        assert terminal.interrupt(how) == 130, terminal.shown
        ended(terminal)
    assert [file.suffix for file in offline.iterdir() if file.suffix != ".part"] == [".lock"]
    assert list(Path(os.environ["TMPDIR"]).iterdir()) == []


def ended(terminal: Terminal) -> None:
    """Hold that the last line says it, nothing else complains, and no process is left."""
    said = terminal.said()
    assert said[-1] == "reflexfix: interrupted", said
    assert not [line for line in said if "Traceback" in line or "Error" in line], said
    assert len([line for line in said if "interrupted" in line]) == 1, said
    wait_until(lambda: not terminal.left(), seconds=5)


@HOW
@pytest.mark.container
def test_packages_that_are_interrupted_leave_no_image_and_no_folder(
    how: str, offline: Path, engine: Engine, sandbox_image: str
) -> None:
    recipe = images.Recipe(packages=("a-package-of-this-test",))
    with (
        never_ending(nothing) as index,
        at_a_terminal(
            *(sys.executable, "-m", "reflexfix", "sandbox", "build", "--with", recipe.packages[0]),
            PIP_INDEX_URL=f"{index.url}/simple",
        ) as terminal,
    ):
        wait_until(lambda: index.paths)
        assert terminal.interrupt(how) == 130, terminal.shown
        ended(terminal)
    assert images.find(engine, recipe) is None
    assert list(Path(os.environ["TMPDIR"]).iterdir()) == []


MARK = f"interrupted-{os.getpid()}"
SLOW = f"FROM {images.BASE} AS python\nRUN echo half > /{MARK} && sleep 300\n"


@HOW
@pytest.mark.container
def test_a_build_that_is_interrupted_leaves_no_tag_and_no_container(
    how: str, offline: Path, engine: Engine, sandbox_image: str, tmp_path: Path
) -> None:
    if not [
        tag for image in engine.client.images.list() for tag in image.tags if tag == images.BASE
    ]:
        pytest.skip(f"{images.BASE} is not here")
    tree = tmp_path / "tree"
    for name in ("reflexfix", "sandbox", "prompts"):
        shutil.copytree(ROOT / name, tree / name)
    (tree / "Dockerfile.sandbox").write_text(SLOW)
    command = (sys.executable, "-P", "-m", "reflexfix", "sandbox", "build")
    with at_a_terminal(*command, PYTHONPATH=str(tree)) as terminal:
        wait_until(lambda: building(engine))
        terminal.read(0.2)
        assert terminal.interrupt(how) == 130, terminal.shown
        ended(terminal)
    wait_until(lambda: not building(engine), seconds=15)
    tag = next(line.split()[1] for line in terminal.said() if line.startswith("building "))
    assert tag.startswith(images.REPOSITORY)
    assert tag not in {tag for image in images.images(engine) for tag in image.tags}


def building(engine: Engine) -> list[str]:
    """The containers, running or not, in which the slow step is run."""
    found = engine.client.api.containers(all=True)
    return [one["Id"] for one in found if MARK in one["Command"]]


DEBOOTSTRAP = """#!/bin/sh
trap 'sleep 1; rm "$3/mounted"; exit 1' INT TERM
mkdir -p "$3" && touch "$3/mounted" "$STARTED"
sleep 300 & wait
"""


@HOW
@pytest.mark.skipif(os.geteuid() != 0, reason="debootstrap is run by root only")
def test_debootstrap_may_unmount_before_its_folder_is_removed(
    how: str, offline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/debootstrap").write_text(DEBOOTSTRAP)
    (tmp_path / "bin/debootstrap").chmod(0o755)
    code = (
        "import os, shutil; from reflexfix import cli; from reflexfix.containers import image\n"
        "image.mirror = lambda: 'nowhere'\n"
        "remove = shutil.rmtree\n"
        "def rmtree(path, *a, **k):\n"
        "    mounted = os.path.join(path, 'root', 'mounted')\n"
        "    assert not os.path.exists(mounted), 'still mounted'\n"
        "    remove(path, *a, **k)\n"
        "shutil.rmtree = rmtree\n"
        "cli.setup.sandbox_build.callback = lambda **_: list(image.debootstrap(None))\n"
        "cli.main()"
    )
    started = tmp_path / "started"
    with at_a_terminal(
        *(sys.executable, "-c", code, "sandbox", "build"),
        PATH=f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        STARTED=str(started),
    ) as terminal:
        wait_until(started.exists)
        assert terminal.interrupt(how) == 130, terminal.shown
        ended(terminal)
    assert list(Path(os.environ["TMPDIR"]).iterdir()) == []


WAITING = """
import os, signal, sys, time
from reflexfix.attempt import Limits
from reflexfix.containers import container as containers, engine as engines
from reflexfix.containers.sandbox import ContainerSandbox

create, attach = containers.create, containers.attach
once = []

def interrupted(stage):
    if stage == sys.argv[2] and not once:
        once.append(stage)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)

def created(*arguments):
    interrupted("creating")
    return create(*arguments)

def attached(*arguments):
    interrupted("created")
    return attach(*arguments)

containers.create, containers.attach = created, attached
with ContainerSandbox(engines.connect(), sys.argv[1], Limits(), pool=int(sys.argv[3])) as sandbox:
    sandbox.missing(("json",))
"""


@pytest.mark.container
@pytest.mark.parametrize("stage", ["creating", "created"])
@pytest.mark.parametrize("pool", [0, 1])
def test_ctrl_c_while_a_container_is_waited_for_leaves_none(
    pool: int, stage: str, engine: Engine, sandbox_image: str, no_container_left: None
) -> None:
    command = [sys.executable, "-c", WAITING, sandbox_image, stage, str(pool)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert done.stderr.rstrip().endswith(b"KeyboardInterrupt")
