"""How often the function at fault is found, on the 40 programs of QuixBugs in one module.

    python benchmarks/localise.py QUIXBUGS_JSONL [--wrapper plain|tuple|list] [--only NAME ...]

One program at a time is the buggy one; the other 39 are right. Tests call each program only
through a wrapper of another name, which is part of the project and calls two right programs as
well; the tests of all 40 are run. `--wrapper` says what a wrapper gives back: the program's own
result, or a tuple or list of all three. Prints the rank of the buggy function for each program,
and the shares of those found first and among the first three.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from reflexfix import assemble
from reflexfix.containers import image as images
from reflexfix.hook import early, environment, mend, settings, work
from reflexfix.hook import plan as plans
from reflexfix.hook.environment import Need
from reflexfix.hook.tree import PLAIN, File, Tree

GENERATORS = ("flatten", "kheapsort")


def rows(path: Path) -> dict[str, dict[str, Any]]:
    found = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    return {row["task_id"].rpartition("/")[2]: row for row in found}


def module(programs: dict[str, dict[str, Any]], buggy: str) -> str:
    """Put all programs into one module, each as it should be but for one."""
    parts = ["from node import Node"]
    for name, row in programs.items():
        text = row["buggy" if name == buggy else "fixed"]
        parts.append(re.sub(r"\bfrom \.?node import Node\b", "", text))
    return "\n\n".join(parts) + "\n"


PARTNERS = {
    "gcd": "gcd(12, 18)", "bitcount": "bitcount(5)", "pascal": "pascal(3)",
    "to_base": "to_base(31, 16)", "mergesort": "mergesort([3, 1, 2])",
    "powerset": "powerset(['a', 'b'])", "lis": "lis([1, 3, 2])",
    "get_factors": "get_factors(100)", "hanoi": "hanoi(2)", "sieve": "sieve(10)",
}  # fmt: skip
"""Calls of programs that a wrapper makes beside its own."""


def partners(name: str, buggy: str) -> list[str]:
    """List the right programs that a wrapper may call beside its own."""
    return [partner for partner in PARTNERS if partner not in (name, buggy)]


def wrappers(programs: list[str], kind: str, buggy: str) -> str:
    """Write a wrapper for each program that calls two others too."""
    parts = ["import programs", ""]
    for number, name in enumerate(programs):
        others = partners(name, buggy)
        before, after = (others[(number + k) % len(others)] for k in (0, 3))
        call = f"programs.{name}(*args)"
        call = f"list({call})" if name in GENERATORS else call
        given = {"plain": "result", "tuple": "(first, result, last)",
                 "list": "[first, result, last]"}[kind]  # fmt: skip
        parts += [
            f"def work_{number}(*args):",
            f"    first = programs.{PARTNERS[before]}",
            f"    result = {call}",
            f"    last = programs.{PARTNERS[after]}",
            f"    return {given}",
            "",
        ]
    return "\n".join(parts) + "\n"


def tests(programs: dict[str, dict[str, Any]], kind: str, buggy: str) -> Iterator[tuple[str, str]]:
    """Write a test file for each program; what partners give is part of what is expected."""
    for number, (name, row) in enumerate(programs.items()):
        if row["json_tests"]:
            yield f"tests/test_{number}.py", of_table(number, name, row, kind, buggy)
        else:
            yield f"tests/test_{number}.py", of_text(number, name, row["test"], kind)


def of_table(number: int, name: str, row: dict[str, Any], kind: str, buggy: str) -> str:
    cases = [(a if isinstance(a, list) else [a], wanted) for a, wanted in row["json_tests"]]
    kept = [case for case in cases if not is_slow(name, case[0])]
    others = partners(name, buggy)
    first, last = (PARTNERS[others[(number + k) % len(others)]] for k in (0, 3))
    shape = {"plain": "wanted", "tuple": "(FIRST, wanted, LAST)",
             "list": "[FIRST, wanted, LAST]"}[kind]  # fmt: skip
    compare = "got == wanted"
    if name == "sqrt":
        shape = shape.replace("wanted", "pytest.approx(wanted, abs=args[-1])")
    names = ", ".join(dict.fromkeys([first.partition("(")[0], last.partition("(")[0]]))
    return (
        f"import pytest\nfrom wrappers import work_{number}\nfrom right import {names}\n\n"
        f"FIRST, LAST = {first}, {last}\nCASES = {kept!r}\n\n\n"
        "def tuples(value):\n"
        "    return [tuple(v) for v in value]\n\n\n"
        '@pytest.mark.parametrize(("args", "wanted"), CASES)\n'
        "def test_it(args, wanted):\n"
        f"    wanted = {'tuples(wanted)' if name == 'hanoi' else 'wanted'}\n"
        f"    wanted = {shape}\n"
        f"    got = work_{number}(*args)\n"
        f"    assert {compare}\n"
    )


def of_text(number: int, name: str, text: str, kind: str) -> str:
    """Give upstream's own test with its import turned to the wrapper."""
    body = re.sub(r"if pytest\.use_correct:\n.*\nelse:\n.*\n", "", text)
    taken = {"plain": "work(*args)"}.get(kind, "work(*args)[1]")
    head = (
        f"from wrappers import work_{number} as work\n\n\ndef {name}(*args):\n    return {taken}\n"
    )
    return head + body


def is_slow(name: str, args: list[Any]) -> bool:
    if name == "levenshtein":
        return any(len(str(a)) > 8 for a in args)
    return name == "knapsack" and args[0] > 1_000


def tree_of(programs: dict[str, dict[str, Any]], node: str, buggy: str, kind: str) -> Tree:
    texts = {
        "pyproject.toml": "[tool.reflexfix.sandbox]\ntest_seconds = 5\n",
        "programs.py": module(programs, buggy),
        "wrappers.py": wrappers(list(programs), kind, buggy),
        "node.py": node,
        "tests/right.py": module(programs, ""),
        **dict(tests(programs, kind, buggy)),
    }
    return Tree({path: File(PLAIN, text.encode()) for path, text in texts.items()})


def project_of(tree: Tree) -> work.Project:
    plan = replace(plans.plan(tree), roots=("tests",))
    chosen, limits = settings.of_tree(tree)
    home = Path(".")
    return work.Project(tree, home, home, chosen, limits, plan, Need())


def rank(project: work.Project, name: str) -> tuple[int, str]:
    """Say on which place the buggy function comes, and what was seen; 0 for nowhere."""
    outcome = work.Outcome()
    with early.Early(lambda: project.tree) as opened:
        sandbox = opened.sandbox(project)
        work.test(project, sandbox, outcome)
        if not outcome.failing:
            return 0, f"no test fails {outcome.report.trouble}"
        seen = work.look(project, sandbox, outcome)
    found = mend.suspects(project.tree, project.plan, seen)
    places = [n for n, s in enumerate(found, 1) if (s.path, s.name) == ("programs.py", name)]
    shown = ", ".join(f"{s.name} {s.score:.2f}" for s in found[:4])
    timeouts = sum(r.status == "timeout" for r in outcome.failing)
    head = f"{len(outcome.failing)} failing ({timeouts} by time), {len(outcome.flaky)} flaky"
    return (places or [0])[0], f"{head}: {shown}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--wrapper", choices=["plain", "tuple", "list"], default="plain")
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    every = rows(options.data)
    node = every.pop("node")["fixed"]
    engine = assemble.engine()
    for step in environment.prepare(engine, Need(), Path.cwd()):
        print(step)
    assert images.find(engine, Need().recipe)
    ranks = {}
    for name in options.only or every:
        began = time.monotonic()
        project = project_of(tree_of(every, node, name, options.wrapper))
        ranks[name], shown = rank(project, name)
        print(f"{ranks[name]:2d} {name} ({time.monotonic() - began:.1f} s) {shown}", flush=True)
    total = len(ranks)
    for most in (1, 3):
        good = sum(0 < place <= most for place in ranks.values())
        print(f"among the first {most}: {good} of {total} ({100 * good / total:.1f} %)")


if __name__ == "__main__":
    main()
