"""A container engine of the tests' own, in a network namespace of its own, to be broken at will."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from reflexfix.containers import engine as engines
from reflexfix.containers.engine import Engine
from reflexfix.errors import SandboxTrouble


class Daemon:
    """A dockerd that can be started, stopped and killed; its data lies below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"unix://{folder}/engine.sock"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it where it cannot touch another engine's bridge, and wait until it answers."""
        command = ["unshare", "--net", "dockerd", "--host", self.url]
        command += ["--data-root", f"{self.folder}/data", "--exec-root", f"{self.folder}/exec"]
        command += ["--pidfile", f"{self.folder}/pid", "--bridge=none", "--iptables=false"]
        command += ["--ip-forward=false"]
        (self.folder / "exec/containerd/containerd.pid").unlink(missing_ok=True)
        (self.folder / "pid").unlink(missing_ok=True)
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        for _ in range(120):
            with contextlib.suppress(SandboxTrouble):
                self.connect().client.close()
                return
            time.sleep(0.25)
        raise AssertionError((self.folder / "log").read_text()[-1000:])

    def connect(self) -> Engine:
        return engines.connect(self.url, seconds=20)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop or kill it, and its containerd with it, as a crash of the machine's service does."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(30)
        for pid in self._below():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _below(self) -> list[int]:
        """List the processes that the daemon left: containerd and shims with our folder in args."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if str(self.folder).encode() in (entry / "cmdline").read_bytes():
                        found.append(int(entry.name))
        return [pid for pid in found if pid != os.getpid()]

    def copy_image(self, source: Engine, image: str) -> None:
        tag = source.client.images.get(image).tags[0]
        with closing(self.connect().client) as mine:
            mine.images.load(b"".join(source.client.images.get(image).save(named=tag)))

    def running(self) -> int:
        with closing(self.connect().client) as client:
            return len(client.api.containers(all=True))


@contextmanager
def own_engine(folder: Path) -> Iterator[Daemon]:
    daemon = Daemon(folder)
    daemon.start()
    try:
        yield daemon
    finally:
        daemon.end(signal.SIGKILL)
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        inside = [line.split()[1] for line in mounts if str(folder) in line]
        for path in sorted(inside, reverse=True):
            subprocess.run(["umount", "-l", path], capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)
