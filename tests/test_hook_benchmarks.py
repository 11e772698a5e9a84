"""The hook on programs that others wrote, where the folder with them lies beside the checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, SHARED

pytestmark = [pytest.mark.container, pytest.mark.usefixtures("sandbox_image")]


def data(name: str) -> Path:
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"{path} is absent: benchmarks of others lie beside the checkout")
    return path


def printed(script: str, *arguments: str | Path, timeout: float) -> str:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / script, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def share(text: str, most: int) -> float:
    found = re.search(rf"among the first {most}: .*\(([\d.]+) %\)", text)
    assert found, text
    return float(found[1])


def test_the_fault_is_found_in_some_programs_of_quixbugs() -> None:
    some = ["breadth_first_search", "gcd", "flatten"]
    text = printed("localise.py", data("quixbugs/quixbugs.jsonl"), "--only", *some, timeout=500)
    assert share(text, 3) == 100.0


def test_some_functions_of_humanevalfix_end_as_correct_patches() -> None:
    path = data("humanevalpack/humanevalpack-python.jsonl")
    text = printed("humanevalfix.py", path, "--every", "55", timeout=500)
    assert "correct patches: 3 of 3" in text, text


@pytest.mark.slow
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("wrapper", ["plain", "tuple", "list"])
def test_the_fault_is_found_first_in_four_of_five_programs_of_quixbugs(wrapper: str) -> None:
    path = data("quixbugs/quixbugs.jsonl")
    text = printed("localise.py", path, "--wrapper", wrapper, timeout=5000)
    assert share(text, 1) >= 80.0 and share(text, 3) >= 95.0, text


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_every_function_of_humanevalfix_ends_as_a_correct_patch() -> None:
    path = data("humanevalpack/humanevalpack-python.jsonl")
    assert "correct patches: 164 of 164" in printed("humanevalfix.py", path, timeout=5000)
