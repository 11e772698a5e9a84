"""One container, used once: started with every limit that the engine knows, then gone."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from docker.errors import APIError, DockerException, NotFound
from docker.types import LogConfig, Ulimit

from reflexfix import __version__, assets
from reflexfix.attempt import Limits
from reflexfix.containers.engine import Engine
from reflexfix.containers.line import Line
from reflexfix.errors import SandboxTrouble

APP = "reflexfix.app"
LIFE_SECONDS = 3600
BEAT_SECONDS = 0.2
MISSED_SECONDS = 1.0
"""How long the supervisor waits for a heartbeat before it ends its container.

With six idle loops on two cores the longest gap was 0.4 s, and 0.6 s with a busy thread in this
process too. A container lost to a longer one is replaced, or its evaluation is run once more.
"""
START_SECONDS = 30
LEAVING_SECONDS = 2
"""How long a container whose line has ended is waited for before it is removed by force."""
UNHEARD = 3
"""How often an engine is asked to remove a container before it counts as away."""
REMOVALS = 100
"""How often a container that will not go is asked to, twenty times a second."""


@dataclass(eq=False)
class Container:
    """A started container whose supervisor waits for its one job."""

    engine: Engine
    id: str
    line: Line
    facts: dict[str, Any]
    python: str
    lender: Container | None = None
    """The idle container whose network namespace it uses, and nobody else meanwhile."""

    def discard(self) -> None:
        """End it and leave nothing of it. Safe to call more than once.

        It ends by itself when its line does, and is removed by itself: to wait for that costs the
        engine less than to be told. Whatever has not gone so is removed.
        """
        self.line.close()
        if not goes_by_itself(self.engine, self.id):
            remove(self.engine, self.id)


def start(engine: Engine, image: str, limits: Limits, lender: Container | None = None) -> Container:
    """Create, attach, start, and wait until the supervisor is ready.

    A `lender` is an idle container whose empty network namespace this one uses. Raises
    SandboxTrouble; nothing is left behind then.
    """
    with contextlib.ExitStack() as undo, trouble("A container could not be started"):
        container_id = create(engine, image, limits, lender)
        undo.callback(remove, engine, container_id)
        line = attach(engine, container_id)
        undo.callback(line.close)
        engine.client.api.start(container_id)
        ready = line.receive(START_SECONDS)
        facts, python = ready["facts"], str(ready["python"])
        container = Container(engine, container_id, line, facts, python, lender)
        undo.pop_all()
        return container


@contextlib.contextmanager
def trouble(what: str) -> Iterator[None]:
    """Say what the engine could not do. Raises SandboxTrouble."""
    try:
        yield
    except (DockerException, requests.RequestException, OSError, LookupError) as error:
        raise SandboxTrouble(
            f"{what}: {explain(error)}", hint="`reflexfix doctor` checks engine and image"
        ) from error


def create(engine: Engine, image: str, limits: Limits, lender: Container | None = None) -> str:
    """Create the container with the settings that were verified to start together."""
    api = engine.client.api
    options = host_options(engine, limits)
    if lender is not None:
        options["network_mode"] = f"container:{lender.id}"
    config = api.create_host_config(**options)
    made = api.create_container(
        image,
        command=[str(MISSED_SECONDS), str(LIFE_SECONDS)],
        host_config=config,
        user="65534:65534",
        stdin_open=True,
        tty=False,
        detach=False,  # so that the engine closes standard input with our connection
        labels=labels(),
    )
    return str(made["Id"])


def host_options(engine: Engine, limits: Limits) -> dict[str, Any]:
    """Spell out every wall of the container."""
    memory = f"{limits.memory_mb}m"
    return {
        "network_mode": "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges", f"seccomp={seccomp(engine)}"],
        "pids_limit": limits.processes,
        "mem_limit": memory,
        "memswap_limit": memory,  # equal to the memory limit, or swap would come on top
        "nano_cpus": int(limits.cpus * 1e9),
        "tmpfs": {"/tmp": tmp_options(engine, limits)},
        "ulimits": ulimits(engine, limits),
        "log_config": LogConfig(type="none"),  # the default driver writes all output to disk
        "auto_remove": True,
        "ipc_mode": "none" if engine.name == "docker" else "private",
    }


def ulimits(engine: Engine, limits: Limits) -> list[Ulimit]:
    """Give the limits of each process; Podman raises what it is not told, if it can."""
    wanted = {"nofile": 256, "fsize": limits.file_mb * 2**20, "core": 0}
    if engine.name == "podman":
        wanted["nproc"] = 4096
    return [Ulimit(name=name, soft=most, hard=most) for name, most in wanted.items()]


def tmp_options(engine: Engine, limits: Limits) -> str:
    """Give the options of the only writable place; Podman knows none for the number of files."""
    options = ["rw", "exec" if limits.tmp_exec else "noexec", "nosuid", "nodev"]
    options += [f"size={limits.tmp_mb}m", "mode=1777"]
    if engine.name == "docker":
        options.append(f"nr_inodes={limits.tmp_files}")
    return ",".join(options)


def seccomp(engine: Engine) -> str:
    """Give the profile as the engine takes it: Docker inline, Podman as a path it can read."""
    if engine.name == "docker":
        return assets.seccomp_profile()
    return str(assets.ROOT / "sandbox" / "seccomp.json")


def labels() -> dict[str, str]:
    """Say whose this container is, so that a later run can tell an orphan from a neighbour's."""
    return {
        APP: "sandbox",
        "reflexfix.version": __version__,
        "reflexfix.owner": owner(os.getpid()),
        "reflexfix.deadline": str(int(time.time()) + LIFE_SECONDS),
    }


def owner(pid: int) -> str:
    """Name a process so that a later one with the same number is another: pid@start@world."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        start = "?" if fields[0] in "ZX" else fields[19]  # dead, if not buried
        return f"{pid}@{start}@{world()}"
    except (OSError, IndexError):
        return f"{pid}@?@{world()}"


def world() -> str:
    """Name where process numbers mean the same: this boot, and this pid namespace; "" unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}.{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def attach(engine: Engine, container_id: str) -> Line:
    """Open the line before the container starts, so that no byte of it is missed."""
    wrapped = engine.client.api.attach_socket(
        container_id, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
    )
    attached = getattr(wrapped, "_sock", wrapped)
    return Line(attached, getattr(wrapped, "_response", wrapped), wrapped)


def goes_by_itself(engine: Engine, container_id: str) -> bool:
    """Wait a moment for a container whose line has ended; whether the engine says that it is gone.

    Docker alone is asked: Podman has no word for "removed" here.
    """
    if engine.name != "docker":
        return False
    try:
        engine.client.api.wait(container_id, timeout=LEAVING_SECONDS, condition="removed")
    except NotFound:
        return True
    except (APIError, requests.RequestException, OSError):
        return False
    return False  # it should be; `remove` looks


def remove(engine: Engine, *ids: str) -> None:
    """Remove containers that may be on their way out by themselves, and wait until they are gone.

    One that lends its network to another may have to wait for that one, so all are tried in turn.
    An engine that is away keeps nothing alive: the line that a container lives by is gone with it.
    """
    left, unheard = dict.fromkeys(ids, ""), 0
    for _ in range(REMOVALS):
        for one in [*left]:
            try:
                engine.client.api.remove_container(one, force=True, v=True)
                del left[one]
            except NotFound:
                del left[one]
            except APIError as error:
                left[one] = explain(error)
                if "no such container" in left[one].lower():
                    del left[one]
            except (requests.RequestException, OSError) as error:
                unheard += 1  # it may have been one connection that broke, and not the engine
                if unheard == UNHEARD or isinstance(error, requests.Timeout):
                    return
        if not left:
            return
        time.sleep(0.05)
    raise SandboxTrouble(f"A container stayed behind: {' '.join(left.values())}")


def explain(error: Exception) -> str:
    text = str(getattr(error, "explanation", None) or error)
    return (text.splitlines() or [type(error).__name__])[0][:300]


def weaknesses(container: Container, limits: Limits) -> list[str]:
    """Name what this engine does not hold of what was asked; the caller must say it."""
    facts, found = container.facts, []
    if not 0 < facts.get("memory_bytes", 0) <= limits.memory_mb * 2**20:
        found.append("no memory limit")
    if not 0 < facts.get("pids", 0) <= limits.processes:
        found.append("no limit on processes")
    if facts.get("tmp_bytes", 0) > limits.tmp_mb * 2**20:
        found.append("/tmp is larger than asked")
    if not 0 < facts.get("tmp_inodes", 0) <= limits.tmp_files:
        found.append("no limit on the number of files in /tmp")
    if not facts.get("sees_memory_kills"):
        found.append("running out of memory cannot be told from a crash")
    return found


def broken_walls(container: Container) -> list[str]:
    """Name what must hold before anything untrusted is run, and does not."""
    try:
        facts = container.facts
        walls = {
            "the user is not nobody": facts["uid"] == 65534,
            "there is a network": set(facts["interfaces"]) <= {"lo"},
            "the root file system can be written": facts["root_is_read_only"] is True,
            "the seccomp profile is not in force": facts["seccomp"] == "2",
            "new privileges can be gained": facts["no_new_privileges"] == "1",
            "capabilities are left": int(facts["capabilities"] or "1", 16) == 0,
        }
    except (LookupError, TypeError, ValueError) as error:
        return [f"it does not say what holds ({type(error).__name__}: {error})"]
    return [name for name, holds in walls.items() if not holds]


# ---------------------------------------------------------------- orphans


def sweep(engine: Engine) -> int:
    """Remove containers whose owner is no more; never those of another live run."""
    orphans = []
    for found in listed(engine):
        marks = found.get("Labels") or {}
        if is_orphan(marks.get("reflexfix.owner", ""), marks.get("reflexfix.deadline", "0")):
            orphans.append(str(found["Id"]))
    remove(engine, *orphans)
    return len(orphans)


def listed(engine: Engine, label: str = APP) -> list[dict[str, Any]]:
    """List containers in any state: the sandbox's, or all where no label is asked for.

    Podman is asked in its own protocol: its answer to Docker's question fails for as long as one
    container is half removed. Raises SandboxTrouble.
    """
    api, filters = engine.client.api, {"label": [label]} if label else {}
    with trouble("The engine does not list its containers"):
        if engine.name == "podman":
            options = {"all": "true", "filters": json.dumps(filters)}
            url = f"{api.base_url}/v4.0.0/libpod/containers/json"
            reply = api.get(url, params=options, timeout=api.timeout)
            reply.raise_for_status()
            return list(reply.json())
        return list(api.containers(all=True, filters=filters))


def is_orphan(mark: str, deadline: str) -> bool:
    """Say whether the process that made a container is gone for certain."""
    if deadline.isdigit() and time.time() > int(deadline):
        return True
    pid, _, rest = mark.partition("@")
    start, _, where = rest.partition("@")
    if not (pid.isdigit() and start.isdigit() and where) or where != world():
        return False
    return owner(int(pid)) != mark and not is_hidden(int(pid))


def is_hidden(pid: int) -> bool:
    """Whether a process lives that does not show itself in /proc."""
    if Path(f"/proc/{pid}/stat").exists():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
