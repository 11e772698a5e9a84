"""Write the figures of a batch as Markdown: `python benchmarks/table.py REPORT.json`.

REPORT.json is what `reflexfix batch` leaves. Nothing of a benchmark's text is in it or comes out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def of(share: Mapping[str, Any]) -> str:
    """Write a share with its interval."""
    if not share["n"]:
        return "-"
    low, high = 100 * share["low"], 100 * share["high"]
    return f"{share['right']}/{share['n']} = {100 * share['share']:.1f} % ({low:.0f} to {high:.0f})"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *(list(row) for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def arms(told: Mapping[str, Any]) -> str:
    head = ["arm", "pass@1 (95 %)", "false positives", "false negatives", "suites right",
            "tokens a task", "seconds a task", "sandbox's share"]  # fmt: skip
    return table(head, (row(arm) for arm in told["arms"]))


def row(arm: Mapping[str, Any]) -> list[str]:
    own, seconds = arm["own_tests"], arm["seconds"]
    return [
        arm["name"],
        of(arm["pass@1"]),
        of(own["false_positives"]),
        of(own["false_negatives"]),
        of(arm["suites_that_accept_the_reference"]),
        f"{arm['tokens']['per_task']:.0f}",
        f"{seconds['per_task']:.0f}",
        f"{100 * seconds['sandbox'] / seconds['all']:.1f} %" if seconds["all"] else "-",
    ]


def pairs(told: Mapping[str, Any]) -> str:
    head = ["", "tasks", "won", "lost", "points (95 %)", "exact p", ""]
    rows = [
        [
            f"{pair['second']} against {pair['first']}",
            str(pair["n"]),
            str(len(pair["won"])),
            str(len(pair["lost"])),
            points(pair),
            f"{pair['p']:.2f}",
            "shown" if pair["shown"] else "not shown",
        ]
        for pair in told["pairs"]
    ]
    return table(head, rows)


def points(pair: Mapping[str, Any]) -> str:
    difference, low, high = (100 * pair[name] for name in ("difference", "low", "high"))
    return f"{difference:+.1f} ({low:+.0f} to {high:+.0f})"


def labels(told: Mapping[str, Any]) -> str:
    rows = [
        [arm["name"], label, of(share)]
        for arm in told["arms"]
        for label, share in arm["labels"].items()
    ]
    return table(["arm", "label", "right by hidden tests"], rows)


def curves(told: Mapping[str, Any]) -> str:
    rows = []
    for arm in told["arms"]:
        after = arm["post_hoc"].get("right_after_trial")
        if after:
            steps = ", ".join(f"{k}: {right}" for k, right in after["right"].items())
            lessons = ", ".join(f"{n} {kind}" for kind, n in arm["lessons"].items()) or "-"
            rows.append([arm["name"], f"{steps} of {after['n']}", lessons])
    return table(["arm", "right after trial (post hoc)", "lessons"], rows)


def main() -> None:
    told = json.loads(Path(sys.argv[1]).read_text())
    print("\n".join([arms(told), pairs(told), labels(told), curves(told)]))


if __name__ == "__main__":
    main()
