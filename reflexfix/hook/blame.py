"""Say which functions may be at fault: by what failing tests ran and where they failed.

The score of Ochiai is that of Abreu, Zoeteweij and van Gemund, "On the Accuracy of
Spectrum-based Fault Localization", TAIC PART 2007.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import sqrt

from reflexfix.errors import UsageProblem
from reflexfix.hook import rust_code
from reflexfix.hook.plan import Plan
from reflexfix.hook.runner import Function, Report, Runs
from reflexfix.hook.tree import Tree
from reflexfix.python import syntax
from reflexfix.python.target import first_line, functions
from reflexfix.rust import syntax as rust
from reflexfix.source import read_python

MOST = 3
"""How many functions are tried."""


@dataclass(frozen=True)
class Suspect:
    """A function that may be at fault, and what speaks for it."""

    path: str
    name: str
    line: int
    tests: tuple[str, ...]
    """The failing tests that run it."""
    changed: bool = False
    leads: int = 0
    """How many failures lead to it last."""
    failing: int = 0
    passing: int = 0
    score: float = 0.0

    @property
    def why(self) -> str:
        """Say why that function."""
        if not self.failing:
            what = "every error of the compiler" if self.path.endswith(".rs") else "a syntax error"
            return f"{what} lies in it, and in nothing else"
        reasons = ["changed in this commit"] if self.changed else []
        if self.leads:
            reasons.append(f"{self.leads} of {self.failing} failures lead to it")
        runs = f"run by {len(self.tests)} of {self.failing} failing"
        return "; ".join([*reasons, f"{runs} and {self.passing} passing tests"])

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.name}"


def suspects(tree: Tree, plan: Plan, report: Report, only: tuple[str, ...] = ()) -> list[Suspect]:
    """Rank the functions that failing tests ran: the likeliest first.

    `only` names files that alone may be mended. Tests are never suspected.
    """
    places = Places(tree, frozenset(plan.tests), only)
    runs = joined(places, report)
    leads = leading(places, report)
    found = [suspect(tree, one, runs[one], leads, report) for one in runs]
    return sorted(found, key=lambda s: (-s.changed, -s.score, s.path, s.line))


def suspect(
    tree: Tree, found: Place, runs: Runs, leads: Mapping[Place, list[float]], report: Report
) -> Suspect:
    """Put together what speaks for one function."""
    last = found.last
    changed = any(a <= last and b >= found.line for a, b in tree.changed.get(found.path, []))
    weights, failing = leads.get(found, []), len(report.failures)
    score = ochiai(len(runs.failing), runs.passing, failing) + sum(weights) / max(1, failing)
    return Suspect(
        path=found.path,
        name=found.name,
        line=found.line,
        tests=runs.failing,
        changed=changed,
        leads=sum(weight == 1.0 for weight in weights),
        failing=failing,
        passing=runs.passing,
        score=score,
    )


def ochiai(failing: int, passing: int, all_failing: int) -> float:
    """Score a function by how many failing and passing tests run it: 1 is the worst."""
    both = sqrt(all_failing * (failing + passing))
    return failing / both if both else 0.0


# ---------------------------------------------------------------- from names to functions


@dataclass(frozen=True)
class Place:
    """A function of the project's own code: not one that stands within another."""

    path: str
    name: str
    line: int
    last: int


class Places:
    """Finds the functions that the container named, in the files that it was given."""

    def __init__(self, tree: Tree, tests: frozenset[str], only: tuple[str, ...]) -> None:
        self.tree = tree
        self.tests = tests
        self.only = only
        self.known: dict[str, list[Place]] = {}

    def find(self, function: Function) -> Place | None:
        """Give the function, or the one around it; None for tests, modules and what is no code."""
        if function.path in self.tests or (self.only and function.path not in self.only):
            return None
        name = function.name.partition(".<locals>")[0]
        for place in self._in(function.path):
            if name in ("", place.name) and place.line <= function.line <= place.last:
                return place
        return None

    def _in(self, path: str) -> list[Place]:
        if path not in self.known:
            read = self._in_rust if path.endswith(".rs") else self._in_python
            self.known[path] = list(read(path))
        return self.known[path]

    def _in_rust(self, path: str) -> Iterator[Place]:
        for one in rust_code.functions(rust.parse(self.tree.read(path) or b"")):
            yield Place(path, one.name, *rust_code.lines_of(one))

    def _in_python(self, path: str) -> Iterator[Place]:
        data = self.tree.read(path)
        try:
            tree = syntax.module(read_python(data, path).text) if data is not None else None
        except UsageProblem:
            return
        for one in functions(tree) if tree is not None else ():
            if not one.is_nested:
                yield Place(path, one.name, first_line(one.node), one.node.end_lineno or 0)


def joined(places: Places, report: Report) -> dict[Place, Runs]:
    """Count a function's runs together with those of the functions inside it."""
    found: dict[Place, Runs] = {}
    names = set(report.names)
    for function, runs in report.ran.items():
        place = places.find(function)
        mine = [name for name in runs.failing if name in names]
        if place is not None and mine:
            before = found.get(place, Runs((), 0))
            failing = tuple(dict.fromkeys([*before.failing, *mine]))
            found[place] = Runs(failing, max(before.passing, runs.passing))
    return found


def leading(places: Places, report: Report) -> dict[Place, list[float]]:
    """Weigh the calls that led to each failure: 1 for the last, half as much for each before it."""
    found: dict[Place, list[float]] = {}
    for test, calls in report.evidence.items():
        if test not in report.names or not calls or calls[-1].name == "<module>":
            continue  # what fails while a module is loaded is no function's fault
        through = [place for call in reversed(calls) if (place := places.find(call)) is not None]
        for depth, place in enumerate(dict.fromkeys(through)):
            found.setdefault(place, []).append(0.5**depth)
    return found
