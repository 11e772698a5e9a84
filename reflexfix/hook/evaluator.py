"""The trusted evaluator of the loop: a project's failing tests, run on it with a change."""

from __future__ import annotations

import ast
import secrets
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace

from reflexfix.attempt import Candidate, Case, Control, Judged, Result, Suite, UserTests, Verdict
from reflexfix.containers.sandbox import joined
from reflexfix.errors import BudgetSpent
from reflexfix.hook import rust_code
from reflexfix.hook.plan import Plan
from reflexfix.hook.runner import ProjectSandbox, Report, Request
from reflexfix.hook.tree import Tree
from reflexfix.model import Budget
from reflexfix.python.layout import dedented

SHOWN_TEST = 500
"""How much of a failing test's source a model is shown, in characters."""


@dataclass(frozen=True)
class Evaluator:
    """Judges versions of one file by the tests that fail because of it."""

    sandbox: ProjectSandbox
    tree: Tree
    plan: Plan
    path: str
    own_file: str
    tests: tuple[str, ...]
    budget: Budget
    seconds: float
    hung: tuple[str, ...] = ()
    """Tests that ran out of their time, and are not to take it all again."""

    def run(self, candidate: Candidate, suite: Suite) -> Verdict:
        """Run the failing tests; own tests too, where there are any. Raises SandboxTrouble."""
        left = self.budget.seconds_left()
        if left <= 0:
            raise BudgetSpent(f"The budget of {self.budget.seconds:g} seconds is spent.")
        changed = self.tree.with_file(self.path, candidate.files[self.own_file])
        private = f"reflexfix-{secrets.token_hex(8)}"
        tests, asked = self.tests, self.tests
        if self.plan.kind == "pytest":
            changed = changed.with_new_file(CONTROL, control_file(private))
            asked = (*tests, CONTROL_TEST)
        plan = self.plan.only(name.partition("::")[0] for name in asked)
        request = Request(first=asked, rest=False, hung=self.hung)
        report = self.sandbox.test(changed, plan, request, max(1.0, min(self.seconds, left)))
        verdict = replace(judged(report, tests, self.tree), control=control_in(report, private))
        if suite.cases:
            own = self.sandbox.run(candidate, replace(suite, user=None))
            verdict = joined(verdict, own)
        return verdict

    def missing(self, modules: tuple[str, ...]) -> tuple[str, ...]:
        return ()

    @property
    def user(self) -> UserTests:
        """The failing tests as the loop knows a user's tests."""
        return UserTests(files={}, paths=self.tests)


CONTROL = "test_reflexfix_control.py"
CONTROL_TEST = f"{CONTROL}::test_control"


def control_file(private: str) -> bytes:
    """Write a test that must fail: where it passes, the candidate has got at the runner."""
    return f"def test_control():\n    assert {private!r} == 'what no code gives'\n".encode()


def control_in(report: Report, private: str) -> Control:
    """Say whether the test that must fail did, and by its own comparison.

    It has not been seen where the project's own settings keep it from being collected.
    """
    if CONTROL_TEST in report.passed:
        return "forged"
    seen = any(r.name == CONTROL_TEST and private in r.message for r in report.failures)
    return "held" if seen else "none"


def judged(report: Report, tests: Iterable[str], tree: Tree) -> Verdict:
    """Make a verdict of what was told of these tests; one of which nothing was told has failed."""
    results = {r.name: r for r in report.failures} | {
        name: Result(name, "passed", "in-process") for name in report.passed
    }
    found: list[Judged] = []
    for test in tests:
        inside = [r for name, r in results.items() if name == test or name.startswith(test + "::")]
        nothing = Result(
            test, "no-verdict", "in-process", message=report.trouble or "it did not run"
        )
        for result in inside or [nothing]:
            shown = source_of(tree, result.name) or result.name
            case = Case(result.name, "", shown, "user", mode="in-process")
            found.append(Judged(case, result))
    return Verdict(judged=tuple(found))


def source_of(tree: Tree, test: str) -> str:
    """Give the source of a failing test, in a bounded length; "" where it is not found."""
    path, _, rest = test.partition("::")
    if path.endswith(".rs"):
        return cut(rust_code.source_of(tree, test))
    names = [name.partition("[")[0] for name in rest.split("::")] if rest else []
    if not names and "/" not in path and not path.endswith(".py"):
        path, names = unittest_place(tree, test)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            node: ast.AST = ast.parse(tree.text(path))
    except (SyntaxError, ValueError, RecursionError):
        return ""
    for name in names:
        inner = [n for n in getattr(node, "body", []) if getattr(n, "name", "") == name]
        if not inner:
            return ""
        node = inner[-1]
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return ""
    lines = tree.text(path).splitlines()[node.lineno - 1 : node.end_lineno]
    return cut(dedented("\n".join(lines)))


def cut(text: str) -> str:
    return text if len(text) <= SHOWN_TEST else text[: SHOWN_TEST - 4] + "\n..."


def unittest_place(tree: Tree, test: str) -> tuple[str, list[str]]:
    """Find the file of a unittest test, package.module.Class.method."""
    parts = test.split(".")
    for end in range(len(parts) - 1, 0, -1):
        path = "/".join(parts[:end]) + ".py"
        for found in (path, f"tests/{path}", f"test/{path}"):
            if found in tree.files:
                return found, parts[end:]
    return "", []
