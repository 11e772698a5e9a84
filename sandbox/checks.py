"""Asserts that say what they saw: the comparison is rewritten to keep both sides."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from sandbox import tracebacks

COMPARE, TRUTH = "__reflexfix_compare__", "__reflexfix_truth__"
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda left, right: left in right,
    "not in": lambda left, right: left not in right,
}
_NAMES: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


class Mismatch(AssertionError):
    """A comparison that did not hold, with both sides as text."""

    def __init__(self, expected: str, actual: str, message: str = "") -> None:
        super().__init__(message or f"expected {expected}, got {actual}")
        self.expected = expected
        self.actual = actual


def compare(name: str, left: Any, right: Any, actual_is_left: bool) -> None:
    """Hold `left name right`, or raise Mismatch with what was expected and what came."""
    if _OPERATORS[name](left, right):
        return
    actual, expected = (left, right) if actual_is_left else (right, left)
    prefix = "" if name == "==" else f"{name} " if actual_is_left else f"value that {name} fits: "
    raise Mismatch(prefix + tracebacks.show(expected), tracebacks.show(actual))


def truth(value: Any, wanted: bool, message: str) -> None:
    """Hold that a value is true (or false), or raise Mismatch."""
    if bool(value) is not wanted:
        raise Mismatch("a true value" if wanted else "a false value", tracebacks.show(value), "")


class _Rewriter(ast.NodeTransformer):
    """Turns `assert a == b` into a call that evaluates each side once, in the same order."""

    def __init__(self, target: str) -> None:
        self.target = target

    def _calls_target(self, node: ast.AST) -> bool:
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        names |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
        return self.target in names

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            left, right = test.left, test.comparators[0]
            is_left = self._calls_target(left) or not (
                self._calls_target(right) or isinstance(left, ast.Constant)
            )
            args: list[ast.expr] = [
                ast.Constant(_NAMES[type(test.ops[0])]),
                left,
                right,
                ast.Constant(is_left),
            ]
            call = ast.Call(ast.Name(COMPARE, ast.Load()), args, [])
        else:
            wanted = not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))
            value = test if wanted else test.operand  # type: ignore[attr-defined]
            args = [value, ast.Constant(wanted), ast.Constant("")]
            call = ast.Call(ast.Name(TRUTH, ast.Load()), args, [])
        return ast.copy_location(ast.Expr(call), node)


def rewritten(source: str, target: str) -> ast.Module:
    """Parse a test and make its asserts tell what they saw."""
    tree = ast.parse(source, "<test>")
    checked: ast.Module = _Rewriter(target).visit(tree)
    return ast.fix_missing_locations(checked)
