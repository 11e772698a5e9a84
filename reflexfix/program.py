"""Run another program to its end; interrupted, let it clean up first, then see that it is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence

CLEANUP_SECONDS = 10.0
"""How long a program that was told to end may take, to unmount or to remove what it made."""


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Give how a program ended and what it printed.

    It is in a process group of its own: Ctrl-C reaches it and its children once, from here, and
    not again by a kill in the middle of their cleaning up.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        process_group=0,
    ) as process:
        try:
            out, err = process.communicate()
        finally:
            if process.poll() is None:
                _end(process)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _end(process: subprocess.Popen[str]) -> None:
    """Interrupt the program and its children, and kill what has not ended after a while."""
    try:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(CLEANUP_SECONDS)  # what it leaves behind may hold its pipes open
    except subprocess.TimeoutExpired:
        pass
    finally:  # a second Ctrl-C comes here at once
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
