"""Score the reference solutions of a benchmark's file, or answers that others published.

    python benchmarks/references.py FILE [--answers] [--buggy] [--only ID,ID] [--workers 2]

FILE is any file that `reflexfix batch` reads. Every reference solution should be right: how many
are is printed, and each row that differs is named with what was said. With --buggy the buggy
bodies of a repair benchmark are scored instead, which should all be wrong.

With --answers, FILE holds published answers in Reflexion's form, the rows of a benchmark with
`solution` and `is_solved`: our count stands beside the published one, and each row on which the two
differ is named with the kind of the difference.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from reflexfix import assemble
from reflexfix.benchmarks.formats import read
from reflexfix.benchmarks.problem import BadRow, Problem, Wishes
from reflexfix.benchmarks.python_text import last_function
from reflexfix.python import syntax
from reflexfix.scoring import Sandboxes, Score, score


@dataclass(frozen=True)
class Answer:
    """A file to be scored, and what others said of it."""

    file: str
    solved: bool | None = None


def problems(path: Path, wishes: Wishes, only: set[str]) -> Iterator[Problem]:
    for one in read([path], wishes):
        if isinstance(one, BadRow):
            print(f"no problem: {one.file}:{one.line}: {one.why}")
        elif not only or one.id in only:
            yield one


def published(path: Path) -> dict[str, tuple[str, bool]]:
    """Read answers by the id of their row."""
    found = {}
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        name = row.get("task_id") or row["name"]
        found[name] = (row["solution"], bool(row["is_solved"]))
    return found


def file_of(problem: Problem, prompt: str, solution: str) -> str:
    """Put a published answer into a file: a whole function stands after the prompt, a body ends it.

    In Rust a whole file replaces the prompt, with the `use` lines that it lacks.
    """
    if problem.language == "rust":
        uses = [line for line in prompt.split("\n") if line.startswith("use ")]
        return "\n".join([*(line for line in uses if line not in solution), solution, ""])
    tree = syntax.module(solution)
    if tree is not None and last_function(tree, problem.function) is not None:
        return f"{problem.source}\n\n{solution}\n"
    return f"{prompt}{solution}\n"


def answers(path: Path, rows: dict[str, str], found: list[Problem]) -> dict[str, Answer]:
    given = published(path)
    return {
        problem.id: Answer(file_of(problem, rows[problem.id], given[problem.id][0]), solved)
        for problem in found
        for solved in [given[problem.id][1]]
    }


def prompts(path: Path) -> dict[str, str]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {row.get("task_id") or row["name"]: row["prompt"] for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--answers", action="store_true")
    parser.add_argument("--buggy", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    only = {name for name in chosen.only.split(",") if name}
    found = list(problems(chosen.file, Wishes(repair=chosen.buggy), only))
    if chosen.answers:
        given = answers(chosen.file, prompts(chosen.file), found)
    else:
        take: Callable[[Problem], str] = (
            (lambda p: p.source) if chosen.buggy else (lambda p: p.solution)
        )
        given = {p.id: Answer(take(p), not chosen.buggy) for p in found if take(p)}
    scored = list(scores(found, given, chosen.workers))
    sys.exit(bool(report(scored, given, published=chosen.answers)))


def scores(
    found: list[Problem], given: dict[str, Answer], workers: int
) -> Iterator[tuple[Problem, Score]]:
    """Score the answers, a few at a time."""
    mine = [problem for problem in found if problem.id in given]
    with (
        Sandboxes(
            lambda language, packages, limits: assemble.sandbox(
                limits, packages, print, workers, language
            )
        ) as sandboxes,
        ThreadPoolExecutor(workers) as pool,
    ):
        results = pool.map(lambda p: score(p, given[p.id].file.encode(), sandboxes), mine)
        yield from zip(mine, results, strict=True)


def report(scored: list[tuple[Problem, Score]], given: dict[str, Answer], published: bool) -> int:
    """Print counts and differences; give how many rows differ without being excused."""
    right = sum(result.passed for _, result in scored)
    base = [result.base for _, result in scored if result.base is not None]
    modes = Counter(result.mode for _, result in scored)
    said = ", ".join(f"{count} {mode}" for mode, count in sorted(modes.items()))
    print(f"{len(scored)} rows: {right} right ({said})")
    if base:
        print(f"base tests alone: {sum(base)} of {len(base)} right")
    if published:
        print(f"published: {sum(bool(given[p.id].solved) for p, _ in scored)} right")
    apart = [(p, r) for p, r in scored if r.passed is not given[p.id].solved]
    for problem, result in apart:
        print(f"differs: {problem.id}: {kind(problem, result)}: {short(result)}")
    in_one = [p.id for p, r in scored if r.mode == "in-process"]
    print("in-process:", ", ".join(in_one) or "none")
    return sum(result.status != "needs crate" for _, result in apart)


def kind(problem: Problem, result: Score) -> str:
    """Name the kind of a difference."""
    if result.passed:
        return "passes here"
    if "unsupported type" in result.message:
        return "a value that no wire carries"
    return result.status + (" (a time limit)" if result.limited else "")


def short(result: Score) -> str:
    return " ".join(result.message.split())[:200]


if __name__ == "__main__":
    main()
