"""Draw the learning curves and what became of the lessons, from the lines of `evaluator.py`.

    python benchmarks/picture.py FILE.jsonl [--arm NAME ...] > curve.svg

Left: the share of tasks whose best answer so far is right after each trial, by the hidden tests,
judged after the fact, over the tasks that all arms drawn have. Right: for each arm, how many
lessons helped, changed nothing, or hurt, over all its tasks.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from evaluator import lines_of

from reflexfix.batch import scores
from reflexfix.batch.result import Result

WIDTH, HEIGHT = 860, 320
PLOT = (56, 430, 24, 276)
"""Left, right, top and bottom of the curves."""
BARS = (640, 820)
"""Where bars begin, and where the longest of them ends."""
COLOURS = ("#0b7285", "#c92a2a", "#5f3dc4", "#e67700", "#2b8a3e", "#495057")
KINDS = {"helped": "#2b8a3e", "no change": "#adb5bd", "hurt": "#c92a2a", "unknown": "#dee2e6"}


def steps_of(arm: Mapping[str, Any]) -> list[float]:
    """Give the shares after trial 1, 2, ... in percent."""
    after = arm["post_hoc"].get("right_after_trial")
    if not after or not after["n"]:
        return []
    most = max(map(int, after["right"]))
    return [100 * after["right"].get(str(k), 0) / after["n"] for k in range(1, most + 1)]


def text(x: float, y: float, said: str, colour: str = "#212529", anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}">{escape(said)}</text>'


def curves(arms: Sequence[Mapping[str, Any]]) -> list[str]:
    left, right, top, bottom = PLOT
    drawn = [(arm["name"], steps) for arm in arms if (steps := steps_of(arm))]
    longest = max((len(steps) for _, steps in drawn), default=1)
    every = [value for _, steps in drawn for value in steps] or [0.0, 100.0]
    low, high = max(0, int(min(every) // 10) * 10), min(100, int(max(every) // 10 + 1) * 10)

    def x(k: int) -> float:
        return left + (right - left) * k / max(1, longest - 1)

    def y(value: float) -> float:
        return bottom - (bottom - top) * (value - low) / (high - low)

    tasks = min((arm["post_hoc"]["right_after_trial"]["n"] for arm in arms), default=0)
    said = f"right by the hidden tests after each trial, {tasks} tasks"
    parts = [text(left, top - 8, said)]
    for tick in range(low, high + 1, 5):
        parts.append(
            f'<line x1="{left}" x2="{right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" '
            'stroke="#e9ecef"/>'
        )
        parts.append(text(left - 8, y(tick) + 4, f"{tick} %", anchor="end"))
    parts += [text(x(k), bottom + 22, str(k + 1), anchor="middle") for k in range(longest)]
    ends: list[float] = []
    for index, (name, steps) in enumerate(sorted(drawn, key=lambda one: -one[1][-1])):
        colour, full = COLOURS[index % len(COLOURS)], steps + [steps[-1]] * (longest - len(steps))
        points = " ".join(f"{x(k):.1f},{y(value):.1f}" for k, value in enumerate(full))
        parts.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2.5" points="{points}"/>'
        )
        place = max([y(full[-1]) + 4, *(end + 15 for end in ends)])
        ends.append(place)
        parts.append(text(right + 8, place, f"{name} {full[-1]:.0f} %", colour))
    return parts


def bars(arms: Sequence[Mapping[str, Any]]) -> list[str]:
    begin, end = BARS
    told = [(arm["name"], arm["lessons"]) for arm in arms if arm["lessons"]]
    if not told:
        return []
    longest = max(sum(counts.values()) for _, counts in told)
    parts = [text(begin, PLOT[2] - 8, "what became of the lessons")]
    for row, (name, counts) in enumerate(told):
        y, x = PLOT[2] + 24 + 34 * row, float(begin)
        parts.append(text(begin - 8, y + 14, name, anchor="end"))
        for kind, colour in KINDS.items():
            if count := counts.get(kind, 0):
                width = (end - begin) * count / longest
                parts.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="20" fill="{colour}"/>'
                )
                parts.append(text(x + width / 2, y + 15, str(count), anchor="middle"))
                x += width
    met = {kind for _, counts in told for kind in counts}
    for row, (kind, colour) in enumerate((k, c) for k, c in KINDS.items() if k in met):
        y = PLOT[3] - 66 + 22 * row
        parts.append(f'<rect x="{begin}" y="{y}" width="14" height="14" fill="{colour}"/>')
        parts.append(text(begin + 20, y + 12, kind if kind != "unknown" else "never tried"))
    return parts


def picture(compared: Sequence[Mapping[str, Any]], whole: Sequence[Mapping[str, Any]]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="system-ui, sans-serif" font-size="13">'
    )
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    return "\n".join([head, ground, *curves(compared), *bars(whole), "</svg>"])


def common(results: Sequence[Result], arms: Sequence[str]) -> set[str]:
    """Give the tasks that all these arms have a verdict on: only on them can curves be compared."""
    counted = scores.count(results)
    return set.intersection(*(set(counted[arm].passed) for arm in arms))


def records(results: Iterable[Result], arms: Sequence[str]) -> list[dict[str, Any]]:
    counted = scores.count(results)
    return [counted[name].record(times=True) for name in arms]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--arm", action="append", default=[])
    given = parser.parse_args()
    results = list(lines_of(given.file))
    names = given.arm or sorted({one.arm for one in results} - {"base", "plain"})
    shared = common(results, names)
    compared = records((one for one in results if one.id in shared), names)
    whole = records(results, names)
    print(picture(compared, whole))


if __name__ == "__main__":
    main()
