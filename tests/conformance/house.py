"""What the conformance tests share: ready-made evaluations, and what must be left after each."""

from __future__ import annotations

import gc
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reflexfix.attempt import Candidate, Case, Limits, Mode, Result, Suite
from reflexfix.containers import container as containers
from reflexfix.containers.engine import Engine
from reflexfix.containers.sandbox import ContainerSandbox

STUB = b'def f(x):\n    """Double it."""\n    ...\n'
STUB_ASYNC = b'async def f(x):\n    """Double it."""\n    ...\n'
HASTY = Limits(test_seconds=1.0, total_seconds=3.0)
PRIVATE = "reflexfix-0123456789abcdef"


def candidate(code: str, is_async: bool = False, **more: bytes) -> Candidate:
    stub = STUB_ASYNC if is_async else STUB
    return Candidate(
        {"m.py": code.encode(), **more}, "m", "f", is_async, stub_files={"m.py": stub, **more}
    )


def case(
    source: str, name: str = "own 1", mode: Mode = "split", may_fall_back: bool = False
) -> Case:
    return Case(name, source, source, "own", mode, may_fall_back)


def suite(*sources: str, mode: Mode = "split", control: bool = True) -> Suite:
    """Make tests of these texts, with a control that calls `f(2)`."""
    cases = tuple(case(text, f"own {n}", mode) for n, text in enumerate(sources, 1))
    must_fail = case(f"assert f(2) == {PRIVATE!r}", "control", mode)
    return Suite(cases, None, must_fail if control else None, PRIVATE if control else "")


def run(sandbox: ContainerSandbox, code: str, *sources: str, mode: Mode = "split") -> list[Result]:
    """Judge this code by these tests and give their results."""
    verdict = sandbox.run(candidate(code), suite(*sources, mode=mode, control=False))
    return [judged.result for judged in verdict.judged]


def holds(condition: Callable[[], Any], seconds: float = 10.0) -> bool:
    """Whether a condition comes to hold in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


# ---------------------------------------------------------------- aftermath


def mine(engine: Engine) -> set[str]:
    """List the containers that this process owns."""
    mark = f"reflexfix.owner={containers.owner(os.getpid())}"
    found = containers.listed(engine, mark)
    return {one["Id"] for one in found}


def idle(*sandboxes: ContainerSandbox) -> set[str]:
    """List what these sandboxes keep ready, once all have started; of all, if none is named."""
    opened = sandboxes or [o for o in gc.get_objects() if type(o) is ContainerSandbox]
    futures = [future for sandbox in opened for future in list(sandbox.idle)]
    ready = [future.result() for future in futures if future.exception() is None]
    lenders = [one.lender for one in ready if one.lender is not None]
    lenders += [one for sandbox in opened for one in list(sandbox.lenders.free)]
    return {one.id for one in [*ready, *lenders]}


def strays(engine: Engine) -> set[str]:
    """List the containers of which a process lives and that the engine does not know."""
    found = set()
    names = "libpod-" if engine.name == "podman" else "docker[/-]"
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            found |= set(re.findall(f"{names}([0-9a-f]{{64}})", path.read_text()))
        except OSError:
            continue
    return found - {one["Id"] for one in containers.listed(engine, "")} if found else set()


def folders(engine: Engine, name: str) -> set[str]:
    """List what the engine keeps on disk, where this user may look."""
    root = Path(str(engine.client.info()["DockerRootDir"]), name)
    try:
        return set(os.listdir(root))
    except OSError:
        return set()


def nothing_is_left(engine: Engine) -> None:
    """Hold that no container is left beside the idle ones, and no process of a removed one."""
    assert holds(lambda: not mine(engine) - idle()), mine(engine) - idle()
    assert holds(lambda: not strays(engine)), strays(engine)


def nothing_is_on_disk(engine: Engine) -> None:
    """Hold that the engine's disk has no folder of a container that is gone."""

    def left() -> set[str]:
        known = {one["Id"] for one in containers.listed(engine, "")}
        return folders(engine, "containers") - known

    assert holds(lambda: not left()), left()
