"""Draw the tasks of the experiments, by a seed that was fixed before the first run.

    python benchmarks/sets.py > benchmarks/results/sets.json

Development tasks are for trying ideas. Report tasks are run when an idea is done. The rest shows
the batch command at work. Only ids are written: no text of a benchmark.
"""

from __future__ import annotations

import json
import random

SEED = 20261130
HUMANEVAL = [f"HumanEval/{number}" for number in range(164)]


def draw() -> dict[str, object]:
    """Give disjoint sets of ids, each in the order in which it was drawn."""
    ids = list(HUMANEVAL)
    random.Random(SEED).shuffle(ids)
    return {
        "seed": SEED,
        "humaneval": {"development": ids[:30], "report": ids[30:110], "batch": ids[110:150]},
    }


if __name__ == "__main__":
    print(json.dumps(draw(), indent=1))
