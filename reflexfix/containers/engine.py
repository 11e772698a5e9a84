"""Find the container engine that the user's own docker command would use."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import DockerException

from reflexfix.errors import SandboxTrouble

OLDEST_API = "1.41"
"""What Docker 20.10 and Podman 4 speak; which version is spoken in the end, the engine says."""
ANSWER_SECONDS = 60
"""How long one request to the engine may take before it counts as not answering."""


@dataclass(frozen=True)
class Engine:
    """A connection to one engine."""

    client: docker.DockerClient
    url: str
    name: str
    """ "docker" or "podman"."""
    version: str
    rootless: bool
    cgroup: str
    """ "1" or "2"."""

    def close(self) -> None:
        self.client.close()

    def __str__(self) -> str:
        return f"{self.name} {self.version}{' rootless' if self.rootless else ''}"


def connect(url: str = "", seconds: int = ANSWER_SECONDS) -> Engine:
    """Connect to the engine at `url`, or to the first one that answers where one may be.

    Raises SandboxTrouble that names every place looked at.
    """
    tried: list[str] = []
    for place in [url] if url else places():
        try:
            return _connect(place, seconds)
        except (DockerException, requests.RequestException, OSError) as error:
            tried.append(f"{place} ({_reason(error)})")
    raise SandboxTrouble(
        "No container engine answers at " + ", nor at ".join(tried) + ".",
        hint="start Docker or Podman, or set DOCKER_HOST; `reflexfix doctor` checks it",
    )


def _reason(error: Exception) -> str:
    text = str(error)
    for sign, reason in (
        ("Permission denied", "permission denied: is this user in the docker group?"),
        ("No such file", "no socket there"),
        ("Connection refused", "connection refused"),
        ("timed out", "no answer in time"),
        ("not supported", "engine too old"),
    ):
        if sign in text:
            return reason
    return text.splitlines()[0][:120] if text else type(error).__name__


class Api(docker.APIClient):
    """A client every one of whose requests ends in time; its `attach_socket` sets no limit."""

    def request(self, *args: Any, **options: Any) -> Any:
        options.setdefault("timeout", self.timeout)
        return super().request(*args, **options)


def _connect(url: str, seconds: int) -> Engine:
    if url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as knock:  # the client would leave one open that fails
            knock.connect(url.removeprefix("unix://"))
    with contextlib.closing(docker.APIClient(url, version=OLDEST_API, timeout=seconds)) as asked:
        version = asked.version(api_version=False)
    with contextlib.ExitStack() as undo:
        client = docker.DockerClient(url, version=str(version["ApiVersion"]), timeout=seconds)
        client.api.close()
        client.api = Api(url, version=str(version["ApiVersion"]), timeout=seconds)
        undo.callback(client.close)
        info = client.info()
        undo.pop_all()
    names = " ".join(str(c.get("Name", "")) for c in version.get("Components") or [])
    options = " ".join(info.get("SecurityOptions") or [])
    return Engine(
        client=client,
        url=url,
        name="podman" if "podman" in names.lower() else "docker",
        version=str(version.get("Version", "?")),
        rootless="rootless" in options,
        cgroup=str(info.get("CgroupVersion") or "1"),
    )


@contextlib.contextmanager
def speaking(engine: Engine) -> Iterator[None]:
    """Turn whatever goes wrong between us and the engine into one SandboxTrouble."""
    try:
        yield
    except (DockerException, requests.RequestException, OSError) as error:
        said = str(getattr(error, "explanation", None) or error).splitlines() or [""]
        raise SandboxTrouble(
            f"The engine at {engine.url} fails: {said[0][:300]}",
            hint="`reflexfix doctor` checks it",
        ) from error


def places() -> Iterator[str]:
    """List where an engine may listen: what the user chose first, then the usual sockets."""
    if chosen := os.environ.get("DOCKER_HOST"):
        yield chosen
        return
    if context := current_context():
        yield context
        return
    runtime = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    home = Path.home()
    yield "unix:///var/run/docker.sock"
    for path in (
        f"{runtime}/docker.sock",
        home / ".docker/run/docker.sock",
        home / ".docker/desktop/docker.sock",
        home / ".colima/default/docker.sock",
        home / ".rd/docker.sock",
        f"{runtime}/podman/podman.sock",
        "/run/podman/podman.sock",
    ):
        if Path(path).exists():
            yield f"unix://{path}"


def current_context() -> str:
    """Give the address of the docker context in use, "" for the default one.

    The command keeps a context's address under the sha256 of its name.
    """
    folder = Path(os.environ.get("DOCKER_CONFIG", Path.home() / ".docker"))
    name = os.environ.get("DOCKER_CONTEXT") or _read(folder / "config.json").get("currentContext")
    if not name or name == "default":
        return ""
    meta = folder / "contexts/meta" / sha256(str(name).encode()).hexdigest() / "meta.json"
    endpoints = _read(meta).get("Endpoints") or {}
    return str((endpoints.get("docker") or {}).get("Host") or "")


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
