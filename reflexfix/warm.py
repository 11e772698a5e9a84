"""The warm server: the embedded model kept loaded between runs, and found by its file.

Three files lie in a folder that only the user can enter. `lock` is locked for as long as a server
lives, and holds its process id. `server.json` says where it answers and with which key; every run
that uses it holds a shared lock on it, so the server knows whether it is in use, also when a run
was killed; and a server whose file is removed ends. `log` is what the server says: beginning, end
and errors, never a prompt or the key.

Covered: a file that a crash left, or that is another user's, or about another version or another
model, is passed over. Not covered: who takes the key from the file and asks past `kept` does not
keep the server from ending.
"""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import importlib.metadata
import json
import os
import platform
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import platformdirs

from reflexfix import __version__, local
from reflexfix.errors import ModelTrouble, UsageProblem

LOOK_SECONDS = 0.5
"""How often the server looks whether it is in use."""
ANSWER_SECONDS = 5.0
END_SECONDS = 60.0
"""How long `stop` waits: a server that still loads ends once it has loaded."""

NO_RECORD = (OSError, ValueError, KeyError, TypeError)
"""What reading the server's file raises where there is none, or not the text of one."""


@dataclass(frozen=True)
class Identity:
    """What a run would load by itself; a server that has anything else is not used."""

    versions: str
    model: str
    bytes: int
    changed_ns: int


@dataclass(frozen=True)
class Record:
    """What the server's file says."""

    identity: Identity
    pid: int
    base_url: str
    api_key: str = field(repr=False)
    name: str
    idle_minutes: float

    @property
    def endpoint(self) -> local.Endpoint:
        return local.Endpoint(self.base_url, self.api_key, self.name)


def folder() -> Path:
    """Where the files of this machine's server lie; a home may be shared by several machines."""
    return Path(platformdirs.user_state_dir("reflexfix")) / f"server-{platform.node()}"


def identity(path: Path) -> Identity:
    """Say what is loaded when this model is served. Raises OSError."""
    try:
        llama = importlib.metadata.version("xllamacpp")
    except importlib.metadata.PackageNotFoundError:
        llama = "none"
    about = path.stat()
    versions = f"reflexfix {__version__}, xllamacpp {llama}"
    return Identity(versions, str(path.resolve()), about.st_size, about.st_mtime_ns)


# ---------------------------------------------------------------- what a run asks


@contextlib.contextmanager
def kept(path: Path) -> Iterator[local.Endpoint | None]:
    """Give the warm server of this model and keep it for the `with`; None where there is none."""
    with contextlib.ExitStack() as held:
        endpoint = None
        with contextlib.suppress(*NO_RECORD), contextlib.ExitStack() as tried:
            file = tried.enter_context(_open_own(folder() / "server.json"))
            endpoint = _trusted(file, path)
            if endpoint:
                held.push(tried.pop_all())
        yield endpoint


def _trusted(file: IO[str], path: Path) -> local.Endpoint | None:
    """Hold the server's file so that it does not end, and see that it is what we would load."""
    if not _lock(file, fcntl.LOCK_SH):
        return None  # it is ending
    found = _read(file)
    same = found.identity == identity(path) and found.pid == running()
    return found.endpoint if same and _answers(found.endpoint) else None


def _open_own(path: Path, more: int = 0) -> IO[str]:
    """Open a file that nobody else can have written or read. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | more)
    file = os.fdopen(descriptor, "r+", encoding="utf-8")
    about = os.fstat(file.fileno())
    mine = about.st_uid == os.geteuid() and stat.S_ISREG(about.st_mode)
    if not mine or stat.S_IMODE(about.st_mode) & 0o077:
        file.close()
        raise PermissionError(f"{path} is not this user's alone")
    return file


def _read(file: IO[str]) -> Record:
    """Read the record. Raises ValueError, KeyError or TypeError when it is none."""
    data = json.load(file)
    return Record(**{**data, "identity": Identity(**data["identity"])})


def _lock(file: IO[str], kind: int, seconds: float = 0.2) -> bool:
    """Lock, waiting out those who only look; say whether it worked."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)


def _answers(endpoint: local.Endpoint) -> bool:
    """Say whether the server answers, and takes the key. Raises OSError."""
    address = urlsplit(endpoint.base_url)
    connection = http.client.HTTPConnection(
        address.hostname or "", address.port, timeout=ANSWER_SECONDS
    )
    try:
        headers = {"Authorization": f"Bearer {endpoint.api_key}"}
        connection.request("GET", f"{address.path}/models", headers=headers)
        return connection.getresponse().status == http.client.OK
    except http.client.HTTPException:
        return False
    finally:
        connection.close()


def running() -> int:
    """Give the process id of the server that lives, loading or loaded; 0 when there is none."""
    try:
        with _open_own(folder() / "lock") as file:
            if _lock(file, fcntl.LOCK_SH, seconds=0):
                return 0
            return _first_number(file)
    except OSError:
        return 0


def _first_number(file: IO[str]) -> int:
    """Read the id, which is written a moment after the lock was taken."""
    for _ in range(50):
        file.seek(0)
        if (text := file.read().strip()).isdigit():
            return int(text)
        time.sleep(0.02)
    return 0


def record() -> Record | None:
    """Give what the living server says of itself; None where none lives, or it still loads."""
    try:
        with _open_own(folder() / "server.json") as file:
            found = _read(file)
    except NO_RECORD:
        return None
    return found if found.pid == running() else None


def in_use() -> bool:
    """Say whether a run holds the server."""
    try:
        with _open_own(folder() / "server.json") as file:
            return not _lock(file, fcntl.LOCK_EX, seconds=0)
    except OSError:
        return False


# ---------------------------------------------------------------- the server


def keep(path: Path, idle_minutes: float) -> Iterator[str]:
    """Serve the model until nobody has used it for so long, saying when it begins and ends.

    Raises UsageProblem when a server runs already, ModelTrouble when the model does not start or
    llama.cpp ends.
    """
    with _only_one(), local.serve(path) as endpoint:
        about = Record(
            identity(path),
            os.getpid(),
            endpoint.base_url,
            endpoint.api_key,
            endpoint.model,
            idle_minutes,
        )
        with _published(about) as file:
            yield f"{_now()} {described(about)}"
            why = _until_unused(file, endpoint, idle_minutes * 60)
            yield f"{_now()} ended: {why}"


def described(about: Record) -> str:
    return (
        f"{about.name} is kept warm at {about.base_url} (process {about.pid}); "
        f"ends after {about.idle_minutes:g} idle minutes"
    )


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


@contextlib.contextmanager
def _only_one() -> Iterator[None]:
    """Be the one server of this user for as long as the `with` lasts."""
    with _own_file("lock") as file:
        if not _lock(file, fcntl.LOCK_EX, seconds=1):
            raise UsageProblem(
                f"A server runs already (process {running()}).",
                hint="`reflexfix model stop` ends it",
            )
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _own_file(name: str, more: int = 0) -> IO[str]:
    """Open a file of the server's folder for writing. Raises UsageProblem."""
    try:
        folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        folder().chmod(0o700)
        os.close(os.open(folder() / name, os.O_CREAT | os.O_NOFOLLOW | os.O_WRONLY, 0o600))
        return _open_own(folder() / name, more)
    except OSError as trouble:
        raise UsageProblem(
            f"{folder()} cannot be used: {trouble.strerror or trouble}.",
            hint="it has to be a folder of your own",
        ) from trouble


@contextlib.contextmanager
def _published(about: Record) -> Iterator[IO[str]]:
    """Let runs find the server, from one moment to the next, for as long as the `with` lasts."""
    place, new = folder() / "server.json", folder() / "server.json.new"
    new.unlink(missing_ok=True)  # of a server that was killed right here
    with _own_file(new.name) as file:
        json.dump(asdict(about), file)
        file.flush()
        os.replace(new, place)
        try:
            yield file
        finally:
            if _still_there(file):
                place.unlink()


def _still_there(file: IO[str]) -> bool:
    """Say whether runs can still find the server by this file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(folder() / "server.json"))
    except FileNotFoundError:
        return False


def _until_unused(file: IO[str], endpoint: local.Endpoint, seconds: float) -> str:
    """Wait until no run has held the file for so long; then hold it, so that none begins."""
    used = time.monotonic()
    while endpoint.lives():
        free = _lock(file, fcntl.LOCK_EX, seconds=0)
        if not free:
            used = time.monotonic()
        elif time.monotonic() - used >= seconds:
            return f"nobody used it for {seconds / 60:g} minutes"
        else:
            fcntl.flock(file, fcntl.LOCK_UN)
        if not _still_there(file):
            return "its file was removed"
        time.sleep(min(LOOK_SECONDS, seconds))
    raise ModelTrouble("llama.cpp ended by itself.", hint="the next run loads its own")


# ---------------------------------------------------------------- beginning and ending it


def start(path: Path, idle_minutes: float) -> bool:
    """Start a server in the background and wait until it answers; False when one runs already.

    Raises UsageProblem when the one that runs is not what a run would use, ModelTrouble with the
    server's own words when it does not start.
    """
    if running():
        _need_the_same(path)
        return False
    with _own_file("log", os.O_APPEND) as log:
        before = log.seek(0, os.SEEK_END)
        process = _spawn(path, idle_minutes, log)
        if _published_by(process):
            return True
        said = _last_words(log, before)
    if "runs already" in said:  # two were started in the same moment
        return False
    first, _, hint = said.partition("\nhint: ")
    raise ModelTrouble(f"The server did not start: {first}", hint=hint)


def _need_the_same(path: Path) -> None:
    """Hold that the server that runs, as far as it says so by now, is of use for this model."""
    about = record()
    if about and about.identity != identity(path):
        raise UsageProblem(
            f"A server runs already, with {about.identity.model} ({about.identity.versions}).",
            hint="`reflexfix model stop` ends it",
        )


def _spawn(path: Path, idle_minutes: float, log: IO[str]) -> subprocess.Popen[bytes]:
    """Run `model serve --foreground` in a session of its own, without a key it does not need."""
    command = [sys.executable, "-P", "-m", "reflexfix", "model", "serve", "--foreground"]
    command += ["--model", str(path.absolute()), "--idle-minutes", str(idle_minutes)]
    return subprocess.Popen(
        command,
        cwd=folder(),
        env={k: v for k, v in os.environ.items() if k != "OPENAI_API_KEY"},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def _published_by(process: subprocess.Popen[bytes]) -> bool:
    """Wait until this server can be found, or has ended; it ends if the wait is interrupted."""
    found = False
    try:
        while process.poll() is None and not found:
            time.sleep(0.05)
            there = record()
            found = there is not None and there.pid == process.pid
    finally:
        if not found:
            process.terminate()
            process.wait()
    return found


def _last_words(log: IO[str], start: int) -> str:
    """Give the error that the server ended with, as its log has it."""
    log.seek(start)
    said = log.read().strip().rpartition("reflexfix: ")[2]
    return said or "it ended without a word"


def stop() -> bool:
    """Have the server end, in use or not, and wait until it is gone; False when there was none.

    Nothing is killed by its number, which may be another process's by now or elsewhere: the
    server's file is removed. Raises ModelTrouble when the server does not heed that.
    """
    pid = running()
    deadline = time.monotonic() + END_SECONDS
    while pid and running() == pid:
        (folder() / "server.json").unlink(missing_ok=True)
        if time.monotonic() > deadline:
            raise ModelTrouble("The server does not end.", hint=f"`kill -9 {pid}` ends it")
        time.sleep(0.05)
    return pid != 0
