"""What a process of the container does to itself and to others: flags, descriptors, death."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import signal
import time
from collections.abc import Callable
from typing import Any

PR_SET_DUMPABLE = 4
LOST = 70
"""The status of a process of ours that could not do what it was forked for."""
_LIBC = ctypes.CDLL(None, use_errno=True)


def set_dumpable(flag: bool) -> None:
    """Let (or forbid) others of the same user open this process's memory and descriptors."""
    _LIBC.prctl(PR_SET_DUMPABLE, int(flag), 0, 0, 0)


def offer_to_the_kernel(score: int) -> None:
    """Say how gladly this process is killed when memory runs out: 1000 is before all others.

    A process that is not dumpable may not write its own score, so it is dumpable meanwhile.
    """
    set_dumpable(True)
    with contextlib.suppress(OSError):  # the candidate may have left no descriptor to write with
        descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(descriptor, b"%d" % score)
        os.close(descriptor)
    set_dumpable(False)


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


def text_of(path: str) -> str:
    """Read a small file of the kernel's. Raises OSError."""
    with open(path) as file:
        return file.read()


def is_dead(pid: int) -> bool:
    """Whether a process has ended, collected by its parent or not.

    One whose first thread has ended looks the same while its other threads live.
    """
    try:
        state = text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()[0]
        return state in "ZX" and len(os.listdir(f"/proc/{pid}/task")) <= 1
    except OSError:
        return True


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
    to all is the only kill that no fork can escape. The dead children of a kept process are its
    own to collect.
    """
    statuses = reap()
    deadline = time.monotonic() + seconds
    while alive := [pid for pid in others(keep) if not is_dead(pid)]:
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


def empty_folder(folder: str, seconds: float = 2.0) -> None:
    """Remove all that a test left in the only writable place, whatever its names or modes.

    Folders are brought to the top before they are emptied: they may be nested deeper than a
    path can say. Ends in time even if somebody goes on writing meanwhile.
    """
    until, number = time.monotonic() + seconds, itertools.count()
    while (entries := _inside(folder)) and time.monotonic() < until:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                _try(os.unlink, entry.path)
                continue
            _try(os.chmod, entry.path, 0o700)
            for inner in _inside(entry.path):
                if inner.is_dir(follow_symlinks=False):
                    _try(os.chmod, inner.path, 0o700)
                    _try(os.rename, inner.path, f"{folder}/.emptied-{next(number)}")
                else:
                    _try(os.unlink, inner.path)
            _try(os.rmdir, entry.path)


def _inside(path: str) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(path))
    except OSError:
        return []


def _try(act: Callable[..., None], *arguments: Any) -> None:
    with contextlib.suppress(OSError):
        act(*arguments)


def out_of_memory_kills() -> int:
    """Count how often the kernel has killed in this container (cgroup v2, then v1); -1 unknown."""
    for name in ("memory.events", "memory/memory.oom_control"):
        try:
            lines = text_of(f"/sys/fs/cgroup/{name}").splitlines()
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
            return f"was killed by {signal.Signals(number).name}"
        return f"was killed by signal {number}"
    return f"exited with status {os.waitstatus_to_exitcode(status)}"
