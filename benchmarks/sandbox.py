"""How fast the sandbox is, beside what else could be done; pairs run in turn in one process.

    python benchmarks/sandbox.py [--rounds 20] [--evaluations 40]

Prints the machine, medians with range, and the ratios that the README quotes. A HumanEval-size
candidate with six tests is judged: in a warm container (the default), in a cold one with the
same settings, by `docker exec` into a kept container, and unsandboxed in fresh interpreters and
forks. Then whole evaluations a second, with 1, 2 and 4 workers, against the plain way: create,
start, wait, remove with the same settings.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from reflexfix import assemble
from reflexfix.attempt import Candidate, Case, Limits, Suite
from reflexfix.containers import container as containers
from reflexfix.containers.engine import Engine
from reflexfix.containers.sandbox import ContainerSandbox

BODY = """
    seen, out = set(), []
    for number in numbers:
        if number not in seen and numbers.count(number) == 1:
            out.append(number)
        seen.add(number)
    return out
"""
HEAD = """from typing import List


def unique(numbers: List[int]) -> List[int]:
    \"\"\"Once only.\"\"\"
"""
TESTS = [
    "assert unique([1, 2, 3, 2, 4]) == [1, 3, 4]",
    "assert unique([]) == []",
    "assert unique([1]) == [1]",
    "assert unique([1, 1]) == []",
    "assert unique([3, 2, 1]) == [3, 2, 1]",
    "assert unique([5, -5, 5]) == [-5]",
]
STUB, FILE = (HEAD + "    ...\n").encode(), (HEAD + BODY).encode()
CANDIDATE = Candidate({"m.py": FILE}, "m", "unique", stub_files={"m.py": STUB})
SUITE = Suite(tuple(Case(f"own {n}", text, text, "own") for n, text in enumerate(TESTS, 1)))
SCRIPT = FILE.decode() + "\n" + "\n".join(TESTS) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=40)
    given = parser.parse_args()
    engine = assemble.engine()
    image = assemble.ready_image(engine, (), print)
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, {engine}")
    latency(engine, image, given.rounds)
    for workers in (1, 2, 4):
        throughput(engine, image, workers, given.evaluations)


# ---------------------------------------------------------------- one evaluation


def latency(engine: Engine, image: str, rounds: int) -> None:
    """Time one evaluation in every way, in turns."""
    kept = keep_container(engine, image)
    with ContainerSandbox(engine, image, Limits(), pool=1) as warm:
        cold = ContainerSandbox(engine, image, Limits(), pool=0)
        ways: dict[str, Callable[[], None]] = {
            "warm container": lambda: judge(warm),
            "cold container, same settings": lambda: judge(cold),
            "docker exec, kept container": lambda: execute(engine, kept),
            "fresh interpreter, whole suite": lambda: interpret(SCRIPT),
            "fresh interpreter a test": lambda: each_test(interpret),
            "fork a test": lambda: each_test(fork),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                settle(warm)
                started = time.perf_counter()
                way()
                times[name].append((time.perf_counter() - started) * 1000)
        cold.close()
    containers.remove(engine, kept)
    for name, found in times.items():
        print(f"{name:32} {show(found)}")
    ratios(times)


def judge(sandbox: ContainerSandbox) -> None:
    verdict = sandbox.run(CANDIDATE, SUITE)
    assert verdict.solved, verdict


def settle(sandbox: ContainerSandbox) -> None:
    """Wait until a container is ready and the last one is gone: neither is on the critical path."""
    while not is_settled(sandbox):
        time.sleep(0.01)


def is_settled(sandbox: ContainerSandbox) -> bool:
    """Whether there is nothing but the pool and its lenders."""
    if sandbox.starting or not all(future.done() for future in sandbox.idle):
        return False
    ready = [future.result() for future in sandbox.idle]
    lenders = {one.lender for one in ready} | {*sandbox.lenders.free}
    return len(ready) == sandbox.pool and {*sandbox.heart.known()} <= {*ready} | lenders


def keep_container(engine: Engine, image: str) -> str:
    made = engine.client.api.create_container(
        image,
        entrypoint=["sleep", "3600"],
        host_config=engine.client.api.create_host_config(network_mode="none", auto_remove=True),
        labels=containers.labels(),
    )
    engine.client.api.start(made["Id"])
    return str(made["Id"])


def execute(engine: Engine, kept: str) -> None:
    api = engine.client.api
    made = api.exec_create(kept, ["python3", "-I", "-c", SCRIPT])
    api.exec_start(made["Id"])
    assert api.exec_inspect(made["Id"])["ExitCode"] == 0


def interpret(script: str) -> None:
    subprocess.run([sys.executable, "-I", "-c", script], check=True)


def fork(script: str) -> None:
    pid = os.fork()
    if pid == 0:
        exec(script, {})
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def each_test(run: Callable[[str], None]) -> None:
    for text in TESTS:
        run(FILE.decode() + "\n" + text)


def ratios(times: dict[str, list[float]]) -> None:
    """Print the promised ratios, pair by pair."""
    for name, other, target in (
        ("cold container, same settings", "warm container", "at least 15"),
        ("warm container", "fresh interpreter a test", "at most 0.5"),
        ("warm container", "fresh interpreter, whole suite", "at most 2"),
        ("warm container", "fork a test", "the floor"),
    ):
        pairs = [a / b for a, b in zip(times[name], times[other], strict=True)]
        print(f"{name} / {other}: {statistics.median(pairs):.2f} ({target})")


def show(times: list[float]) -> str:
    return f"{statistics.median(times):8.1f} ms [{min(times):.1f}-{max(times):.1f}]"


# ---------------------------------------------------------------- many evaluations


def throughput(engine: Engine, image: str, workers: int, evaluations: int) -> None:
    """Count whole evaluations a second, ours and the plain way, in turns."""
    rates: dict[str, list[float]] = {"ours": [], "plain": []}
    for _ in range(2):
        with ContainerSandbox(engine, image, Limits(), pool=workers) as ours:
            rate(lambda: judge(ours), workers, 3 * workers)  # as in the middle of a batch
            rates["ours"].append(rate(lambda: judge(ours), workers, evaluations))
        rates["plain"].append(rate(lambda: plain(engine, image), workers, evaluations))
    ours_rate, plain_rate = (statistics.median(rates[name]) for name in ("ours", "plain"))
    print(
        f"{workers} workers: {ours_rate:.1f} evaluations a second, create-start-wait-remove "
        f"{plain_rate:.1f}, ratio {ours_rate / plain_rate:.2f} (at least 1.5)"
    )


def rate(work: Callable[[], None], workers: int, count: int) -> float:
    started = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(work) for _ in range(count)]:
            future.result()
    return count / (time.perf_counter() - started)


def plain(engine: Engine, image: str) -> None:
    """Do what a harness without a pool does, with every wall of ours."""
    api = engine.client.api
    options = containers.host_options(engine, Limits()) | {"auto_remove": False}
    made = api.create_container(
        image,
        entrypoint=["python3", "-I", "-c", SCRIPT],
        host_config=api.create_host_config(**options),
        user="65534:65534",
        labels=containers.labels(),
    )
    api.start(made["Id"])
    assert api.wait(made["Id"])["StatusCode"] == 0
    api.remove_container(made["Id"], force=True)


if __name__ == "__main__":
    main()
