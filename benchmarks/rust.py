"""How fast a Rust verdict is: against the bare compiler in the same image, and against cargo.

    python benchmarks/rust.py [--rounds 7]

In turns, in one run: a candidate with six tests by the product's sandbox, once with the tests
compiled anew (a first attempt) and once with the tests known (every later one), in containers
that were started ahead; `rustc --test` of the same file and tests, and the run of what comes of
it, timed inside a container of the same image and limits; and six times `cargo check` and `cargo
run`, where this machine has cargo, as the reference implementation of Reflexion does it.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from reflexfix import assemble
from reflexfix.attempt import Limits, Suite
from reflexfix.containers import container as containers
from reflexfix.containers.rust import RustSandbox, limits_for
from reflexfix.rust.task import RustTask, open_task

CODE = """use std::collections::HashMap;

/// Count how often each word occurs, in lower case, the most frequent first.
pub fn word_counts(text: &str, least: usize) -> Vec<(String, usize)> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word.to_lowercase()).or_insert(0) += 1;
    }
    let mut found: Vec<_> = counts.into_iter().filter(|(_, n)| *n >= least).collect();
    found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found
}
"""
TESTS = [
    'assert_eq!(word_counts("", 0), vec![]);',
    'assert_eq!(word_counts("a", 1), vec![("a".to_string(), 1)]);',
    'assert_eq!(word_counts("A a", 1), vec![("a".to_string(), 2)]);',
    'assert_eq!(word_counts("b a", 1).len(), 2);',
    'assert_eq!(word_counts("b a b", 2), vec![("b".to_string(), 2)]);',
    'assert_eq!(word_counts("x y z", 2), vec![]);',
]
FLAGS = {
    "lld": "-Cdebuginfo=0 -Ccodegen-units=1 -Clink-arg=-fuse-ld=lld",
    "lld, stripped": "-Cdebuginfo=0 -Ccodegen-units=1 -Clink-arg=-fuse-ld=lld -Cstrip=debuginfo",
    "lld, all units": "-Cdebuginfo=0 -Clink-arg=-fuse-ld=lld",
}
"""What the bare compiler is tried with; the fastest is what the product is held against."""


def crate() -> str:
    tests = "".join(f"#[test] fn t{n}() {{ {test} }}\n" for n, test in enumerate(TESTS))
    return f"{CODE}\n{tests}"


@contextmanager
def bare(sandbox: RustSandbox) -> Iterator[Callable[[str], float]]:
    """Keep a container of the image in which the bare compiler is timed from within."""
    options = containers.host_options(sandbox.engine, sandbox.limits) | {"auto_remove": False}
    api = sandbox.engine.client.api
    made = api.create_container(
        sandbox.image,
        entrypoint=["/usr/bin/sleep", "3000"],
        host_config=api.create_host_config(**options),
        user="65534:65534",
    )["Id"]
    try:
        api.start(made)

        def seconds(flags: str) -> float:
            quoted = crate().replace("'", "'\\''")
            script = (
                f"cd /tmp && printf '%s' '{quoted}' > t.rs && a=$(date +%s%N) && "
                f"rustc --edition=2021 --test {flags} -o t t.rs && ./t > /dev/null && "
                "b=$(date +%s%N) && echo $(( (b - a) / 1000 ))"
            )
            command = api.exec_create(made, ["/bin/bash", "-c", script])["Id"]
            return int(api.exec_start(command).split()[-1]) / 1e6

        yield seconds
    finally:
        api.remove_container(made, force=True)


def candidate(task: RustTask, sandbox: RustSandbox, suite: Suite) -> float:
    """Time one verdict, once the containers that it needs are there."""
    for ready in list(sandbox.idle):
        ready.result()
    started = time.perf_counter()
    verdict = sandbox.run(task.candidate(task.original), suite)
    assert verdict.solved and verdict.control == "held", verdict
    return time.perf_counter() - started


def cargo(folder: Path) -> float:
    """Time six times `cargo check` and `cargo run`, a crate for each test, on this machine."""
    (folder / "src").mkdir(exist_ok=True)
    (folder / "Cargo.toml").write_text('[package]\nname = "x"\nversion = "0.1.0"\nedition="2021"\n')
    started = time.perf_counter()
    for command in ("check", "run"):
        for test in TESTS:
            (folder / "src" / "main.rs").write_text(f"{CODE}\nfn main() {{ {test} }}\n")
            done = subprocess.run(["cargo", command, "--quiet", "--offline"], cwd=folder)
            assert done.returncode == 0
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with (
        tempfile.TemporaryDirectory() as folder,
        assemble.sandbox(limits_for(Limits()), (), print, 2, "rust") as sandbox,
    ):
        assert isinstance(sandbox, RustSandbox)
        measure(sandbox, Path(folder), rounds)


def measure(sandbox: RustSandbox, folder: Path, rounds: int) -> None:
    file = folder / "words.rs"
    file.write_text(CODE)
    task = open_task(file, "word_counts", False)
    cases, _ = task.own_tests("\n".join(TESTS), [])
    control, value = task.control(cases)
    suite = Suite(tuple(cases), None, control, value)
    taken: dict[str, list[float]] = {}
    with bare(sandbox) as compiler:
        for _ in range(rounds):
            for name, flags in FLAGS.items():
                taken.setdefault(f"bare rustc --test and run ({name})", []).append(compiler(flags))
            sandbox.libraries.clear()
            first = candidate(task, sandbox, suite)
            taken.setdefault("six tests, first attempt", []).append(first)
            later = candidate(task, sandbox, suite)
            taken.setdefault("six tests, tests known", []).append(later)
            if shutil.which("cargo"):
                taken.setdefault("six cargo check and run", []).append(cargo(folder))
    report(taken)


def report(taken: dict[str, list[float]]) -> None:
    middle = {name: statistics.median(times) for name, times in taken.items()}
    for name, times in taken.items():
        print(f"{name}: {middle[name] * 1000:.0f} ms "
              f"[{min(times) * 1000:.0f}-{max(times) * 1000:.0f}]")  # fmt: skip
    best = min(seconds for name, seconds in middle.items() if name.startswith("bare"))
    for name in ("six tests, first attempt", "six tests, tests known"):
        print(f"{name}: {middle[name] / best:.2f} times the bare compiler")
        if "six cargo check and run" in middle:
            faster = middle["six cargo check and run"] / middle[name]
            print(f"{name}: {faster:.1f} times as fast as cargo")


if __name__ == "__main__":
    main()
