"""What an assertion looks like: plain, in pytest's words and in unittest's."""

from __future__ import annotations

import ast
from collections.abc import Collection
from copy import deepcopy
from typing import Protocol

from reflexfix.python.target import Function, last_name


class Called(Protocol):
    """How the target is called, as far as a syntax tree can tell."""

    target: str
    is_method: bool
    is_property: bool
    own_class: str
    checkers: set[str]
    """Functions of the tests that check what they are given."""


def is_assertion(node: ast.stmt, checkers: Collection[str] = ()) -> bool:
    """Say whether a statement checks anything, itself or through a function that does.

    A definition checks nothing; `checkers` are functions that do when they are called.
    """
    if isinstance(node, Function | ast.ClassDef):
        return False
    return any(_checks(child, checkers) for child in ast.walk(node))


def checks(node: ast.AST) -> list[ast.AST]:
    """List what checks something in a piece of code, at any depth."""
    return [child for child in ast.walk(node) if _checks(child, ())]


def _checks(node: ast.AST, checkers: Collection[str]) -> bool:
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, ast.Raise):
        return node.exc is not None and last_name(node.exc) == "AssertionError"
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        return name in ("raises", "warns", "fail", *checkers) or name.startswith("assert")
    return False


def target_calls(node: ast.AST, context: Called, deep: bool = True) -> list[ast.Call]:
    """List the calls of the target in a piece of code; for a property, its uses."""
    nodes = ast.walk(node) if deep else [node]
    return [call for call in (_as_call(n, context) for n in nodes) if call is not None]


def _as_call(node: ast.AST, context: Called) -> ast.Call | None:
    if isinstance(node, ast.Call):
        func = node.func
        if isinstance(func, ast.Name) and func.id == context.target and not context.is_method:
            return node
        if isinstance(func, ast.Attribute) and func.attr == context.target:
            return node
        if _is_special(context) and isinstance(func, ast.Name) and func.id == context.own_class:
            return node
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        handed_over = any(isinstance(a, ast.Name) and a.id == context.target for a in given)
        if handed_over and last_name(func) in _CALLERS | context.checkers:
            return node
    if context.is_property and isinstance(node, ast.Attribute) and node.attr == context.target:
        return ast.Call(node, [], [])
    return None


_CALLERS = {"map", "filter", "sorted", "partial", "starmap", "reduce", "max", "min", "sort"}


def _is_special(context: Called) -> bool:
    return context.is_method and context.target.startswith("__")


# ---------------------------------------------------------------- unittest's words


_COMPARED: dict[str, type[ast.cmpop]] = {
    "assertEqual": ast.Eq,
    "assertEquals": ast.Eq,
    "assertListEqual": ast.Eq,
    "assertDictEqual": ast.Eq,
    "assertTupleEqual": ast.Eq,
    "assertSetEqual": ast.Eq,
    "assertSequenceEqual": ast.Eq,
    "assertMultiLineEqual": ast.Eq,
    "assertNotEqual": ast.NotEq,
    "assertIs": ast.Is,
    "assertIsNot": ast.IsNot,
    "assertIn": ast.In,
    "assertNotIn": ast.NotIn,
    "assertGreater": ast.Gt,
    "assertGreaterEqual": ast.GtE,
    "assertLess": ast.Lt,
    "assertLessEqual": ast.LtE,
}


def converted(method: Function) -> Function | None:
    """Say in plain asserts what a unittest method says; None when it needs its object."""
    if not method.args.args or isinstance(method, ast.AsyncFunctionDef):
        return None
    own = method.args.args[0].arg
    plain = _Plain(own).visit(deepcopy(method))
    if any(isinstance(n, ast.Name) and n.id == own for n in ast.walk(plain)):
        return None
    plain.args.args = plain.args.args[1:]
    return ast.fix_missing_locations(plain)  # type: ignore[no-any-return]


class _Plain(ast.NodeTransformer):
    def __init__(self, own: str) -> None:
        self.own = own

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = [self.visit(child) for child in node.body]
        return node

    def _is_own(self, node: ast.AST) -> bool:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            return False
        return isinstance(node.func.value, ast.Name) and node.func.value.id == self.own

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if not self._is_own(node.value):
            return node
        assert isinstance(node.value, ast.Call)
        return plain_assert(last_name(node.value.func), node.value.args) or node

    def visit_With(self, node: ast.With) -> ast.stmt:
        node.body = [self.visit(child) for child in node.body]
        for item in node.items:
            call = item.context_expr
            if self._is_own(call) and last_name(call) in ("assertRaises", "assertRaisesRegex"):
                assert isinstance(call, ast.Call)
                item.context_expr = raises_call(call.args)
        return node


def plain_assert(name: str, args: list[ast.expr]) -> ast.stmt | None:
    """Translate one `self.assertX(...)`."""
    if name in _COMPARED and len(args) >= 2:
        return ast.Assert(ast.Compare(args[0], [_COMPARED[name]()], [args[1]]))
    if name in ("assertTrue", "assert_") and args:
        return ast.Assert(args[0])
    if name == "assertFalse" and args:
        return ast.Assert(ast.UnaryOp(ast.Not(), args[0]))
    if name in ("assertIsNone", "assertIsNotNone") and args:
        op = ast.Is() if name == "assertIsNone" else ast.IsNot()
        return ast.Assert(ast.Compare(args[0], [op], [ast.Constant(None)]))
    if name == "assertIsInstance" and len(args) >= 2:
        return ast.Assert(ast.Call(ast.Name("isinstance", ast.Load()), args[:2], []))
    if name == "assertAlmostEqual" and len(args) >= 2:
        gap = ast.Call(ast.Name("abs", ast.Load()), [ast.BinOp(args[0], ast.Sub(), args[1])], [])
        return ast.Assert(ast.Compare(gap, [ast.Lt()], [ast.Constant(5e-7)]))
    if name == "assertRaises" and len(args) >= 2:
        item = ast.withitem(raises_call(args[:1]))
        return ast.With([item], [ast.Expr(ast.Call(args[1], args[2:], []))])
    return None


def raises_call(args: list[ast.expr]) -> ast.Call:
    match = [ast.keyword("match", args[1])] if len(args) > 1 else []
    return ast.Call(
        ast.Attribute(ast.Name("pytest", ast.Load()), "raises", ast.Load()), args[:1], match
    )


def without_pytest(node: ast.stmt) -> ast.stmt:
    """Turn `with pytest.raises(E): ...` into try and except, which need no import.

    A context with a name or a pattern is left to pytest.
    """
    if not (isinstance(node, ast.With) and len(node.items) == 1):
        return node
    call = node.items[0].context_expr
    simple = isinstance(call, ast.Call) and last_name(call.func) == "raises"
    if not simple or node.items[0].optional_vars is not None:
        return node
    assert isinstance(call, ast.Call)
    if len(call.args) != 1 or call.keywords:
        return node
    return expect_error(node.body, call.args[0])


def expect_error(body: list[ast.stmt], kind: ast.expr) -> ast.stmt:
    """Give `try: body / except kind: pass / else: raise AssertionError`."""
    message = f"{ast.unparse(kind)} was not raised"
    fail = ast.Raise(ast.Call(ast.Name("AssertionError", ast.Load()), [ast.Constant(message)], []))
    handler = ast.ExceptHandler(kind, None, [ast.Pass()])
    return ast.fix_missing_locations(ast.Try(body, [handler], [fail], []))
