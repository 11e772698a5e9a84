"""What a process of the container does to itself and to others: flags, descriptors, death."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

PR_SET_DUMPABLE = 4
_LIBC = ctypes.CDLL(None, use_errno=True)


def set_dumpable(flag: bool) -> None:
    """Let (or forbid) others of the same user open this process's memory and descriptors."""
    _LIBC.prctl(PR_SET_DUMPABLE, int(flag), 0, 0, 0)


def be_killed_first() -> None:
    """Offer this process to the kernel when memory runs out, so that S and T outlive it."""
    set_dumpable(True)  # a non-dumpable process may not write its own score
    Path("/proc/self/oom_score_adj").write_text("1000")


def take_descriptors(keep: set[int], output: int) -> None:
    """Read from nothing, write to `output`, and close every descriptor that is not kept."""
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    low = 3
    for kept in sorted(keep):
        os.closerange(low, kept)
        low = kept + 1
    os.closerange(low, 4096)


def ordinary_signals() -> None:
    """Undo what the supervisor set for itself."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def others(keep: set[int]) -> list[int]:
    """List the processes of this container that are neither this one nor kept."""
    keep = keep | {os.getpid()}
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in keep]


def reap() -> dict[int, int]:
    """Collect every child that has ended: process id to wait status."""
    statuses: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            statuses[pid] = status
    return statuses


def kill_all_but(keep: set[int], seconds: float = 2.0) -> dict[int, int]:
    """End every process but these and this one, and give the wait statuses of the dead.

    A candidate that forks faster than it can be counted loses the kept ones too: one signal
    to all is the only kill that no fork can escape.
    """
    statuses = reap()
    deadline = time.monotonic() + seconds
    while alive := others(keep):
        if time.monotonic() > deadline:
            keep = set()
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        statuses |= reap()
        if time.monotonic() > deadline + seconds:
            break
    return statuses | reap()


def empty_folder(path: str) -> None:
    """Remove all that a test left in the only writable place, whatever its names or modes."""
    for entry in list(os.scandir(path)):
        try:
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)
                empty_folder(entry.path)
                os.rmdir(entry.path)
            else:
                os.unlink(entry.path)
        except OSError:
            continue


def out_of_memory_kills() -> int:
    """Count how often the kernel has killed in this container (cgroup v2, then v1); -1 unknown."""
    for name in ("memory.events", "memory/memory.oom_control"):
        try:
            lines = Path("/sys/fs/cgroup", name).read_text().splitlines()
        except OSError:
            continue
        counts = dict(line.split() for line in lines)
        if "oom_kill" in counts:
            return int(counts["oom_kill"])
    return -1


def describe(status: int) -> str:
    """Say in words how a process ended."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(number).name}"
        return f"killed by signal {number}"
    return f"exited with status {os.waitstatus_to_exitcode(status)}"
