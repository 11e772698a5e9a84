"""Where an engine is looked for, and what is said when none answers."""

from __future__ import annotations

import json
import socket
import threading
import time
from hashlib import sha256
from pathlib import Path

import pytest
import requests
from docker.errors import NotFound

from reflexfix.containers import container, engine
from reflexfix.containers.image import Recipe, mirror
from reflexfix.errors import SandboxTrouble


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))


def test_docker_host_alone_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    assert list(engine.places()) == ["tcp://127.0.0.1:1"]


@pytest.mark.parametrize("by_environment", [True, False])
def test_the_context_in_use_is_followed(
    by_environment: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / ".docker"
    meta = config / "contexts/meta" / sha256(b"colima").hexdigest() / "meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"Endpoints": {"docker": {"Host": "unix:///c.sock"}}}))
    if by_environment:
        monkeypatch.setenv("DOCKER_CONTEXT", "colima")
    else:
        (config / "config.json").write_text(json.dumps({"currentContext": "colima"}))
    assert list(engine.places()) == ["unix:///c.sock"]


def test_the_usual_sockets_are_looked_at_where_they_are(tmp_path: Path) -> None:
    rootless = tmp_path / "run" / "podman" / "podman.sock"
    rootless.parent.mkdir(parents=True)
    rootless.touch()
    found = list(engine.places())
    assert found[0] == "unix:///var/run/docker.sock"
    assert f"unix://{rootless}" in found


def test_every_place_that_was_tried_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "places", lambda: iter(["unix:///a", "unix:///b"]))
    with pytest.raises(SandboxTrouble, match=r"unix:///a .*, nor at unix:///b"):
        engine.connect()


def test_a_socket_that_accepts_and_never_answers_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "mute.sock"
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(path))
        mute.listen()
        started = time.monotonic()
        with pytest.raises(SandboxTrouble, match="no answer in time"):
            engine.connect(f"unix://{path}", seconds=1)
    assert time.monotonic() - started < 10


def test_an_image_is_named_by_what_it_is_made_from(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Recipe().tag
    assert Recipe().tag == plain
    assert Recipe(packages=("numpy",)).tag.startswith(plain + "-")
    assert Recipe(packages=("a", "b")).tag == Recipe(packages=("b", "a")).tag
    monkeypatch.setattr("reflexfix.assets.dockerfile", lambda: b"FROM other")
    assert Recipe().tag != plain


def test_the_mirror_is_the_one_of_this_machines_apt() -> None:
    if not Path("/etc/debian_version").exists():
        pytest.skip("this is no Debian")
    assert mirror().startswith("http")


def test_an_owner_that_lives_is_no_orphan_and_a_dead_one_is() -> None:
    import os
    import subprocess

    assert not container.is_orphan(container.owner(os.getpid()), "99999999999")
    child = subprocess.Popen(["sleep", "60"])
    mark = container.owner(child.pid)
    assert not container.is_orphan(mark, "99999999999")
    child.kill()
    child.wait()
    assert container.is_orphan(mark, "99999999999")


@pytest.mark.parametrize("mark", ["", "x", "1@?@?", "12@3@another-boot"])
def test_whoever_cannot_be_known_to_be_dead_is_left_alone(mark: str) -> None:
    assert not container.is_orphan(mark, "99999999999")
    assert container.is_orphan(mark, "1")


def test_threads_of_a_background_task_do_not_outlive_it() -> None:
    assert not [t for t in threading.enumerate() if t.name == "heart" and not t.daemon]


class Breaking:
    """An engine of which so many connections break before it does what it is asked."""

    def __init__(self, breaks: int, error: type[Exception] = requests.ConnectionError) -> None:
        self.left, self.error, self.asked = breaks, error, 0
        self.client = self.api = self

    def remove_container(self, *_: object, **__: object) -> None:
        self.asked += 1
        if self.asked <= self.left:
            raise self.error("broken")
        raise NotFound("gone")


@pytest.mark.parametrize(
    ("breaks", "error", "asked"),
    [(0, OSError, 1), (1, requests.ConnectionError, 2), (2, OSError, 3), (99, OSError, 3),
     (99, requests.ReadTimeout, 1)],
)  # fmt: skip
def test_a_connection_that_breaks_leaves_no_container_behind(
    breaks: int, error: type[Exception], asked: int
) -> None:
    breaking = Breaking(breaks, error)
    container.remove(breaking, "0")  # type: ignore[arg-type]
    assert breaking.asked == asked
