"""Where a test has to run: beside the candidate in a process of its own, or in one with it."""

from __future__ import annotations

import ast
import builtins
from itertools import pairwise

from reflexfix.attempt import Mode
from reflexfix.python.asserts import target_calls
from reflexfix.python.selftests import Context, mentioned
from reflexfix.python.target import Found, Function, last_name

_ONE_PROCESS = {
    "capsys", "redirect_stdout", "redirect_stderr", "stdin", "stdout", "stderr", "patch", "mock",
    "MagicMock", "Mock", "seed", "setstate", "warns", "catch_warnings", "getcontext", "setcontext",
    "localcontext", "setrecursionlimit", "chdir", "gc", "weakref",
}  # fmt: skip
"""What tells of a test that sets or sees something of the process that it runs in."""


def where_to_run(nodes: list[ast.stmt], context: Context, found: Found) -> tuple[Mode, bool]:
    """Decide the mode of a test before any candidate has run.

    In-process are tests of methods and nested functions, tests that use the file's classes or its
    changeable globals, that hand over functions, or that look at what was printed. The second
    value says whether a refused result may be judged again in-process: only where the test does
    something with the value that needs the object itself, never where it compares it with a
    literal.
    """
    alone = found.around or found.is_conditional
    if context.is_method or alone or needs_one_process(nodes, context):
        return "in-process", False
    return "split", not compares_directly(nodes, context)


def needs_one_process(nodes: list[ast.stmt], context: Context) -> bool:
    local = {n.name for node in nodes for n in ast.walk(node) if isinstance(n, Function)}
    for node in nodes:
        attributes = [n for n in ast.walk(node) if isinstance(n, ast.Attribute)]
        names = mentioned(node)
        if names & context.changeable or (names | {a.attr for a in attributes}) & _ONE_PROCESS:
            return True
        if any(isinstance(a.value, ast.Name) and a.value.id == context.target for a in attributes):
            return True  # `f.cache_info()`: what decorators add is where the function is
        for call in target_calls(node, context):
            if any(_is_callable(argument, local) for argument in _arguments(call)):
                return True
    return False


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _is_callable(node: ast.expr, local: set[str]) -> bool:
    """Whether an argument holds something that only lives in one process."""
    for child in ast.walk(node):
        if isinstance(child, ast.Lambda | ast.GeneratorExp):
            return True
        named = child.id if isinstance(child, ast.Name) and not _is_called(child, node) else ""
        if named in local or _is_builtin_function(named):
            return True
    return False


def _is_builtin_function(name: str) -> bool:
    return callable(getattr(builtins, name, None))


def _is_called(name: ast.Name, inside: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and n.func is name for n in ast.walk(inside))


def compares_directly(nodes: list[ast.stmt], context: Context) -> bool:
    """Whether a test compares the call's own value with a plain one, anywhere in it."""
    inner = [n for node in nodes for n in ast.walk(node)]
    plain = {name for node in inner for name in _plain_names(node)}
    bound = {name for node in inner for name in _value_names(node, context)}
    pairs = [pair for node in inner for pair in _compared(node)]
    return any(
        _is_value(value, bound, context) and _is_plain(other, plain)
        for pair in pairs
        for value, other in (pair, pair[::-1])
    )


def _compared(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """List the pairs that a comparison, or unittest's word for one, compares."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return list(pairwise(sides))
    if isinstance(node, ast.Call) and last_name(node.func).startswith("assert") and node.args[1:]:
        return [(node.args[0], node.args[1])]
    return []


def _value_names(node: ast.AST, context: Context) -> list[str]:
    """List the names that a statement gives to the call's own value."""
    value = getattr(node, "value", None)
    if not isinstance(value, ast.expr) or not _is_value(value, set(), context):
        return []
    return [target.id for target in _targets(node) if isinstance(target, ast.Name)]


def _plain_names(node: ast.AST) -> list[str]:
    """List the names that a statement gives to plain values, one after the other in a loop."""
    value = getattr(node, "iter", None) or getattr(node, "value", None)
    if not isinstance(value, ast.expr) or not _is_plain(value, set()):
        return []
    inner = [n for target in _targets(node) for n in ast.walk(target)]
    return [n.id for n in inner if isinstance(n, ast.Name)]


def _targets(node: ast.AST) -> list[ast.expr]:
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    return [target for target in targets if isinstance(target, ast.expr)]


def _is_value(node: ast.expr, bound: set[str], context: Context) -> bool:
    """Whether an expression is a value of the target, or a plain row of such."""
    node = _driven(node.value if isinstance(node, ast.Await | ast.NamedExpr) else node)
    node = node.value if isinstance(node, ast.Await) else node
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return any(_is_value(item, bound, context) for item in node.elts)
    if isinstance(node, ast.Dict):
        return any(_is_value(item, bound, context) for item in node.values)
    if isinstance(node, ast.ListComp):
        return _is_value(node.elt, bound, context)
    is_call = bool(target_calls(node, context, deep=False))
    return is_call or (isinstance(node, ast.Name) and node.id in bound)


_PLAIN = (
    ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.Name,
    ast.operator, ast.unaryop, ast.expr_context, ast.Call, ast.keyword, ast.Starred,
    ast.JoinedStr, ast.FormattedValue,
)  # fmt: skip
_MAKERS = {
    "set", "frozenset", "dict", "list", "tuple", "float", "int", "str", "bytes", "bytearray",
    "complex", "bool", "sorted", "sum", "len", "min", "max", "abs", "round", "range",
}  # fmt: skip


def _is_plain(node: ast.expr, plain: set[str]) -> bool:
    """Whether a value is made of literals alone; a bare range is none that crosses."""
    if isinstance(node, ast.Call) and last_name(node.func) == "range":
        return False
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and child.id not in plain | _MAKERS:
            return False
        if isinstance(child, ast.Call) and not isinstance(child.func, ast.Name):
            return False
        if not isinstance(child, _PLAIN):
            return False
    return not (isinstance(node, ast.Name) and node.id in _MAKERS)


def _driven(node: ast.expr) -> ast.expr:
    """Look through `asyncio.run(f(x))` and `round(f(x), 2)` to the call."""
    if isinstance(node, ast.Call) and last_name(node.func) in ("run", "round") and node.args:
        return _driven(node.args[0])
    return node
