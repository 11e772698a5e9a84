"""The check-up: one line each, with the remedy, and the exit code that a solve would end with."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import Command
from endpoint import scripted, serving

from reflexfix import assemble, conformance, doctor
from reflexfix.attempt import Candidate, Suite, Verdict
from reflexfix.containers.engine import Engine
from reflexfix.containers.sandbox import ContainerSandbox


@pytest.mark.container
def test_a_healthy_machine_is_good_on_every_line(command: Command, sandbox_image: str) -> None:
    with serving(scripted()) as endpoint:
        ran = command("doctor", "--base-url", endpoint.url)
    lines = ran.out.decode().splitlines()
    assert ran.code == 0, lines
    assert [line.split(":")[0] for line in lines] == [
        f"ok  {what}" for what in ("engine", "image", "limits", "verdict", "model", "disk")
    ]


@pytest.mark.container
def test_the_rust_image_is_looked_at_when_it_is_named(command: Command, engine: Engine) -> None:
    assemble.ready_image(engine, (), print, "rust")
    with serving(scripted()) as endpoint:
        ran = command("doctor", "--language", "rust", "--base-url", endpoint.url)
    lines = ran.out.decode().splitlines()
    assert ran.code == 0, lines
    assert lines[1].startswith("ok  image: rust ")
    assert "a sample is judged rightly" in lines[3]


@pytest.mark.container
def test_an_image_that_is_not_there_is_said_with_what_it_costs(
    monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    monkeypatch.setattr("reflexfix.containers.image.find", lambda *_: None)
    found = list(doctor._sandbox((), "rust"))
    said = "not built yet: the first .rs file builds it (minutes, 1 GB)"
    assert found[1:] == [doctor.Finding("image", True, said)]


def test_a_missing_engine_is_named_with_its_remedy(command: Command) -> None:
    ran = command("doctor", DOCKER_HOST="unix:///nowhere.sock", REFLEXFIX_CACHE="/tmp")
    assert ran.code == 4
    assert "BAD sandbox: " in ran.out.decode() and "hint: " in ran.out.decode()


@pytest.mark.container
def test_a_dead_endpoint_is_named(command: Command) -> None:
    ran = command("doctor", "--base-url", "http://127.0.0.1:9/v1")
    assert ran.code == 3
    assert "BAD model: http://127.0.0.1:9/v1/models" in ran.out.decode()


@pytest.mark.container
def test_every_promise_of_the_short_form_is_kept(sandbox: ContainerSandbox) -> None:
    quick = [p for p in conformance.PROGRAMS if "memory" not in p.claim and "time" not in p.claim]
    assert len(quick) >= 12
    found = [held for held in conformance.check(sandbox) if not held.kept]
    assert found == []


def test_what_tries_the_memory_ends_by_itself_where_nothing_limits_it() -> None:
    """An engine without limits is what it is there to find out: the machine must outlive it."""
    (body,) = [p.body for p in conformance.PROGRAMS if p.claim == "memory is limited"]
    program = "import resource as r; r.setrlimit(r.RLIMIT_AS, (2 * 2**30, 2 * 2**30))\n"
    program += f"def f(x):\n    {body}\nassert f(1) != 2"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=20)


def test_a_sandbox_that_believes_everything_is_found_out() -> None:
    class Credulous:
        def run(self, candidate: Candidate, suite: Suite) -> Verdict:
            from reflexfix.attempt import Judged, Result

            return Verdict(tuple(Judged(c, Result(c.name, "passed")) for c in suite.cases))

        def missing(self, modules: tuple[str, ...]) -> tuple[str, ...]:
            return ()

    broken = [held.claim for held in conformance.check(Credulous()) if not held.kept]  # type: ignore[arg-type]
    assert len(broken) == len(conformance.PROGRAMS) - 1
