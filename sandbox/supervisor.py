"""The first process of the container: takes one job from outside, serves it, and ends."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, "/")
from sandbox import process, wire
from sandbox.job import Host, HostGone
from sandbox.judging import judge

sys.path.remove("/")


def probe(host: Host, order: dict[str, Any]) -> None:
    """Say which modules the image does not have."""
    missing = [name for name in order["modules"] if not is_there(name)]
    host.say(say="probe", nonce=order["nonce"], missing=missing)


def is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def run_pytest(host: Host, order: dict[str, Any]) -> None:
    part("userrun").run_pytest(host, order)


def run_project(host: Host, order: dict[str, Any]) -> None:
    if order["runner"] == "cargo":
        part("project_cargo").run_cargo(host, order)
    else:
        part("project").run_project(host, order)


def give_values(host: Host, order: dict[str, Any]) -> None:
    part("values").give_values(host, order)


def part(name: str) -> Any:
    """Import what only some jobs need; nothing of a user's can be imported yet."""
    sys.path.insert(0, "/")
    try:
        return importlib.import_module(f"sandbox.{name}")
    finally:
        sys.path.remove("/")


JOBS: dict[str, Callable[[Host, dict[str, Any]], None]] = {
    "judge": judge,
    "probe": probe,
    "pytest": run_pytest,
    "project": run_project,
    "values": give_values,
}
"""What S can be asked to do; an image with a Rust compiler knows more."""
RUST = "/sandbox/libreflexfix_wire.so"
"""What only an image with a Rust compiler has."""


def facts() -> dict[str, Any]:
    """Tell what this container's limits are from within."""
    tmp = os.statvfs("/tmp")
    return {
        "uid": os.getuid(),
        "tmp_bytes": tmp.f_blocks * tmp.f_frsize,
        "tmp_inodes": tmp.f_files,
        "interfaces": sorted(os.listdir("/sys/class/net"))
        if os.path.exists("/sys/class/net")
        else [],
        "memory_bytes": first_number("memory.max", "memory/memory.limit_in_bytes"),
        "pids": first_number("pids.max", "pids/pids.max"),
        "root_is_read_only": bool(os.statvfs("/").f_flag & os.ST_RDONLY),
        "seccomp": status_field("Seccomp"),
        "no_new_privileges": status_field("NoNewPrivs"),
        "capabilities": status_field("CapEff"),
        "sees_memory_kills": process.out_of_memory_kills() >= 0,
    }


def first_number(*names: str) -> int:
    """Read the first of these cgroup files that holds a number; 0 when none does."""
    for name in names:
        with contextlib.suppress(OSError, ValueError):
            return int(process.text_of(f"/sys/fs/cgroup/{name}"))
    return 0


def status_field(name: str) -> str:
    for line in process.text_of("/proc/self/status").splitlines():
        if line.startswith(name + ":"):
            return line.split(":", 1)[1].strip()
    return ""


WARM = "bisect collections.abc copy datetime functools heapq itertools json math operator re typing"


def warm() -> None:
    """Import what most tests and candidates use, once, before anybody waits for it.

    Not more than that: every page that this process has is paid for at every fork. What is not
    here, a candidate imports once and its forks share.
    """
    for name in WARM.split():
        importlib.import_module(name)
    if os.path.exists(RUST):
        from sandbox import rust

        JOBS.update({"rust": rust.judge, "rust-tests": rust.build_tests, "probe": rust.probe})
        rust.warm()
    gc.collect()
    gc.freeze()


def main(arguments: list[str]) -> None:
    """Serve one job, then end."""
    process.set_dumpable(False)
    process.ordinary_signals()
    beat_seconds, life_seconds = (float(argument) for argument in arguments)
    host = Host(beat_seconds, life_seconds)
    warm()
    host.last_beat = time.monotonic()
    try:
        host.say(say="ready", python=sys.version.split()[0], facts=facts())
        order = host.wait_for_job()
        JOBS[order["do"]](host, order)
    except (HostGone, wire.Closed, BrokenPipeError):
        process.kill_all_but(set())
    os._exit(0)  # nothing is left to be tidied up: the container ends with this process


if __name__ == "__main__":
    main(sys.argv[1:])
