"""A process that outlives a killed command for a moment, to remove what that had just begun.

A container that was started dies with its command: its standard input ends. One that was created
and not yet started has no input that could end; somebody has to remove it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time

from reflexfix.containers import container as containers
from reflexfix.containers import engine as engines
from reflexfix.errors import SandboxTrouble

PROGRAM = """
import sys
if not sys.stdin.buffer.read(1):
    from reflexfix.containers import guard
    guard.clear(sys.argv[1])
"""


class Guard:
    """Waits, asleep, for this process to end without having released it."""

    def __init__(self, url: str) -> None:
        path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-P", "-c", PROGRAM, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # what is typed at the terminal is not meant for it
        )

    def release(self, *, nothing_left: bool = True) -> None:
        """Let it go; where something may be left, it looks after that once. Safe to call again."""
        if not nothing_left:
            with contextlib.suppress(OSError):
                assert self.process.stdin is not None
                self.process.stdin.close()
            threading.Thread(target=self.process.wait, daemon=True).start()
            return
        with contextlib.suppress(OSError, ValueError):
            self.process.communicate(b"x")


def clear(url: str) -> None:
    """Remove the containers of commands that are no more, also those still being created."""
    found = engines.connect(url, seconds=10)
    for pause in (0.0, 0.3, 0.7, 2.0):
        time.sleep(pause)
        with contextlib.suppress(SandboxTrouble):  # one that is just being started, say
            containers.sweep(found)
