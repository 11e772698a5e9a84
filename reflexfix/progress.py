"""What a person sees of a batch: a bar on a terminal, lines elsewhere, tables in the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from reflexfix.batch.page import number
from reflexfix.batch.result import Result
from reflexfix.display import safe


@dataclass
class Sofar:
    """The right answers so far, by arm."""

    right: dict[str, int] = field(default_factory=dict)
    n: dict[str, int] = field(default_factory=dict)
    tokens: int = 0
    troubled: int = 0

    def add(self, result: Result) -> None:
        self.tokens += result.tokens.all
        if result.trouble:
            self.troubled += 1
            return
        self.n[result.arm] = self.n.get(result.arm, 0) + 1
        self.right[result.arm] = self.right.get(result.arm, 0) + result.passed

    def __str__(self) -> str:
        shares = [f"{arm} {self.right[arm]}/{n}" for arm, n in self.n.items()]
        trouble = [f"{self.troubled} troubled"] if self.troubled else []
        return " · ".join([*shares, *trouble, f"{self.tokens:,} tokens"])


class BatchDisplay:
    """Shows a batch as it goes, on standard error."""

    def __init__(self, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.quiet = quiet
        self.sofar = Sofar()
        self.bar: Progress | None = None

    def say(self, line: str, style: str = "") -> None:
        if not self.quiet:
            self.console.print(Text(safe(line), style=style))

    @contextlib.contextmanager
    def running(self, total: int) -> Iterator[None]:
        """Show a bar below what is printed, on a terminal only."""
        if self.quiet or not self.console.is_terminal:
            yield
            return
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
        )
        with Progress(*columns, console=self.console, transient=True) as self.bar:
            self.bar.add_task("", total=total)
            yield
        self.bar = None

    def result(self, result: Result) -> None:
        """Take in a result: the bar moves, or a line is printed."""
        self.sofar.add(result)
        if result.trouble:
            self.say(
                f"{result.id} {result.arm}: {result.trouble} trouble: {result.message}", "yellow"
            )
        elif self.bar is None:
            word = "right" if result.passed else "wrong"
            self.say(f"{result.id} {result.arm}: {word} ({result.label}) · {self.sofar}")
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], advance=1, description=str(self.sofar))


def scores_tables(told: Mapping[str, Any]) -> Iterator[Table]:
    """Give the scores of a report, and how far the loop's tests could be believed."""
    has_base = any(arm["base"] for arm in told["arms"])
    columns = ["arm", "pass@1", "95 %", *(["base tests"] if has_base else []), "tokens", "s",
               "trouble"]  # fmt: skip
    table = plain_table(columns)
    for arm in told["arms"]:
        table.add_row(
            Text(arm["name"]),
            of(arm["pass@1"]),
            between(arm["pass@1"]),
            *([of(arm["base"])] if has_base else []),
            number(arm["tokens"]["per_task"]),
            number(arm["seconds"]["per_task"]),
            str(sum(arm["trouble"].values())),
        )
    yield table
    tested = [arm for arm in told["arms"] if arm["suites_that_accept_the_reference"]["n"]
              or arm["own_tests"]["false_positives"]["n"]]  # fmt: skip
    if not tested:
        return
    table = plain_table(["own tests", "false positives", "false negatives", "suites right"])
    for arm in tested:
        table.add_row(
            Text(arm["name"]),
            of(arm["own_tests"]["false_positives"]),
            of(arm["own_tests"]["false_negatives"]),
            of(arm["suites_that_accept_the_reference"]),
        )
    yield table


def plain_table(columns: list[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def pairs_table(pairs: list[Mapping[str, Any]], name: str = "") -> Table:
    """Give paired comparisons, one a row."""
    table = plain_table([name, "tasks", "won", "lost", "points", "95 %", "exact p", ""])
    for pair in pairs:
        what = pair.get("arm") or f"{pair['second']} against {pair['first']}"
        points = "-" if pair["difference"] is None else f"{100 * pair['difference']:+.1f}"
        table.add_row(
            Text(what),
            str(pair["n"]),
            str(len(pair["won"])),
            str(len(pair["lost"])),
            points,
            f"{100 * pair['low']:+.1f} to {100 * pair['high']:+.1f}",
            f"{pair['p']:.3f}",
            "" if pair["shown"] else "not shown",
        )
    return table


def of(share: Mapping[str, Any] | None) -> str:
    if not share or not share["n"]:
        return "-"
    return f"{share['right']}/{share['n']} {100 * share['share']:.1f} %"


def between(share: Mapping[str, Any]) -> str:
    return f"{100 * share['low']:.1f} to {100 * share['high']:.1f}" if share["n"] else "-"
