"""What the sandbox promises beside its verdicts: each promise, and the attempt to break it.

Covered: the walls of a container as the engine and the code inside see them, what happens to
containers when a command dies, false frames, the pool, and that nothing grows. Not covered: the
engine's own faults (see test_faults.py) and refused system calls (see test_seccomp.py).
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from house import (
    HASTY,
    PRIVATE,
    candidate,
    holds,
    idle,
    mine,
    nothing_is_left,
    run,
    strays,
    suite,
)

from reflexfix.attempt import Candidate, Limits, Suite, UserTests, Verdict
from reflexfix.containers import container as containers
from reflexfix.containers import engine as engines
from reflexfix.containers import image as images
from reflexfix.containers import sandbox as sandboxes
from reflexfix.containers.container import Container
from reflexfix.containers.engine import Engine
from reflexfix.containers.line import Line
from reflexfix.containers.sandbox import ContainerSandbox
from reflexfix.errors import SandboxTrouble

pytestmark = pytest.mark.container

HONEST = "def f(x):\n    return 2 * x"
RIGHT = suite("assert f(2) == 4", "assert f(3) == 6", "assert f(4) == 8")


def answer(sandbox: ContainerSandbox, code: str) -> str:
    """Give the repr of what `f(2)` returns, as a failed comparison shows it."""
    (result,) = run(sandbox, code, "assert f(2) == 'nothing'")
    assert result.actual is not None, result
    return result.actual


# ---------------------------------------------------------------- the walls, from inside


def test_the_kernel_kills_the_candidate_first(sandbox: ContainerSandbox) -> None:
    code = "def f(x): return int(open('/proc/self/oom_score_adj').read())"
    assert answer(sandbox, code) == "1000"


def test_the_candidate_cannot_look_into_test_or_supervisor(sandbox: ContainerSandbox) -> None:
    code = """
import os
def f(x):
    tried, opened = 0, []
    for pid in (n for n in os.listdir('/proc') if n.isdigit() and int(n) != os.getpid()):
        for name in ('mem', 'maps', 'environ', 'fd', 'fdinfo', 'cwd', 'root', 'exe', 'io', 'auxv'):
            tried += 1
            try: os.open(f'/proc/{pid}/{name}', os.O_RDONLY); opened.append((pid, name))
            except PermissionError: pass
    return tried >= 20, opened
"""
    assert answer(sandbox, code) == "(True, [])"


SEARCH = """
import ctypes, os, re
def found(word):
    ctypes.CDLL(None).prctl(4, 1)
    with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb') as memory:
        for line in maps:
            start, end = (int(n, 16) for n in line.split()[0].split('-'))
            if line.split()[1].startswith('r') and '[v' not in line:
                memory.seek(start)
                try:
                    if re.search(word, memory.read(end - start)): return True
                except OSError: continue
    return False
def f(x):
    return found(rb'stands-in-a-tes[t]'), found(rb'foun[d].word.')
"""


def test_the_candidate_has_no_text_of_a_test_in_its_memory(sandbox: ContainerSandbox) -> None:
    """The same search finds a word that stands in the candidate's own file."""
    test = "'stands-in-a-test'\nassert f(2) == 0"
    (first, second) = run(sandbox, SEARCH, test, test)
    assert (first.actual, second.actual) == ("(False, True)", "(False, True)")


def test_there_is_no_network_but_a_loopback_that_is_down(sandbox: ContainerSandbox) -> None:
    code = "import os\ndef f(x): return sorted(os.listdir('/sys/class/net'))"
    assert answer(sandbox, code) == "['lo']"


def test_every_candidate_runs_as_nobody_without_any_power(sandbox: ContainerSandbox) -> None:
    code = """
def f(x):
    lines = dict(line.split(':', 1) for line in open('/proc/self/status'))
    return [lines[name].split() for name in ('Uid', 'Groups', 'CapEff', 'CapBnd', 'NoNewPrivs',
                                             'Seccomp')]
"""
    nobody = ["65534"] * 4
    nothing = ["0" * 16]
    assert answer(sandbox, code) == str([nobody, nobody[:1], nothing, nothing, ["1"], ["2"]])


def test_time_zone_locale_and_hashes_are_the_same_everywhere(sandbox: ContainerSandbox) -> None:
    code = """
import locale, os, sys, time
def f(x): return time.tzname[0], locale.setlocale(0), os.environ['PYTHONHASHSEED']
"""
    assert answer(sandbox, code) == "('UTC', 'C.UTF-8', '0')"


def test_all_limits_are_those_that_were_asked_for(engine: Engine, sandbox_image: str) -> None:
    limits = Limits(memory_mb=96, processes=20, tmp_mb=3, tmp_files=50, file_mb=1)
    code = """
import os, resource
def f(x):
    tmp = os.statvfs('/tmp')
    return (tmp.f_blocks * tmp.f_frsize, tmp.f_files, resource.getrlimit(resource.RLIMIT_FSIZE),
            resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_CORE))
"""
    with ContainerSandbox(engine, sandbox_image, limits, pool=0) as small:
        mib = 2**20
        sizes = (3 * mib, 50, (mib, mib), (256, 256), (0, 0))
        found = answer(small, code)
        if engine.name == "podman":  # it knows no limit for the number of files
            found = re.sub(r"^\((\d+), \d+", r"(\1, 50", found)
        assert found == str(sizes)
        many = "def f(x): return len(bytearray(10**8))"
        assert run(small, many, "assert f(2) == 10**8")[0].status == "memory"
        forks = """
import os, time
def f(x):
    for n in range(100):
        try:
            if os.fork() == 0: time.sleep(60)
        except OSError: return n < 20
"""
        assert run(small, forks, "assert f(2)")[0].status == "passed"


# ---------------------------------------------------------------- the walls, from outside


@pytest.fixture(scope="module")
def inspected(engine: Engine, sandbox: ContainerSandbox) -> dict[str, Any]:
    """What the engine says of one of our containers."""
    return inspect(engine, sandbox.idle[0].result().id)


def inspect(engine: Engine, container: str) -> dict[str, Any]:
    found: dict[str, Any] = engine.client.api.inspect_container(container)
    return found


def test_every_wall_is_up(inspected: dict[str, Any], engine: Engine) -> None:
    host = inspected["HostConfig"]
    kind, _, lender = host["NetworkMode"].partition(":")
    if kind == "container":
        kind = inspect(engine, lender)["HostConfig"]["NetworkMode"]
    assert kind == "none" and host["ReadonlyRootfs"] is True
    assert not host["CapAdd"] and not host["Privileged"]
    if engine.name == "docker":  # Podman lists them one by one; `broken_walls` looks from within
        assert host["CapDrop"] == ["ALL"]
    assert "no-new-privileges" in host["SecurityOpt"]
    assert any(option.startswith("seccomp=") for option in host["SecurityOpt"])
    assert host["Memory"] == host["MemorySwap"] == 512 * 2**20
    assert host["PidsLimit"] == 64 and host["NanoCpus"] == 10**9
    limits = {u["Name"].removeprefix("RLIMIT_").lower(): u["Hard"] for u in host["Ulimits"]}
    if engine.name == "podman":
        assert limits.pop("nproc") == 4096
    assert limits == {"nofile": 256, "fsize": 16 * 2**20, "core": 0}
    assert "noexec" in host["Tmpfs"]["/tmp"]
    assert ("nr_inodes=4096" in host["Tmpfs"]["/tmp"]) is (engine.name == "docker")
    own = "none" if engine.name == "docker" else "shareable"  # Podman's word for one of its own
    assert host["PidMode"] in ("", "private") and host["IpcMode"] == own
    assert inspected["Config"]["User"] == "65534:65534"


def test_nothing_of_the_host_is_mounted_and_nothing_is_logged(inspected: dict[str, Any]) -> None:
    host = inspected["HostConfig"]
    assert not host["Binds"] and not host["VolumesFrom"] and not host["Devices"]
    assert all(mount["Type"] == "tmpfs" for mount in inspected["Mounts"])
    assert host["LogConfig"]["Type"] == "none" and not inspected["LogPath"]


def test_the_image_is_named_by_its_id_and_the_container_is_removed_by_itself(
    inspected: dict[str, Any], sandbox_image: str, engine: Engine
) -> None:
    assert inspected["Image"] == sandbox_image
    assert re.fullmatch("sha256:[0-9a-f]{64}", sandbox_image)
    if engine.name == "docker":  # Podman tells the name that the id has
        assert inspected["Config"]["Image"] == sandbox_image
    if engine.name == "docker":  # Podman does not tell; that it is removed is seen below
        assert inspected["HostConfig"]["AutoRemove"] is True
    assert inspected["Config"]["StdinOnce"] is (engine.name == "docker")
    assert inspected["Config"]["Tty"] is False


def test_labels_say_whose_it_is(inspected: dict[str, Any]) -> None:
    marks = inspected["Config"]["Labels"]
    assert marks[containers.APP] == "sandbox"
    assert marks["reflexfix.owner"] == containers.owner(os.getpid())
    assert int(marks["reflexfix.deadline"]) > time.time()


# ---------------------------------------------------------------- orphans

MAKES_ONE = """
import sys, time
from reflexfix.attempt import Limits
from reflexfix.containers import container, engine
print(container.create(engine.connect({url!r}), {image!r}, Limits()), flush=True)
time.sleep(60)
"""


@contextlib.contextmanager
def neighbour(code: str, engine: Engine, image: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that uses the sandbox."""
    program = code.replace("{url!r}", repr(engine.url)).replace("{image!r}", repr(image))
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def exists(engine: Engine, container: str) -> bool:
    return container in {c["Id"] for c in containers.listed(engine, "")}


def test_the_sweep_takes_orphans_and_leaves_the_containers_of_live_neighbours(
    engine: Engine, sandbox_image: str
) -> None:
    with neighbour(MAKES_ONE, engine, sandbox_image) as child:
        assert child.stdout is not None
        made = child.stdout.readline().strip()
        containers.sweep(engine)
        assert exists(engine, made)
        child.kill()
        child.wait()
        containers.sweep(engine)
        assert not exists(engine, made)


MAKES_A_PAIR = """
import sys, time
from reflexfix.attempt import Limits
from reflexfix.containers import container, engine
found = engine.connect({url!r})
lender = container.start(found, {image!r}, Limits())
print(container.create(found, {image!r}, Limits(), lender), flush=True)
time.sleep(60)
"""


def test_the_sweep_takes_a_container_whose_network_another_orphan_uses(
    engine: Engine, sandbox_image: str
) -> None:
    with neighbour(MAKES_A_PAIR, engine, sandbox_image) as child:
        assert child.stdout is not None
        made = child.stdout.readline().strip()
        assert exists(engine, made)
    started = time.monotonic()
    containers.sweep(engine)
    assert not exists(engine, made)
    assert time.monotonic() - started < 4
    nothing_is_left(engine)


# ---------------------------------------------------------------- the command dies

WORKS = """
import threading
from reflexfix.attempt import Candidate, Case, Limits, Suite
from reflexfix.containers import container, engine
from reflexfix.containers.sandbox import ContainerSandbox
import os
print(container.owner(os.getpid()), flush=True)
suite = Suite((Case("a", "assert f(2) == 4", "", "own"),))
body = b"import time\\ndef f(x):\\n    time.sleep(0.1)\\n    return 4"
one = Candidate({"m.py": body}, "m", "f", stub_files={"m.py": b"def f(x): ..."})
with ContainerSandbox(engine.connect({url!r}), {image!r}, Limits(), pool=2) as sandbox:
    print("open", flush=True)
    while True:
        print(sandbox.run(one, suite).solved, flush=True)
"""


def kill_at_random(engine: Engine, image: str, seed: int) -> tuple[str, float]:
    """End a working command at a random point; give what stayed of it, and for how long."""
    dice = random.Random(seed)
    with neighbour(WORKS, engine, image) as child:
        assert child.stdout is not None
        mark = child.stdout.readline().strip()
        if dice.random() < 0.7:
            child.stdout.readline()
        time.sleep(dice.uniform(0, 1.5))
        child.send_signal(dice.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
        child.wait()
        told = child.stdout.read()
    assert "False" not in told
    died = time.monotonic()

    def left() -> list[dict[str, Any]]:
        return containers.listed(engine, f"reflexfix.owner={mark}")

    holds(lambda: not left(), 5)
    return ", ".join(f"{c['State']} {c['Status']}" for c in left()), time.monotonic() - died


def kills(engine: Engine, image: str, count: int) -> None:
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda n: kill_at_random(engine, image, n), range(count)))
    assert [left for left, _ in found if left] == []
    seconds = sorted(took for _, took in found)
    assert seconds[-1] < 4 and seconds[len(seconds) // 2] < 2, seconds
    assert holds(lambda: not strays(engine)), strays(engine)


def test_nothing_outlives_a_command_that_is_killed_20_times(
    engine: Engine, sandbox_image: str
) -> None:
    kills(engine, sandbox_image, 20)


@pytest.mark.slow
def test_nothing_outlives_a_command_that_is_killed_100_times(
    engine: Engine, sandbox_image: str
) -> None:
    kills(engine, sandbox_image, 100)


def test_a_container_ends_when_heartbeats_stop_though_the_line_is_open(
    engine: Engine, sandbox_image: str
) -> None:
    started = containers.start(engine, sandbox_image, Limits())
    try:
        assert holds(lambda: not started.line.alive(), containers.MISSED_SECONDS + 2)
        assert holds(lambda: not exists(engine, started.id))
    finally:
        started.discard()


def test_a_container_with_heartbeats_ends_when_its_life_is_over(
    engine: Engine, sandbox_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "LIFE_SECONDS", 3)
    started = containers.start(engine, sandbox_image, Limits())
    heart = sandboxes.Heart()
    try:
        heart.add(started)
        time.sleep(containers.MISSED_SECONDS + 0.5)
        assert started.line.alive()
        assert holds(lambda: not started.line.alive(), 4)
    finally:
        heart.stop()
        started.discard()


def test_heartbeats_reach_all_while_one_line_is_stuck() -> None:
    """An engine that does not read from one line does not keep the others waiting."""
    heart = sandboxes.Heart()
    pairs = [socket.socketpair() for _ in range(3)]
    lines = [Line(ours) for ours, _ in pairs]
    stuck = threading.Thread(target=lambda: fill(lines[0]))
    stuck.start()
    for line in lines:
        heart.add(Container(None, "", line, {}, ""))  # type: ignore[arg-type]
    try:
        time.sleep(1.2)
        for _, theirs in pairs[1:]:
            assert len(theirs.recv(4096)) >= 3 * 4
    finally:
        heart.stop()
        for line, (_, theirs) in zip(lines, pairs, strict=True):
            theirs.close()
            line.close()
        stuck.join()


def fill(line: Line) -> None:
    with contextlib.suppress(SandboxTrouble):
        line.send({"much": "x" * 10**7})


# ---------------------------------------------------------------- the engine's faults

SLOW = candidate("import time\ndef f(x):\n    time.sleep(0.7)\n    return 2 * x")


def killer(engine: Engine, times: int, act: str) -> threading.Thread:
    """A third party that ends the containers that are at work, one after the other."""

    def go() -> None:
        for _ in range(times):
            holds(lambda: bool(mine(engine) - idle()), 3)
            time.sleep(0.3)
            for one in mine(engine) - idle():
                with contextlib.suppress(Exception):
                    if act == "kill":
                        engine.client.api.kill(one)
                    else:
                        engine.client.api.remove_container(one, force=True)

    return threading.Thread(target=go)


@pytest.mark.parametrize("act", ["kill", "remove"])
def test_a_container_that_somebody_else_ends_is_replaced_once(
    act: str, engine: Engine, sandbox_image: str
) -> None:
    with ContainerSandbox(engine, sandbox_image, Limits(), pool=0) as alone:
        other = killer(engine, 1, act)
        other.start()
        verdict = alone.run(SLOW, RIGHT)
        other.join()
    assert verdict.solved, verdict


def test_a_container_that_is_ended_again_is_trouble(engine: Engine, sandbox_image: str) -> None:
    with ContainerSandbox(engine, sandbox_image, Limits(), pool=0) as alone:
        other = killer(engine, 3, "kill")
        other.start()
        with pytest.raises(SandboxTrouble):
            alone.run(SLOW, RIGHT)
        other.join()
    nothing_is_left(engine)


def test_an_image_that_is_not_there_is_trouble(engine: Engine) -> None:
    with (
        ContainerSandbox(engine, "sha256:" + "0" * 64, Limits(), pool=1) as absent,
        pytest.raises(SandboxTrouble, match="could not be started"),
    ):
        absent.run(candidate(HONEST), RIGHT)


@contextlib.contextmanager
def listening() -> Iterator[tuple[socket.socket, str]]:
    """A socket in a folder of its own."""
    folder = tempfile.mkdtemp(prefix="reflexfix-test-")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/engine.sock")
        server.listen(50)
        yield server, f"unix://{folder}/engine.sock"
    shutil.rmtree(folder)


def test_a_socket_that_accepts_and_never_answers_is_trouble_soon() -> None:
    started = time.monotonic()
    with listening() as (_, url), pytest.raises(SandboxTrouble, match="no answer in time"):
        engines.connect(url, seconds=1)
    assert time.monotonic() - started < 10


class Stalling:
    """A way to the engine that can be made to pass on nothing any more."""

    def __init__(self, server: socket.socket, path: str) -> None:
        self.server, self.path = server, path
        self.stalled = threading.Event()
        self.open: list[socket.socket] = []
        self.threads = [threading.Thread(target=self._accept)]
        self.threads[0].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                ours, _ = self.server.accept()
                theirs = socket.socket(socket.AF_UNIX)
                theirs.connect(self.path)
                self.open += [ours, theirs]
                for pair in ((ours, theirs), (theirs, ours)):
                    thread = threading.Thread(target=self._pass_on, args=pair)
                    self.threads.append(thread)
                    thread.start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while (data := source.recv(2**16)) and not self.stalled.is_set():
                target.sendall(data)
            if not self.stalled.is_set():
                target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for one in (self.server, *self.open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        for one in self.open:
            one.close()


@contextlib.contextmanager
def stalling(server: socket.socket, path: str) -> Iterator[Stalling]:
    way = Stalling(server, path)
    try:
        yield way
    finally:
        way.close()


def test_an_engine_that_falls_silent_is_trouble_in_time_and_leaves_nothing(
    engine: Engine, sandbox_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not engine.url.startswith("unix://"):
        pytest.skip("the engine is not on a unix socket")
    monkeypatch.setattr(sandboxes, "GRACE_SECONDS", 0.5)
    with listening() as (server, url), contextlib.ExitStack() as resources:
        way = resources.enter_context(stalling(server, engine.url.removeprefix("unix://")))
        found = engines.connect(url, seconds=2)
        silent = ContainerSandbox(found, sandbox_image, HASTY, pool=1)
        assert silent.run(candidate(HONEST), RIGHT).solved
        way.stalled.set()
        started = time.monotonic()
        with pytest.raises(SandboxTrouble):
            silent.run(candidate(HONEST), RIGHT)
        silent.close()
        assert time.monotonic() - started < 60
        found.client.close()
    forget_what_never_ran(engine)
    nothing_is_left(engine)


def forget_what_never_ran(engine: Engine) -> None:
    """Remove what an engine made and could not say so: nothing of it ever ran.

    A command's guard and the next command's sweep do the same, once this process has ended.
    """
    for one in containers.listed(engine):
        if one["Id"] not in idle() and one["State"] in ("created", "initialized"):
            containers.remove(engine, one["Id"])


@pytest.mark.parametrize("when", ["create", "attach", "start"])
def test_each_request_that_an_engine_leaves_unanswered_ends_in_time(
    when: str, engine: Engine, sandbox_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not engine.url.startswith("unix://"):
        pytest.skip("the engine is not on a unix socket")
    names = {"create": "create_container", "attach": "attach_socket", "start": "start"}
    with listening() as (server, url), contextlib.ExitStack() as resources:
        way = resources.enter_context(stalling(server, engine.url.removeprefix("unix://")))
        found = engines.connect(url, seconds=1)
        resources.callback(found.client.close)
        real = getattr(found.client.api, names[when])

        def silent(*args: Any, **options: Any) -> Any:
            way.stalled.set()
            return real(*args, **options)

        monkeypatch.setattr(found.client.api, names[when], silent)
        started = time.monotonic()
        with pytest.raises(SandboxTrouble):
            containers.start(found, sandbox_image, HASTY)
        assert time.monotonic() - started < 10
    forget_what_never_ran(engine)
    nothing_is_left(engine)


# ---------------------------------------------------------------- false frames


class Actor:
    """Plays the supervisor at the other end of a line, as a container that was taken over would."""

    def __init__(self, reply: Callable[[str], bytes]) -> None:
        self.reply = reply
        self.threads: list[threading.Thread] = []

    def start(
        self, engine: Engine, _image: str, _limits: Limits, _lender: Container | None = None
    ) -> Container:
        ours, theirs = socket.socketpair()
        thread = threading.Thread(target=self._act, args=(theirs,))
        self.threads.append(thread)
        thread.start()
        facts = {"uid": 65534, "interfaces": ["lo"], "root_is_read_only": True, "seccomp": "2"}
        facts |= {"no_new_privileges": "1", "capabilities": "0"}
        return Container(engine, "", Line(ours), facts, "3.13")

    def _act(self, theirs: socket.socket) -> None:
        with theirs, contextlib.suppress(OSError):
            seen = b""
            while not (found := re.search(rb'"nonce":"([0-9a-f]+)"', seen)):
                seen += theirs.recv(2**16)
            theirs.sendall(self.reply(found[1].decode()))


@pytest.fixture
def played(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Verdict]]:
    """Judge an honest candidate where this reply is all that comes back."""
    monkeypatch.setattr(containers, "remove", lambda *_: None)
    monkeypatch.setattr(containers, "goes_by_itself", lambda *_: True)
    monkeypatch.setattr(sandboxes, "GRACE_SECONDS", 0.3)
    actors: list[Actor] = []

    def judged(reply: Callable[[str], bytes], tests: Suite = RIGHT) -> Verdict:
        actors.append(Actor(reply))
        monkeypatch.setattr(containers, "start", actors[-1].start)
        with ContainerSandbox(engine, "", Limits(total_seconds=0.2), pool=0) as false:
            return false.run(candidate(HONEST), tests)

    yield judged
    for actor in actors:
        for thread in actor.threads:
            thread.join()


def chunk(data: bytes, stream: int = 1) -> bytes:
    """Wrap bytes as the engine does."""
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


def frame(message: Any) -> bytes:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return chunk(len(body).to_bytes(4, "big") + body)


def passed(name: str, **more: Any) -> dict[str, Any]:
    result = {"name": name, "status": "passed", "mode": "split", "seconds": 0.1, "expected": None}
    result |= {"actual": None, "compared": False, "message": "", "frames": [], "printed": ""}
    return result | {"unstable": False} | more


OWN = [f"own {n}" for n in (1, 2, 3)]
HELD = passed("control", status="failed", compared=True, expected=repr(PRIVATE), actual="4")


def said(nonce: str, results: Any = None, **more: Any) -> bytes:
    found = [*map(passed, OWN), HELD] if results is None else results
    verdict = {"say": "verdict", "nonce": nonce, "import": None, "results": found}
    return frame(verdict | more)


FALSE: dict[str, Callable[[str], bytes]] = {
    "nothing": lambda nonce: b"",
    "text": lambda nonce: b"passed\n" * 100,
    "text in a chunk": lambda nonce: chunk(b"\0\0\0\x06passed"),
    "a cut header": lambda nonce: said(nonce)[:5],
    "a cut chunk": lambda nonce: said(nonce)[:-1],
    "a cut frame": lambda nonce: chunk(said(nonce)[8:-1]),
    "an oversized frame": lambda nonce: chunk(b"\x7f\xff\xff\xff" + b"x" * 100),
    "an oversized chunk": lambda nonce: b"\1\0\0\0\x7f\xff\xff\xff" + b"x" * 100,
    "a verdict on the error stream": lambda nonce: chunk(said(nonce)[8:], 2),
    "a heartbeat": lambda nonce: frame(b""),
    "a list": lambda nonce: frame([1, 2]),
    "a number": lambda nonce: frame(5),
    "deep nesting": lambda nonce: frame(b"[" * 100_000),
    "broken text": lambda nonce: frame(b'{"nonce": "\xff"}'),
    "no nonce": lambda nonce: frame({"say": "verdict", "results": []}),
    "another nonce": lambda nonce: said("0" * 32),
    "a part of the nonce": lambda nonce: said(nonce[:-1]),
    "a nonce that is no text": lambda nonce: frame({"nonce": [nonce], "results": []}),
    "a nonce of other letters": lambda nonce: said(nonce[:-1] + "é"),
    "no results": lambda nonce: frame({"nonce": nonce, "import": None}),
    "results that are no list": lambda nonce: said(nonce, results=5),
    "results that are no objects": lambda nonce: said(nonce, results=["passed"] * 4),
    "a result without parts": lambda nonce: said(nonce, results=[{"name": "own 1"}]),
    "a status that nobody knows": lambda nonce: said(nonce, [passed("own 1", status="good")]),
    "a status that is no text": lambda nonce: said(nonce, [passed("own 1", status=["passed"])]),
    "a mode that nobody knows": lambda nonce: said(nonce, [passed("own 1", mode="free")]),
    "a time that is no number": lambda nonce: said(nonce, [passed("own 1", seconds="long")]),
    "frames that are no list": lambda nonce: said(nonce, [passed("own 1", frames=5)]),
    "an import that is no problem": lambda nonce: said(nonce, **{"import": 5}),
    "an import without a message": lambda nonce: said(nonce, **{"import": {}}),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_container_that_says_this_is_trouble_and_never_a_verdict(
    name: str, played: Callable[..., Verdict]
) -> None:
    with pytest.raises(SandboxTrouble):
        played(FALSE[name])


def test_the_same_frame_with_nothing_false_in_it_is_a_verdict(
    played: Callable[..., Verdict],
) -> None:
    verdict = played(said)
    assert verdict.solved and verdict.control == "held"


def test_a_case_without_a_result_has_no_verdict(played: Callable[..., Verdict]) -> None:
    verdict = played(lambda nonce: said(nonce, [passed("own 1"), passed("own 3"), HELD]))
    assert [j.result.status for j in verdict.judged] == ["passed", "no-verdict", "passed"]
    assert not verdict.solved


def test_a_case_with_two_results_has_no_verdict(played: Callable[..., Verdict]) -> None:
    results = [passed("own 1"), passed("own 2"), passed("own 2"), passed("own 3"), HELD]
    verdict = played(lambda nonce: said(nonce, results))
    assert [j.result.status for j in verdict.judged] == ["passed", "no-verdict", "passed"]


def test_results_of_cases_that_nobody_asked_for_count_for_nothing(
    played: Callable[..., Verdict],
) -> None:
    verdict = played(lambda nonce: said(nonce, [passed("other 1"), passed("other 2"), HELD]))
    assert not verdict.solved and verdict.passed(trusted=False) == 0


def test_a_control_that_passed_makes_everything_forged(played: Callable[..., Verdict]) -> None:
    verdict = played(lambda nonce: said(nonce, [*map(passed, OWN), passed("control")]))
    assert verdict.control == "forged" and not verdict.solved


def test_a_control_that_failed_otherwise_proves_nothing(played: Callable[..., Verdict]) -> None:
    other = HELD | {"expected": "'something else'"}
    verdict = played(lambda nonce: said(nonce, [*map(passed, OWN), other]))
    assert verdict.control == "none"


def test_texts_are_fit_for_a_terminal(played: Callable[..., Verdict]) -> None:
    nasty = "\x1b[2J\x1b]0;t\x07\ud800\u202e\r\x00 é\n"
    results = [passed("own 1", status="error", message=nasty, printed=nasty, frames=[nasty])]
    first = played(lambda nonce: said(nonce, results)).judged[0].result
    for text in (first.message, first.printed, *first.frames):
        assert text == r"\x1b[2J\x1b]0;t\x07\ud800\u202e\r\x00 é" + "\n"


# ---------------------------------------------------------------- a user's own test files


def user_tests(
    sandbox: ContainerSandbox, code: str, tests: str, control: bool = True
) -> tuple[dict[str, str], Verdict]:
    must_fail = f"from m import f\n\n\ndef test_control():\n    assert f(2) == {PRIVATE!r}\n"
    files = UserTests(
        {"test_m.py": tests.encode()}, ("test_m.py",), control=must_fail if control else ""
    )
    verdict = sandbox.run(Candidate({"m.py": code.encode()}, "m", "f"), Suite(user=files))
    return {j.case.name.partition("::")[2]: j.result.status for j in verdict.judged}, verdict


TWO = "from m import f\ndef test_a(): assert f(2) == 4\ndef test_b(): assert f(3) == 6\n"


@pytest.fixture(scope="module")
def patient(engine: Engine, sandbox_image: str) -> Iterator[ContainerSandbox]:
    """A sandbox for pytest, which takes its time to start."""
    limits = Limits(test_seconds=4, total_seconds=12)
    with ContainerSandbox(engine, sandbox_image, limits, pool=1) as opened:
        yield opened


@pytest.mark.parametrize(
    ("code", "statuses", "control"),
    [
        (HONEST, ["passed", "passed"], "held"),
        ("def f(x): return 5", ["failed", "failed"], "held"),
        ("import os\ndef f(x): os._exit(0)", ["error", "error"], "none"),
        ("import pytest\ndef f(x): pytest.skip('no')", ["no-verdict"] * 2, "none"),
        ("import unittest\ndef f(x): raise unittest.SkipTest", ["no-verdict"] * 2, "none"),
        ("import pytest\ndef f(x): pytest.xfail('no')", ["no-verdict"] * 2, "none"),
        ("import pytest\ndef f(x): pytest.exit('no', 0)", None, "none"),
        ("def f(x):\n    while x == 2: pass\n    return 2 * x", ["timeout", "passed"], "none"),
        ("class A:\n def __eq__(s, o): return True\ndef f(x): return A()", None, "forged"),
        ("import sys\nsys.exit(0)", None, "none"),
    ],
)
def test_user_files_are_not_passed_by_a_trick(
    code: str, statuses: list[str] | None, control: str, patient: ContainerSandbox
) -> None:
    found, verdict = user_tests(patient, code, TWO)
    if statuses is not None:
        assert [found["test_a"], found["test_b"]] == statuses, verdict
    assert verdict.control == control, verdict
    assert verdict.solved is (code == HONEST)


def test_a_test_that_skips_itself_is_neither_passed_nor_failed(sandbox: ContainerSandbox) -> None:
    tests = TWO + (
        "import pytest\n"
        "def test_c(): pytest.skip('not today')\n"
        "@pytest.mark.skip\ndef test_d(): pass\n"
        "@pytest.mark.xfail\ndef test_e(): assert f(2) == 5\n"
    )
    found, verdict = user_tests(sandbox, HONEST, tests)
    assert found == dict.fromkeys(["test_a", "test_b"], "passed") | dict.fromkeys(
        ["test_c", "test_d", "test_e"], "skipped"
    )
    assert verdict.solved


def test_false_reports_without_end_do_not_fill_the_supervisor(sandbox: ContainerSandbox) -> None:
    code = """
import json, os
def f(x):
    for n in range(20_000):
        body = json.dumps({'report': f'n{n}' * 100, 'status': 'passed', 'message': 'x' * 9000,
                           'frames': []}).encode()
        for fd in range(3, 20):
            try: os.write(fd, len(body).to_bytes(4, 'big') + body)
            except OSError: pass
    return 4
"""
    _, verdict = user_tests(sandbox, code, TWO)
    assert not verdict.solved


# ---------------------------------------------------------------- time


def test_six_tests_that_hang_share_the_time_of_one_evaluation(
    engine: Engine, sandbox_image: str
) -> None:
    with ContainerSandbox(engine, sandbox_image, HASTY, pool=1) as hasty:
        idle(hasty)
        started = time.monotonic()
        found = run(hasty, "def f(x):\n    while True: pass", *["assert f(2) == 4"] * 6)
        assert time.monotonic() - started < HASTY.total_seconds + 3
    assert [result.status for result in found] == ["timeout"] * 6
    assert "for one test" in found[0].message
    assert "whole evaluation" in found[-1].message


def test_a_second_look_at_failures_stays_within_the_time_of_the_evaluation(
    engine: Engine, sandbox_image: str
) -> None:
    with ContainerSandbox(engine, sandbox_image, HASTY, pool=1) as hasty:
        idle(hasty)
        started = time.monotonic()
        code = "import time\ndef f(x):\n    time.sleep(0.2)\n    return 5"
        found = run(hasty, code, *["assert f(2) == 4"] * 5)
        assert time.monotonic() - started < HASTY.total_seconds + 3
    assert [result.status for result in found] == ["failed"] * 5


def test_a_candidate_that_ends_its_container_again_and_again_is_judged_in_time(
    sandbox: ContainerSandbox,
) -> None:
    code = "import os\ndef f(x):\n    os.kill(-1, 9)\n    return 4"
    started = time.monotonic()
    found = run(sandbox, code, *["assert f(2) == 4"] * 8)
    assert {result.status for result in found} == {"no-verdict"}
    assert time.monotonic() - started < 20


# ---------------------------------------------------------------- the pool

NAME = """
import re
def f(x): return re.search("upperdir=([^,]*)", open("/proc/self/mountinfo").read())[1]
"""
"""The folder that the engine has made for this container alone."""


def test_no_container_is_used_twice(engine: Engine, sandbox: ContainerSandbox) -> None:
    if engine.client.info()["Driver"] != "overlay2":
        pytest.skip("only overlay2 names a container's own folder inside of it")
    names = [answer(sandbox, NAME) for _ in range(6)]
    assert len(set(names)) == 6


def test_a_container_that_died_while_it_waited_is_replaced_silently(
    engine: Engine, sandbox_image: str
) -> None:
    with ContainerSandbox(engine, sandbox_image, Limits(), pool=2) as pooled:
        for one in idle(pooled):
            engine.client.api.kill(one)
        time.sleep(0.3)
        assert pooled.run(candidate(HONEST), RIGHT).solved


def test_a_start_that_failed_ahead_of_time_is_tried_again(
    engine: Engine, sandbox_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as away:
        away.setattr(containers, "create", lambda *_: 1 / 0)
        pooled = ContainerSandbox(engine, sandbox_image, Limits(), pool=2)
        assert all(future.exception() for future in pooled.idle)
    with pooled:
        assert pooled.run(candidate(HONEST), RIGHT).solved


def test_there_need_be_no_pool(
    engine: Engine, sandbox_image: str, sandbox: ContainerSandbox
) -> None:
    with ContainerSandbox(engine, sandbox_image, Limits(), pool=0) as bare:
        assert not bare.idle
        assert bare.run(candidate(HONEST), RIGHT).solved
        assert not bare.idle
    nothing_is_left(engine)


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.2, 0.5])
def test_closing_leaves_nothing_even_while_containers_start(
    seconds: float, engine: Engine, sandbox_image: str, sandbox: ContainerSandbox
) -> None:
    opened = ContainerSandbox(engine, sandbox_image, Limits(), pool=3)
    time.sleep(seconds)
    opened.close()
    assert not mine(engine) - idle()
    opened.close()  # once more does no harm


def test_sandboxes_in_parallel_do_not_mix(engine: Engine, sandbox_image: str) -> None:
    def judge(number: int) -> list[str | None]:
        code = candidate(f"def f(x):\n    return {number}")
        with ContainerSandbox(engine, sandbox_image, Limits(), pool=1) as own:
            found = [own.run(code, suite("assert f(2) == -1")) for _ in range(3)]
        return [verdict.judged[0].result.actual for verdict in found]

    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(judge, (7, 8)))
    assert found == [["7"] * 3, ["8"] * 3]


def test_threads_that_share_one_sandbox_do_not_mix(sandbox: ContainerSandbox) -> None:
    def judge(number: int) -> str | None:
        verdict = sandbox.run(candidate(f"def f(x): return {number}"), suite("assert f(2) == -1"))
        return verdict.judged[0].result.actual

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(judge, range(9))) == list(map(str, range(9)))


# ---------------------------------------------------------------- nothing grows


def resident() -> int:
    """Give this process's memory in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def evaluate(engine: Engine, sandbox: ContainerSandbox, count: int) -> None:
    """Judge good, wrong and dying candidates in turn, and hold that nothing has grown."""
    codes = [HONEST, "def f(x): return 5", "import os\ndef f(x): os._exit(1)", "def f(x"]
    images = len(engine.client.images.list(all=True))
    for n in range(30):  # until every pool of connections is full
        sandbox.run(candidate(codes[n % 4]), RIGHT)
    gc.collect()
    memory, opened, threads = resident(), descriptors(), threading.active_count()
    for n in range(count):
        assert sandbox.run(candidate(codes[n % 4]), RIGHT).solved is (n % 4 == 0)
    nothing_is_left(engine)
    gc.collect()
    assert resident() - memory < 10 + count // 50, (resident(), memory)
    assert descriptors() - opened < 20, (descriptors(), opened)
    assert threading.active_count() <= threads + 1
    assert len(engine.client.images.list(all=True)) <= images + 6  # neighbours build some too


def test_nothing_grows_over_60_evaluations(engine: Engine, sandbox: ContainerSandbox) -> None:
    evaluate(engine, sandbox, 30)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_nothing_grows_over_1000_evaluations(engine: Engine, sandbox: ContainerSandbox) -> None:
    evaluate(engine, sandbox, 970)


def test_a_flood_of_output_does_not_reach_this_process(sandbox: ContainerSandbox) -> None:
    flood = "import os\ndef f(x):\n    while True: os.write(1, b'x' * 65536)"
    run(sandbox, flood, "assert f(2) == 4")
    before = resident()
    for _ in range(3):
        (result,) = run(sandbox, flood, "assert f(2) == 4")
        assert result.status == "output" and len(result.printed) <= 2000
    assert resident() - before < 10


def test_a_base_image_that_was_made_here_has_its_name_and_no_other(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "BASE", "reflexfix-base-test:one")
    (tmp_path / "file").write_text("x")
    images._import(engine, tmp_path)
    try:
        named = {tag for image in engine.client.images.list() for tag in image.tags}
        assert images._has(engine, images.BASE)
        assert not {tag for tag in named if "base-test" in tag and not tag.endswith(":one")}
    finally:
        engine.client.images.remove(images.BASE, force=True)
