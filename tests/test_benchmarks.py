"""The commands that make the claims of the README again do run, in a short form."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import ROOT

SANDBOX = [
    "fresh interpreter, whole suite",
    "cold container, same settings / warm container: ",
    "1 workers: ",
    "4 workers: ",
]


@pytest.mark.container
@pytest.mark.parametrize(
    ("script", "arguments", "lines"),
    [
        ("sandbox.py", ["--rounds", "1", "--evaluations", "4"], SANDBOX),
        ("hook.py", ["--files", "5", "--megabytes", "0.1", "--rounds", "1"], ["above that"]),
        ("rust.py", ["--rounds", "1"], ["rustc"]),
    ],
)
def test_a_benchmark_prints_what_it_promises(
    script: str, arguments: list[str], lines: list[str], sandbox_image: str
) -> None:
    done = subprocess.run(
        [sys.executable, f"benchmarks/{script}", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert [line for line in lines if line not in done.stdout] == [], done.stdout
