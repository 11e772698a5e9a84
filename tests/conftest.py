"""What tests share: the engine and its image, the cases beside the project, a command runner."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from reflexfix import assemble
from reflexfix.attempt import Limits
from reflexfix.containers import container as containers
from reflexfix.containers import engine as engines
from reflexfix.containers.engine import Engine
from reflexfix.containers.rust import RustSandbox, limits_for
from reflexfix.containers.sandbox import ContainerSandbox
from reflexfix.errors import SandboxTrouble

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The engine that a user's command would use; the tests that need one are skipped without.

    REFLEXFIX_TEST_ENGINE=podman runs them against a Podman service of their own.
    """
    with (
        podman_service() if os.environ.get("REFLEXFIX_TEST_ENGINE") == "podman" else usual() as url
    ):
        try:
            found = engines.connect(url)
        except SandboxTrouble as error:
            pytest.skip(str(error))
        yield found
        found.close()


@contextmanager
def usual() -> Iterator[str]:
    yield ""


@contextmanager
def podman_service() -> Iterator[str]:
    """Serve Podman's Docker-compatible protocol on a socket of our own."""
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed")
    with tempfile.TemporaryDirectory(prefix="rx-podman-") as folder:
        url = f"unix://{folder}/podman.sock"
        command = ["podman", "system", "service", "--time=0", url]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 20
            while not Path(folder, "podman.sock").exists() and time.monotonic() < deadline:
                time.sleep(0.1)
            yield url
        finally:
            process.terminate()
            process.wait()


@pytest.fixture(scope="session")
def sandbox_image(engine: Engine) -> str:
    return assemble.ready_image(engine, (), print)


@pytest.fixture(scope="session")
def sandbox(engine: Engine, sandbox_image: str) -> Iterator[ContainerSandbox]:
    """One sandbox for all tests with the ordinary limits; each evaluation has its own container."""
    with ContainerSandbox(engine, sandbox_image, Limits(), pool=2) as opened:
        yield opened


@pytest.fixture(scope="session")
def rust_sandbox(engine: Engine) -> Iterator[RustSandbox]:
    """One sandbox for Rust, for what tests judge themselves."""
    image = assemble.ready_image(engine, (), print, "rust")
    with RustSandbox(engine, image, limits_for(Limits())) as opened:
        yield opened


@pytest.fixture
def shared() -> Path:
    if not (SHARED / "cases").is_dir():
        pytest.skip("the folder with cases and data beside the checkout is absent")
    return SHARED


@dataclass
class Ran:
    """How a command ended."""

    code: int
    out: bytes
    err: str


class Command:
    """Runs `reflexfix` as a user does, in a process of its own, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            k: v for k, v in os.environ.items() if not k.startswith(("OPENAI", "REFLEXFIX"))
        }
        self.env |= {"PYTHONPATH": str(ROOT)}

    def __call__(self, *arguments: str | Path, timeout: float = 120, **env: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "reflexfix", *map(str, arguments)],
            cwd=self.folder,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
        )
        return Ran(done.returncode, done.stdout, done.stderr.decode("utf-8"))


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


@pytest.fixture
def no_container_left(engine: Engine) -> Iterator[None]:
    """Hold that a test leaves no container of this process or its children behind."""
    before = {c["Id"] for c in ours(engine)}
    yield
    after = {c["Id"] for c in ours(engine)} - before
    assert not after


def ours(engine: Engine) -> list[dict[str, str]]:
    """List containers of this product, but for those of live commands that are not our children."""
    found = containers.listed(engine)
    return [one for one in found if not is_a_strangers(one["Labels"].get("reflexfix.owner", ""))]


def is_a_strangers(owner: str) -> bool:
    """Whether a container's owner lives, and is neither this process nor a descendant of it."""
    pid = owner.partition("@")[0]
    if not pid.isdigit() or containers.owner(int(pid)) != owner:
        return False
    while pid not in ("0", str(os.getpid())):
        try:
            pid = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            return False
    return pid == "0"
