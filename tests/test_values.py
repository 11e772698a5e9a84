"""The values of a reference solution: text that comes out of a container, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reflexfix.attempt import Candidate, Limits
from reflexfix.containers.engine import Engine
from reflexfix.containers.sandbox import ContainerSandbox

pytestmark = pytest.mark.container
HALF = Candidate({"solution.py": b"def half(n):\n    return n // 2\n"}, "solution", "half")


@pytest.fixture(scope="module")
def sandbox(engine: Engine, sandbox_image: str) -> Iterator[ContainerSandbox]:
    with ContainerSandbox(engine, sandbox_image, Limits(test_seconds=2.0), pool=1) as opened:
        yield opened


def test_a_program_gives_the_text_that_it_leaves(sandbox: ContainerSandbox) -> None:
    found = sandbox.values(HALF, "__reflexfix_text__ = repr([half(6), 'ü'])")
    assert (found.text, found.problem) == ("[3, 'ü']", "") and found.seconds < 2


def test_a_long_text_comes_out_whole(sandbox: ContainerSandbox) -> None:
    found = sandbox.values(HALF, "__reflexfix_text__ = 'x' * 8_000_000")
    assert len(found.text) == 8_000_000


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("half(None)", "TypeError"),
        ("half(", "SyntaxError"),
        ("pass", "__reflexfix_text__"),
        ("__reflexfix_text__ = 3", "gave no text"),
        ("__reflexfix_text__ = 'x' * 20_000_000", "more than is taken"),
        ("while True: pass", "limit of 2 s"),
        ("raise SystemExit(0)", "SystemExit"),
        ("import os; os._exit(0)", "the process"),
        ("print('x' * 10**8)", "printed too much"),
    ],
)
def test_why_there_is_no_text_is_told(sandbox: ContainerSandbox, source: str, problem: str) -> None:
    found = sandbox.values(HALF, source)
    assert found.text == "" and problem in found.problem


def test_a_solution_that_does_not_load_is_told(sandbox: ContainerSandbox) -> None:
    broken = Candidate({"solution.py": b"import nothing_of_that_name\n"}, "solution", "half")
    assert "nothing_of_that_name" in sandbox.values(broken, "half(6)").problem
