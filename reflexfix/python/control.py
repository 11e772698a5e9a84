"""The control: a test that must fail, and must be seen to fail on a private value."""

from __future__ import annotations

import ast
import secrets
from collections.abc import Iterable
from dataclasses import replace

from reflexfix.attempt import Case
from reflexfix.python import syntax
from reflexfix.python.asserts import target_calls
from reflexfix.python.selftests import Context
from reflexfix.python.target import Function
from reflexfix.python.worth import is_about, spread


def control_case(cases: Iterable[Case], context: Context) -> tuple[Case | None, str]:
    """Make the test that must fail: a kept test's call, held equal to a private random value.

    A case that runs in-process is preferred, since there the control is the only defence.
    """
    private = f"reflexfix-{secrets.token_hex(8)}"
    ordered = sorted(cases, key=lambda case: case.mode != "in-process")
    for make in (_control_of_compare, _control_of_raise):
        for case in ordered:
            tree = syntax.module(case.source)
            made = tree and make(tree, context, private)
            if made:
                source = ast.unparse(ast.fix_missing_locations(made))
                return replace(case, name="control", source=source, may_fall_back=False), private
    return None, ""


def _control_of_compare(tree: ast.Module, context: Context, private: str) -> ast.Module | None:
    """Turn the first comparison for equality that the target has a part in."""
    tainted: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not isinstance(node, Function | ast.ClassDef):
            spread(node, context, tainted)
    for node in ast.walk(tree):
        test = node.test if isinstance(node, ast.Assert) else None
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            sides = [test.left, test.comparators[0]]
            about = [s for s in sides if is_about(s, context, tainted)]
            if about and isinstance(node, ast.Assert):
                node.test = ast.Compare(about[0], [ast.Eq()], [ast.Constant(private)])
                return tree
    return None


def _control_of_raise(tree: ast.Module, context: Context, private: str) -> ast.Module | None:
    """Hold the name of what is raised equal to the private value."""
    for node in tree.body:
        if isinstance(node, ast.Try) and target_calls(node, context) and node.handlers:
            node.handlers = [
                ast.ExceptHandler(
                    ast.Name("BaseException", ast.Load()),
                    "_raised",
                    ast.parse("_raised_name = type(_raised).__name__").body,
                )
            ]
            node.orelse = ast.parse("_raised_name = 'nothing'").body
            tree.body = [*tree.body[: tree.body.index(node) + 1]]
            tree.body += ast.parse(f"assert _raised_name == {private!r}").body
            return tree
    return None
