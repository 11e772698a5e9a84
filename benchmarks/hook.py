"""What the hook costs when tests pass, above running the same tests in a warm container.

    python benchmarks/hook.py [--files 500] [--megabytes 20] [--rounds 10]

A project of that many files and that size is made and staged. In turn: `reflexfix hook`, as git
calls it; and the same tests in a container that is started already and holds the files already
(`docker exec` of pytest there). Prints the medians with range, and the difference; then how much of
it each part takes.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from reflexfix import assemble
from reflexfix.hook import early, environment, git, settings, tree, work
from reflexfix.hook import plan as plans
from reflexfix.hook.environment import Need

ROOT = Path(__file__).resolve().parent.parent


def make(folder: Path, files: int, megabytes: float) -> None:
    """Make a project: modules, a test file for every tenth, and data, half of it random."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    modules = files * 8 // 10
    size = int(megabytes * 2**20 / files)
    source = random.Random(0)
    for n in range(files):
        path = folder / (f"pkg/m{n}.py" if n < modules else f"data/d{n}.bin")
        path.parent.mkdir(exist_ok=True)
        if n < modules:
            text = f"def f{n}(x):\n    return x + {n}\n\n\n"
            comment = "# " + "".join(source.choices("abcdefghij klmnop", k=76)) + "\n"
            path.write_text(text + comment * max(0, (size - len(text)) // len(comment)))
        else:
            path.write_bytes(source.randbytes(size))
    (folder / "pkg/__init__.py").write_text("")
    (folder / "tests").mkdir()
    for n in range(0, modules, 10):
        text = f"from pkg.m{n} import f{n}\n\n\ndef test_it():\n    assert f{n}(1) == {n + 1}\n"
        (folder / f"tests/test_m{n}.py").write_text(text)
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=folder, env=environment, check=True)


@contextmanager
def warm(folder: Path, image: str, limits: object) -> Iterator[Callable[[], None]]:
    """Keep a container with the files in it, and give what runs the tests there."""
    engine = assemble.engine()
    made = engine.client.containers.run(
        image, ["infinity"], entrypoint=["sleep"], detach=True, network_mode="none",
        tmpfs={"/tmp": "rw,exec,size=512m,mode=1777"}, user="65534:65534", nano_cpus=int(2e9),
    )  # fmt: skip
    try:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(folder, "work", filter=lambda e: None if ".git" in e.name else e)
        name = str(made.id)
        feed = ["docker", "exec", "-i", name, "tar", "-C", "/tmp", "-x", "--no-same-owner"]
        subprocess.run(feed, input=packed.getvalue(), check=True)
        command = ["docker", "exec", "-w", "/tmp/work", name, "python3", "-m", "pytest", "-q"]

        def run() -> None:
            done = subprocess.run(command, capture_output=True)
            assert done.returncode == 0, done.stdout.decode()

        yield run
    finally:
        made.remove(force=True)


def hook(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reflexfix", "hook"], cwd=folder, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0 and b" passed" in done.stdout, done.stdout + done.stderr


def seconds(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def told(name: str, values: list[float]) -> str:
    middle = statistics.median(values)
    return f"{name}: {middle:.2f} s [{min(values):.2f}-{max(values):.2f}]"


def parts(folder: Path) -> None:
    """Say how long each part takes, once."""
    found = git.find(folder)
    assert found is not None
    began = time.monotonic()
    files = tree.staged(found)
    print(f"  reading what is staged: {time.monotonic() - began:.2f} s "
          f"({len(files.files)} files, {files.size / 2**20:.1f} MB)")  # fmt: skip
    print(f"  packing: {seconds(files.packed):.2f} s")
    chosen, limits = settings.of_tree(files)
    plan = plans.plan(files)
    project = work.Project(files, folder, folder, chosen, limits, plan, Need())
    began = time.monotonic()
    with early.Early(lambda: files) as opened:
        sandbox = opened.sandbox(project)
        sandbox.idle[0].result()
        print(f"  connecting, and starting the container: {time.monotonic() - began:.2f} s")
        outcome = work.Outcome()
        print(
            f"  sending and running: {seconds(lambda: work.test(project, sandbox, outcome)):.2f} s"
        )
    python = [sys.executable, "-c", "import reflexfix.cli.hook, reflexfix.hook.work"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    print(f"  Python and its imports: {seconds(lambda: subprocess.run(python, env=env)):.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--megabytes", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="reflexfix-hook-") as name,
        environment.connected() as e,
    ):
        folder = Path(name)
        make(folder, options.files, options.megabytes)
        for step in environment.prepare(e, Need(), folder):
            print(step)
        hooks, plain = [], []
        with warm(folder, environment.ready(e, Need()), settings.PROJECT) as run:
            for _ in range(options.rounds):
                hooks.append(seconds(lambda: hook(folder)))
                plain.append(seconds(run))
        print(told("reflexfix hook", hooks))
        print(told("the same tests in a warm container", plain))
        above = [a - b for a, b in zip(hooks, plain, strict=True)]
        print(told("above that, in pairs", above))
        parts(folder)
        print(f"load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
