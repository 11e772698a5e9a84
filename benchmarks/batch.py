"""How fast a batch judges: the product, a cold container an answer, and no sandbox at all.

    python benchmarks/batch.py HUMANEVAL [--rounds 3] [--limit N] [--workers 2]

HUMANEVAL is HumanEval.jsonl.gz. The answers are the reference solutions and six of each row's own
asserts, recorded once through a scripted endpoint; then each side judges the same programs in
turns: once by own tests, once by hidden tests, in a container each.

    batch    `reflexfix batch --replay`, the whole command, start and report included
    cold     plain create, start, wait, remove of a container with the same settings an answer
    process  a fresh interpreter an answer, unsandboxed: the limit

Printed are answers judged a second, and ratios, as medians over the rounds.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from endpoint import Reply, serving  # noqa: E402

from reflexfix import assemble  # noqa: E402
from reflexfix.attempt import Limits  # noqa: E402
from reflexfix.containers import container as containers  # noqa: E402
from reflexfix.containers.engine import Engine  # noqa: E402

OWN_TESTS = 6


def rows(path: Path, limit: int | None) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file][:limit]


def own_tests(row: dict[str, Any]) -> list[str]:
    """Take up to six asserts of the row's check, with the target's own name."""
    found = []
    for node in ast.walk(ast.parse(row["test"])):
        if isinstance(node, ast.Assert) and "candidate(" in ast.unparse(node):
            text = ast.unparse(ast.Assert(test=node.test))
            found.append(text.replace("candidate(", f"{row['entry_point']}("))
    return found[:OWN_TESTS]


def programs(row: dict[str, Any]) -> tuple[str, str]:
    """Give the two programs of a row: the solution with own tests, and with the hidden ones."""
    code = row["prompt"] + row["canonical_solution"]
    own = code + "\n" + "\n".join(own_tests(row))
    return own, f"{code}\n{row['test']}\ncheck({row['entry_point']})\n"


# ---------------------------------------------------------------- the product


def answers(some: list[dict[str, Any]]) -> Callable[[str, dict[str, Any]], Reply]:
    """Answer with the reference solution of the row whose prompt is asked about."""

    def answer(question: str, body: dict[str, Any]) -> Reply:
        text = squeezed(body["messages"][-1]["content"])
        named = [row for row in some if f"`{row['entry_point']}`" in text]
        row = next((row for row in named if beginning(row) in text), named[0])
        if question == "write_tests":
            return Reply("```python\n" + "\n".join(own_tests(row)) + "\n```")
        return Reply(f"```python\n{row['prompt']}{row['canonical_solution']}\n```")

    return answer


def beginning(row: dict[str, Any]) -> str:
    """Give the first words of the target's docstring: names alone are not unique."""
    text = str(row["prompt"])
    quoted = re.split(r"\"\"\"|'''", text[text.rindex(f"def {row['entry_point']}") :])
    return squeezed(quoted[1])[:25]


def squeezed(text: str) -> str:
    return " ".join(text.split())


def batch(file: Path, out: Path, workers: int, limit: int | None, *more: str) -> float:
    """Run the whole command, and give its seconds."""
    call = [sys.executable, "-m", "reflexfix", "batch", str(file), "--out", str(out), "--quiet",
            "--workers", str(workers), "--no-check-suites", "--trials", "1", *more]  # fmt: skip
    if limit is not None:
        call += ["--limit", str(limit)]
    started = time.perf_counter()
    done = subprocess.run(call, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True)
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    return time.perf_counter() - started


def recorded(file: Path, some: list[dict[str, Any]], folder: Path, limit: int | None) -> Path:
    """Record the answers once; the same tasks then have to come out right."""
    with serving(answers(some)) as endpoint:
        batch(file, folder, 2, limit, "--base-url", endpoint.url, "--model", "scripted")
    told = json.loads((folder / "report.json").read_text())["arms"][0]
    print(f"recorded: {told['pass@1']['right']} of {told['pass@1']['n']} right, "
          f"{sum(told['claimed_at_trial'].values())} suites pass")  # fmt: skip
    return folder


# ---------------------------------------------------------------- the others


def cold(engine: Engine, image: str, program: str) -> int:
    """Judge one program as peers do: a container is created, started, waited for, removed."""
    api = engine.client.api
    options = containers.host_options(engine, Limits()) | {"auto_remove": False}
    made = api.create_container(
        image,
        entrypoint=["/usr/bin/python3", "-s", "-P", "-c", program],
        host_config=api.create_host_config(**options),
        user="65534:65534",
        labels=containers.labels(),
    )
    api.start(made["Id"])
    status = api.wait(made["Id"])["StatusCode"]
    api.remove_container(made["Id"], force=True)
    return int(status)


def process(program: str) -> int:
    return subprocess.run(
        [sys.executable, "-s", "-P", "-c", program], capture_output=True
    ).returncode


def timed(judge: Callable[[str], int], every: list[str], workers: int) -> tuple[float, int]:
    """Judge all programs, and give the seconds and how many ended well."""
    started = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        right = sum(status == 0 for status in pool.map(judge, every))
    return time.perf_counter() - started, right


def rounds(count: int, sides: dict[str, Callable[[], float]]) -> Iterator[dict[str, float]]:
    """Run the sides in turns, the first one another each time."""
    names = list(sides)
    for number in range(count):
        turn = names[number % len(names) :] + names[: number % len(names)]
        yield {name: sides[name]() for name in turn}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("humaneval", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    some = rows(given.humaneval, given.limit)
    every = [program for row in some for program in programs(row)]
    engine = assemble.engine()
    image = assemble.ready_image(engine, (), print)
    print(f"{platform.machine()}, {os.cpu_count()} processors, {engine}, {len(every)} answers, "
          f"{given.workers} workers")  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        kept = recorded(given.humaneval, some, Path(name, "kept"), given.limit)
        numbers = iter(range(1000))

        def ours() -> float:
            out = Path(name, f"replay-{next(numbers)}")
            return batch(given.humaneval, out, given.workers, given.limit, "--replay", str(kept))

        def theirs() -> float:
            seconds, right = timed(lambda p: cold(engine, image, p), every, given.workers)
            print(f"  cold: {right} of {len(every)} ended well")
            return seconds

        def bare() -> float:
            return timed(process, every, given.workers)[0]

        found = list(rounds(given.rounds, {"batch": ours, "cold": theirs, "process": bare}))
    speeds = {side: statistics.median(len(every) / one[side] for one in found) for side in found[0]}
    for side, speed in speeds.items():
        print(f"{side:8} {speed:7.1f} answers a second")
    ratio = statistics.median(one["cold"] / one["batch"] for one in found)
    print(f"batch against cold: {ratio:.2f} times (target 1.5)")
    engine.close()


if __name__ == "__main__":
    main()
