"""The report as one HTML file that needs nothing else: figures, curves, a row a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from reflexfix.batch.result import Result

MOST_TASKS = 2000
"""How many tasks are shown one by one; the figures count all."""

STYLE = """
:root { color-scheme: light dark; --ink: #1a1c1f; --soft: #5b6270; --line: #d9dce2;
  --ground: #fcfcfd; --card: #f3f4f7; --good: #14703c; --bad: #a8201a; --code: #eceef2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaee; --soft: #a2a9b6; --line: #363b45;
  --ground: #15171b; --card: #1d2026; --good: #6bcf94; --bad: #ff8f87; --code: #23272f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 68rem; color: var(--ink);
  background: var(--ground); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p, .soft { color: var(--soft); } p { margin: .3rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { font-weight: 600; color: var(--soft); }
details { border-bottom: 1px solid var(--line); } details details { border: 0; margin-left: 1rem; }
summary { cursor: pointer; padding: .45rem 0; overflow-wrap: anywhere; }
pre { background: var(--code); padding: .6rem .8rem; border-radius: 6px; overflow-x: auto;
  font-size: .85rem; line-height: 1.4; }
.good { color: var(--good); } .bad { color: var(--bad); }
.mark { display: inline-block; margin-left: .6rem; white-space: nowrap; }
svg { max-width: 100%; height: auto; } svg text { fill: var(--ink); font: 13px system-ui; }
svg .axis { stroke: var(--line); } ul { padding-left: 1.2rem; }
"""
COLOURS = ("#3366cc", "#cc5500", "#228855", "#9944aa", "#887700", "#557788")


def page(told: Mapping[str, Any], results: Iterable[Result]) -> str:
    """Write the page of a report."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width,initial-scale=1">',
        f"<title>reflexfix batch</title><style>{STYLE}</style>",
        "<h1>reflexfix batch</h1>",
        header(told["parameters"]),
        figures(told["arms"]),
        notes(told["arms"]),
        comparisons(told["pairs"]),
        curve(told["arms"]),
        labels(told["arms"]),
        tasks(results),
    ]
    text = "\n".join(part for part in parts if part) + "\n"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def header(parameters: Mapping[str, Any]) -> str:
    models = " and ".join(dict.fromkeys(map(str, parameters.get("models", []))))
    files = ", ".join(f"{one['name']}" for one in parameters.get("data", []))
    return f"<p>{escape(files)} · {escape(models)} · reflexfix {parameters.get('version', '')}</p>"


def notes(arms: Iterable[Mapping[str, Any]]) -> str:
    """Say what has to be known of the tasks, once for all arms."""
    counted: dict[str, int] = {}
    for arm in arms:
        for note, tasks in arm["notes"].items():
            counted[note] = max(tasks, counted.get(note, 0))
    rows = "".join(
        f"<li>{escape(note)} ({tasks} task{'s' if tasks > 1 else ''})"
        for note, tasks in counted.items()
    )
    return f"<p>To be known of the tasks:</p><ul>{rows}</ul>" if rows else ""


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def share(told: Mapping[str, Any] | None) -> str:
    """Write a share with its interval."""
    if not told or not told["n"]:
        return "-"
    low, high = 100 * told["low"], 100 * told["high"]
    return (
        f"{told['right']} of {told['n']} · {percent(told['share'])} "
        f"<span class=soft>({low:.1f} to {high:.1f})</span>"
    )


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    top = "".join(f"<th>{escape(name)}" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}" for cell in row) for row in rows)
    return f"<div class=wide><table><tr>{top}{body}</table></div>"


def figures(arms: Iterable[Mapping[str, Any]]) -> str:
    some = list(arms)
    has_base = any(arm["base"] for arm in some)
    head = ["arm", "pass@1 (95 %)", *(["base tests"] if has_base else []), "tokens a task",
            "seconds a task", "trouble"]  # fmt: skip
    rows = [
        [
            escape(arm["name"]),
            share(arm["pass@1"]),
            *([share(arm["base"])] if has_base else []),
            number(arm["tokens"]["per_task"]),
            number(arm["seconds"]["per_task"]),
            escape(", ".join(f"{n} {kind}" for kind, n in arm["trouble"].items())) or "-",
        ]
        for arm in some
    ]
    tests = [
        [
            escape(arm["name"]),
            share(arm["own_tests"]["false_positives"]),
            share(arm["own_tests"]["false_negatives"]),
            share(arm["trusted_tests"]["false_positives"]),
            share(arm["suites_that_accept_the_reference"]),
        ]
        for arm in some
        if arm["own_tests"]["false_positives"]["n"] or arm["trusted_tests"]["false_positives"]["n"]
    ]
    told = "<h2>Scores</h2>" + table(head, rows)
    if tests:
        told += (
            "<h2>How far the loop's tests can be believed</h2>"
            "<p>False positives: of the answers that pass the tests, those that hidden tests "
            "reject. False negatives: of the answers that fail one, those that are right. "
            "A suite is right if the reference solution passes it.</p>"
            + table(
                [
                    "arm",
                    "own: false positives",
                    "own: false negatives",
                    "trusted: false positives",
                    "suites right",
                ],
                tests,
            )
        )
    return told


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def comparisons(pairs: Iterable[Mapping[str, Any]]) -> str:
    rows = [
        [
            f"{escape(pair['second'])} against {escape(pair['first'])}",
            str(pair["n"]),
            str(len(pair["won"])),
            str(len(pair["lost"])),
            f"{100 * pair['difference']:+.1f} points "
            f"<span class=soft>({100 * pair['low']:+.1f} to {100 * pair['high']:+.1f})</span>"
            if pair["n"]
            else "-",
            f"{pair['p']:.3f}",
            "" if pair["shown"] else "not shown",
        ]
        for pair in pairs
    ]
    if not rows:
        return ""
    head = ["", "tasks", "won", "lost", "difference (95 %)", "exact p", ""]
    return "<h2>Compared task by task</h2>" + table(head, rows)


# ---------------------------------------------------------------- the learning curve


def curve(arms: Iterable[Mapping[str, Any]]) -> str:
    """Draw the share of right answers after each trial, judged after the final answers."""
    lines = []
    for arm in arms:
        after = arm["post_hoc"].get("right_after_trial")
        if after and after["right"]:
            most = max(map(int, after["right"]))
            steps = [after["right"].get(str(k), 0) / after["n"] for k in range(1, most + 1)]
            lines.append((arm["name"], steps))
    if not lines:
        return ""
    most = max(len(steps) for _, steps in lines)
    drawn = [(name, (steps + [steps[-1]] * most)[:most]) for name, steps in lines]
    return (
        "<h2>Learning curve</h2><p>Right answers after each trial, judged post hoc: "
        "not pass@1, and nothing that a loop ever saw.</p>" + svg(drawn)
    )


def svg(lines: list[tuple[str, list[float]]], width: int = 640, height: int = 300) -> str:
    """Draw shares in 0..1 over trials from 1."""
    left, right, top, bottom = 50, 130, 14, 34
    most = max(len(steps) for _, steps in lines)

    def x(k: int) -> float:
        return left + (width - left - right) * k / max(1, most - 1)

    def y(value: float) -> float:
        return top + (height - top - bottom) * (1 - value)

    parts = [f'<svg viewBox="0 0 {width} {height}" width={width} role=img>']
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(f"<line class=axis x1={left} x2={width - right} y1={y(tick)} y2={y(tick)} />")
        parts.append(f"<text x=4 y={y(tick) + 4}>{100 * tick:.0f} %</text>")
    for k in range(most):
        parts.append(f"<text x={x(k) - 4} y={height - 10}>{k + 1}</text>")
    for index, (name, steps) in enumerate(lines):
        colour = COLOURS[index % len(COLOURS)]
        points = " ".join(f"{x(k):.1f},{y(value):.1f}" for k, value in enumerate(steps))
        parts.append(f'<polyline fill=none stroke="{colour}" stroke-width=2.5 points="{points}" />')
        parts += [
            f'<circle cx={x(k):.1f} cy={y(value):.1f} r=3.5 fill="{colour}" />'
            for k, value in enumerate(steps)
        ]
        place = y(steps[-1]) + 4 + 15 * index_of_tie(lines, index)
        text = f"{escape(name)} {100 * steps[-1]:.0f} %"
        parts.append(
            f'<text x={width - right + 8} y={place:.1f} style="fill:{colour}">{text}</text>'
        )
    return "".join([*parts, "</svg>"])


def index_of_tie(lines: list[tuple[str, list[float]]], index: int) -> int:
    """Count the lines before this one that end so near that their names would lie on this one."""
    ends = [steps[-1] for _, steps in lines]
    return sum(abs(end - ends[index]) < 0.05 for end in ends[:index])


def labels(arms: Iterable[Mapping[str, Any]]) -> str:
    """Tell how often each label was right."""
    rows = [
        [escape(arm["name"]), label, share(told)]
        for arm in arms
        for label, told in arm["labels"].items()
    ]
    if not rows:
        return ""
    return "<h2>What each label was worth</h2>" + table(
        ["arm", "label", "right by hidden tests"], rows
    )


# ---------------------------------------------------------------- a row a task


def tasks(results: Iterable[Result]) -> str:
    found: dict[str, list[tuple[str, str]]] = {}
    left_out = 0
    for result in results:
        if result.id not in found and len(found) >= MOST_TASKS:
            left_out += 1
            continue
        found.setdefault(result.id, []).append((mark(result), story(result)))
    rows = [
        f"<details><summary>{escape(task)}{''.join(m for m, _ in arms)}</summary>"
        f"{''.join(s for _, s in arms)}</details>"
        for task, arms in found.items()
    ]
    more = f"<p>{left_out} more results are in results.jsonl.</p>" if left_out else ""
    return f"<h2>Tasks</h2>{''.join(rows)}{more}"


def mark(result: Result) -> str:
    if result.trouble:
        return f'<span class="mark soft">{escape(result.arm)}: {result.trouble} trouble</span>'
    kind, word = ("good", "right") if result.passed else ("bad", "wrong")
    return f'<span class="mark {kind}">{escape(result.arm)}: {word}</span>'


def story(result: Result) -> str:
    """Tell what one arm did: tests, attempts, lessons."""
    if result.trouble:
        why_not = f"<p>{escape(result.message)}</p>"
        return f"<details><summary>{escape(result.arm)}</summary>{why_not}</details>"
    score = f"hidden tests: {result.score.status}" if result.score else ""
    said = f" · {escape(result.score.message)}" if result.score and result.score.message else ""
    parts = [f"<p>{escape(result.label)} · {score}{said} · {result.tokens.all} tokens, "
             f"{result.seconds:.1f} s</p>"]  # fmt: skip
    parts += [f"<p>{escape(note)}</p>" for note in result.notes]
    if result.is_bare:
        return f"<details><summary>{escape(result.arm)}</summary>{''.join(parts)}</details>"
    if result.suite.get("cases"):
        parts.append("<p>Tests:</p><ul>")
        parts += [f"<li>{case['origin']}<pre>{escape(case['shown'])}</pre>"
                  for case in result.suite["cases"]]  # fmt: skip
        parts.append("</ul>")
    parts += [attempt(one) for one in result.attempts]
    if result.suite.get("aside"):
        parts.append("<p>Put aside:</p><ul>")
        parts += [f"<li><pre>{escape(one['shown'])}</pre>{escape(one['reason'])}"
                  for one in result.suite["aside"]]  # fmt: skip
        parts.append("</ul>")
    if result.lessons:
        parts.append("<p>Lessons:</p><ul>")
        parts += [f"<li>{escape(one['text'])} <span class=soft>({one['outcome']})</span>"
                  for one in result.lessons]  # fmt: skip
        parts.append("</ul>")
    if result.stopped:
        parts.append(f"<p>Stopped: {escape(result.stopped)}</p>")
    return f"<details><summary>{escape(result.arm)}</summary>{''.join(parts)}</details>"


def attempt(one: Mapping[str, Any]) -> str:
    verdict = one["verdict"]
    passed, total = (sum(verdict[name].values()) for name in ("passed", "total"))
    failing = [
        f"<li>{escape(r['shown'])}<br><span class=bad>{escape(why(r))}</span>"
        for r in verdict["results"]
        if r["status"] != "passed"
    ]
    counted = f"{passed} of {total} passed" if total else "not tested"
    said = escape(verdict["problem"]) or counted
    return (
        f"<details><summary>trial {one['number']}: {said}</summary>"
        f"<pre>{escape(one['code'])}</pre>{'<ul>' + ''.join(failing) + '</ul>' if failing else ''}"
        "</details>"
    )


def why(result: Mapping[str, Any]) -> str:
    if result["expected"] is not None:
        return f"expected {result['expected']}, got {result['actual']}"
    return f"{result['status']}: {result['message']}"
