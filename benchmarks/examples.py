"""Do the examples that are read out of docstrings accept the right answer?

    python benchmarks/examples.py HumanEval.jsonl.gz
    python benchmarks/examples.py tasks.jsonl --show

The file holds one task a line, with the fields of HumanEval: `task_id`, `prompt`, `entry_point`
and `canonical_solution`. Each task's examples are run against its own solution, in the sandbox.
An example that rejects it is wrong, by the file's fault or by ours; each is printed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reflexfix import assemble
from reflexfix.attempt import Judged, Limits, Suite, Verdict
from reflexfix.errors import UsageProblem
from reflexfix.task import Task, open_task


@dataclass(frozen=True)
class Row:
    """One task of the file."""

    id: str
    prompt: str
    entry_point: str
    solution: str

    @property
    def complete(self) -> str:
        return self.prompt + self.solution


def rows(path: Path) -> Iterator[Row]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for line in data.decode("utf-8").splitlines():
        r = json.loads(line)
        yield Row(r["task_id"], r["prompt"], r["entry_point"], r["canonical_solution"])


def task_of(row: Row, folder: Path) -> Task:
    """Open a prompt as a user's file."""
    path = folder / "task.py"
    path.write_text(row.prompt, encoding="utf-8")
    return open_task(path, row.entry_point)


def rejected(verdict: Verdict) -> Iterator[Judged]:
    return (judged for judged in verdict.judged if not judged.result.passed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--show", action="store_true", help="print every example")
    options = parser.parse_args()
    tasks = with_examples = total = 0
    wrong: list[str] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        assemble.sandbox(Limits(), (), lambda text: print(text, file=sys.stderr)) as sandbox,
    ):
        for row in rows(options.file):
            tasks += 1
            try:
                task = task_of(row, Path(folder))
            except UsageProblem as problem:
                print(f"{row.id}: {problem.message}")
                continue
            cases = tuple(task.examples())
            total += len(cases)
            with_examples += bool(cases)
            if options.show:
                print("\n".join(f"{row.id}: {case.shown}" for case in cases))
            if cases:
                candidate = task.candidate(row.complete.encode("utf-8"))
                verdict = sandbox.run(candidate, Suite(cases))
                wrong += [f"{row.id}: {told(judged)}" for judged in rejected(verdict)]
    print("\n".join(wrong))
    print(f"{with_examples} of {tasks} tasks have examples, {total} in all; {len(wrong)} reject")


def told(judged: Judged) -> str:
    result = judged.result
    seen = f"got {result.actual}" if result.compared else f"{result.status}, {result.message}"
    return f"{judged.case.shown}: {seen}"


if __name__ == "__main__":
    main()
