"""Judge the reference solutions of HumanEval in Rust, and wrong ones, by the product's sandbox.

    python benchmarks/humaneval_rs.py HUMANEVAL_X [REFLEXION_RS] [--only 0,5] [--workers 2]
                                      [--crates FOLDER]

HUMANEVAL_X is HumanEval-X's humaneval_rust.jsonl.gz, which has solutions and `#[test]` modules.
REFLEXION_RS is humaneval-rs.jsonl of the Reflexion repository (MultiPL-E form): prompts and a
`fn main` of assertions; its rows are judged with HumanEval-X's solutions where the signature is
the same. A test that begins with `}` closes the function of a plain completion: it is taken off.
A test that is all one comment (it needs a crate) is laid open.

Every row whose solution needs no crate must be right; `use` lines of crates that nothing needs
are left out. For each row the body is also replaced by a constant of the return type, which must
be judged wrong; rows whose tests cannot tell are named.

With `--crates`, the `use` lines stay, and the layer that `reflexfix sandbox build --with-crates
FOLDER` made is used, of a crate that asks for rand, regex and md5; the rows that need a crate are
judged then. What does not compile with the versions there is named as that.

Fails (exit code 1) when a row is not right, when a row other than NEED_A_CRATE is said to need a
crate or one of these is not, or when fewer than SPLIT of the rows are judged in two processes.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reflexfix import assemble
from reflexfix.attempt import Limits, Sandbox, Suite, Verdict
from reflexfix.errors import ReflexfixError
from reflexfix.rust import splice, syntax, target
from reflexfix.rust.task import RustTask, open_task

CRATES = ("rand", "regex", "md5")
DISAGREE = {"HumanEval_92_any_int": "HumanEval-X takes 3.0 for an integer, MultiPL-E does not"}
"""Rows of the second source whose tests the first one's solution cannot pass."""
NEED_A_CRATE = {f"Rust/{number}" for number in (32, 38, 50, 53, 91, 162)}
SPLIT = 0.95
"""The share of rows that has to be judged in two processes."""
CONSTANTS = ("Default::default()", '""', "&[]", "'x'", "Ok(Default::default())", "None")


@dataclass(frozen=True)
class Row:
    """One problem: a whole file with its solution, and a whole file of tests."""

    name: str
    function: str
    code: str
    tests: str


def rows(path: Path) -> Iterator[dict[str, Any]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    for line in text.splitlines():
        yield json.loads(line)


def humaneval_x(path: Path, with_crates: bool) -> Iterator[Row]:
    for row in rows(path):
        code = row["declaration"] + row["canonical_solution"]
        root = syntax.parse(code.encode())
        tests = row["test"].strip().removeprefix("/*").removesuffix("*/")
        needs_one = with_crates and row["task_id"] in NEED_A_CRATE
        whole = code if needs_one else without_crates(code)
        yield Row(row["task_id"], tested(root, tests), whole, tests)


def reflexion(path: Path, solved: dict[str, Row]) -> Iterator[Row]:
    """Pair MultiPL-E rows with the solutions of HumanEval-X, by number and signature."""
    for row in rows(path):
        number = row["name"].split("_")[1]
        other = solved.get(f"Rust/{number}")
        stub = row["prompt"] + "    todo!()\n}\n"
        mine = signature(stub, row["entry_point"])
        if other is None or mine != signature(other.code, other.function):
            continue
        tests = row["test"].lstrip().removeprefix("}")
        yield Row(row["name"], row["entry_point"], renamed(row, other, stub), tests)


def signature(code: str, name: str) -> str:
    found = named(code, name)
    if found is None:
        return ""
    kinds = [p.child_by_field_name("type") for p in syntax.find(found.node, "parameter")]
    returned = found.node.child_by_field_name("return_type")
    return " ".join(syntax.squeezed(kind) for kind in [*kinds, returned] if kind is not None)


def named(code: str, name: str) -> target.Found | None:
    every = target.functions(syntax.parse(code.encode()))
    return next((found for found in every if found.own_name == name), None)


def renamed(row: dict[str, Any], other: Row, stub: str) -> str:
    """Let the prompt's function call HumanEval-X's, which lies in a module of its own."""
    found = named(stub, row["entry_point"])
    assert found is not None
    patterns = [p.child_by_field_name("pattern") for p in syntax.find(found.node, "parameter")]
    passed = ", ".join(syntax.text(p) for p in patterns)
    body = f"solution::{other.function}({passed})"
    inner = other.code.replace(f"fn {other.function}", f"pub fn {other.function}", 1)
    head = stub.replace("todo!()", body)
    return f"{head}\nmod solution {{\n{inner.replace('pub pub', 'pub')}\n}}\n"


def tested(root: Any, tests: str) -> str:
    """Name the function of the file that its tests call first."""
    names = {found.own_name for found in target.functions(root)}
    words = syntax.leaves(syntax.parse(tests.encode()))
    calls = [w for w, after in itertools.pairwise(words) if after == "(" and w in names]
    return calls[0] if calls else [found.own_name for found in target.functions(root)][-1]


def without_crates(code: str) -> str:
    """Leave out `use` lines of crates; what needs them does not compile then."""
    data = code.encode()
    lines = list(syntax.find(syntax.parse(data), "use_declaration"))
    edits = [
        splice.Edit(node.start_byte, node.end_byte, "")
        for node in lines
        if syntax.text(node.child_by_field_name("argument")).split("::")[0] in CRATES
    ]
    return splice.applied(data, edits).decode()


@dataclass
class Judged:
    """What came of one row."""

    row: Row
    right: str = ""
    """ "" when judged right; else what was said."""
    modes: frozenset[str] = frozenset()
    constant: str = ""
    """"wrong" as it should be, "right" when the tests cannot tell, "none" when none fits."""


def judge(row: Row, sandbox: Sandbox) -> Judged:
    with tempfile.TemporaryDirectory() as folder:
        file, tests = Path(folder, "solution.rs"), Path(folder, "tests.rs")
        file.write_text(row.code)
        tests.write_text(row.tests)
        try:
            task = open_task(file, row.function, False)
            suite = Suite(user=task.user_tests(tests))
            verdict = sandbox.run(task.candidate(task.original), suite)
        except ReflexfixError as error:
            return Judged(row, error.message)
        modes = frozenset(one.result.mode for one in verdict.judged)
        if not verdict.solved:
            return Judged(row, said(verdict), modes)
        return Judged(row, "", modes, constant(task, suite, sandbox))


def said(verdict: Verdict) -> str:
    if verdict.problem:
        return verdict.problem[:300]
    return "; ".join(f"{f.case.name}: {f.result.message[:150]}" for f in verdict.failures[:2])


def constant(task: RustTask, suite: Suite, sandbox: Sandbox) -> str:
    """Judge constants of the return type until one compiles."""
    for value in CONSTANTS:
        code = splice.Code(value)
        file = splice.spliced(task.source, task.root, task.found, code)
        verdict = sandbox.run(task.candidate(file), suite)
        if verdict.solved:
            return "right"
        if not verdict.problem:
            return "wrong"
    return "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("humaneval_x", type=Path)
    parser.add_argument("reflexion", type=Path, nargs="?")
    parser.add_argument("--only", default="")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--crates", type=Path)
    chosen = parser.parse_args()
    problems = list(humaneval_x(chosen.humaneval_x, bool(chosen.crates)))
    more = reflexion(chosen.reflexion, {r.name: r for r in problems}) if chosen.reflexion else ()
    problems += list(more)
    if chosen.only:
        wanted = {f"Rust/{number}" for number in chosen.only.split(",")}
        problems = [row for row in problems if row.name in wanted]
    file = chosen.crates / "Cargo.toml" if chosen.crates else None
    if file is not None and not assemble.built_crates(assemble.engine(), file):
        sys.exit(f"first: reflexfix sandbox build --with-crates {chosen.crates}")
    with (
        assemble.sandbox(Limits(), (), print, 2, "rust", file) as sandbox,
        ThreadPoolExecutor(chosen.workers) as workers,
    ):
        found = list(workers.map(lambda row: judge(row, sandbox), problems))
    report(found, bool(chosen.crates))


def report(found: list[Judged], with_crates: bool) -> None:
    crates = [one for one in found if one.right and any(needs(one.right, c) for c in CRATES)]
    if with_crates:
        crates = [one for one in found if one.right and one.row.name in NEED_A_CRATE]
    wrong = [one for one in found if one.right and one not in crates]
    for one in [one for one in wrong if one.row.name in DISAGREE]:
        print(f"sources disagree: {one.row.name}: {DISAGREE[one.row.name]}")
        wrong.remove(one)
    right = [one for one in found if not one.right]
    split = [one for one in right if one.modes == {"split"}]
    print(
        f"{len(found)} rows: {len(right)} right, {len(crates)} need a crate, {len(wrong)} not right"
    )
    print("need a crate:", ", ".join(one.row.name for one in crates) or "none")
    for one in crates if with_crates else []:
        print(f"does not fit the crate's version: {one.row.name}: {one.right[:200]}")
    named = {one.row.name for one in crates}
    asked = {one.row.name for one in found} & NEED_A_CRATE
    unexpected = sorted(named - asked if with_crates else {n for n in named ^ asked if "/" in n})
    if unexpected:
        print("unexpected:", ", ".join(unexpected))
    for one in wrong:
        print(f"not right: {one.row.name}: {one.right}")
    print(f"split: {len(split)} of {len(right)}")
    apart = [one.row.name for one in right if one.modes != {"split"}]
    print("in-process:", ", ".join(apart) or "none")
    for kind in ("wrong", "right", "none"):
        names = [one.row.name for one in right if one.constant == kind]
        listed = "" if kind == "wrong" else ": " + ", ".join(names)
        print(f"constant body judged {kind}: {len(names)}{listed}")
    sys.exit(bool(wrong or unexpected or len(split) < SPLIT * len(right)))


def needs(message: str, crate: str) -> bool:
    return f"`{crate}`" in message or f"{crate}::" in message or "Regex" in message


if __name__ == "__main__":
    main()
