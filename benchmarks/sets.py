"""Draw the tasks of the experiments, by a seed that was fixed before the first run.

    python benchmarks/sets.py --mbpp sanitized-mbpp.json --rust humaneval-rs.jsonl \
        > benchmarks/results/sets.json

Development tasks are for trying ideas. Report tasks are run when an idea is done. The rest shows
the batch command at work. Only ids are written: no text of a benchmark.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path

from reflexfix.benchmarks import formats
from reflexfix.benchmarks.problem import Problem, Wishes

SEED = 20261130
HUMANEVAL = [f"HumanEval/{number}" for number in range(164)]
SIZES = {
    "humaneval": {"development": 30, "report": 80, "batch": 40},
    "mbpp": {"development": 30, "report": 40},
    "humaneval-rs": {"development": 10, "report": 40},
}


def draw(ids: Sequence[str], sizes: dict[str, int]) -> dict[str, list[str]]:
    """Give disjoint sets of ids, each in the order in which it was drawn."""
    left = list(ids)
    random.Random(SEED).shuffle(left)
    drawn = {}
    for name, size in sizes.items():
        drawn[name], left = left[:size], left[size:]
    return drawn


def ids_in(file: Path) -> list[str]:
    return [row.id for row in formats.read((file,), Wishes()) if isinstance(row, Problem)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mbpp", type=Path, required=True)
    parser.add_argument("--rust", type=Path, required=True)
    given = parser.parse_args()
    every = {
        "humaneval": HUMANEVAL,
        "mbpp": ids_in(given.mbpp),
        "humaneval-rs": ids_in(given.rust),
    }
    drawn = {name: draw(ids, SIZES[name]) for name, ids in every.items()}
    print(json.dumps({"seed": SEED, **drawn}, indent=1))


if __name__ == "__main__":
    main()
