"""Make runnable cases of tests and examples, and decide where each of them has to run."""

from __future__ import annotations

import ast
import builtins
import re
import secrets
from collections.abc import Iterable
from dataclasses import replace

from reflexfix.attempt import Case, Mode
from reflexfix.python import selftests, syntax
from reflexfix.python.asserts import expect_error, target_calls, without_pytest
from reflexfix.python.examples import Example, examples
from reflexfix.python.selftests import Context, Unit
from reflexfix.python.target import Found, Function, last_name
from reflexfix.task import Dropped

_ONE_PROCESS = {
    "capsys", "redirect_stdout", "redirect_stderr", "stdin", "stdout", "stderr", "patch", "mock",
    "MagicMock", "Mock", "seed", "setstate", "warns", "catch_warnings", "getcontext", "setcontext",
    "localcontext", "setrecursionlimit", "chdir", "gc", "weakref",
}  # fmt: skip
"""What tells of a test that sets or sees something of the process that it runs in."""


def own_cases(answer: str, context: Context, found: Found) -> tuple[list[Case], list[Dropped]]:
    """Read an answer of tests: the cases worth running, in order, and the rest with reasons."""
    statements, dropped = selftests.parse(answer)
    kept: dict[str, Case] = {}
    usable = selftests.usable_imports(statements, context)
    context = replace(context, checkers=selftests.checkers_in(usable))
    for unit in selftests.units(usable, []):
        if isinstance(unit, Dropped):
            dropped.append(unit)
            continue
        unit = with_imports(unit, context)
        if reason := selftests.why_not(unit, context):
            dropped.append(Dropped(selftests.shown(unit.body), reason))
        elif unit.key in kept or unit.key in context.examples:
            dropped.append(Dropped(selftests.shown(unit.body), "repeats another test"))
        else:
            kept[unit.key] = case_of(unit, context, found)
    named = [replace(case, name=f"own {n}") for n, case in enumerate(kept.values(), 1)]
    return named, dropped


def with_imports(unit: Unit, context: Context) -> Unit:
    added = selftests.missing_imports(unit, context)
    return replace(unit, setup=(*added, *unit.setup))


def case_of(unit: Unit, context: Context, found: Found) -> Case:
    body = without_pytest(unit.body)
    plain = replace(unit, setup=_imports_used(unit, body), body=body)
    mode, may_fall_back = where_to_run([*plain.setup, body], context, found)
    return Case(
        name="own",
        source=plain.source,
        shown=_shown(unit),
        origin="own",
        mode="in-process" if unit.fixtures and "capsys" in unit.fixtures else mode,
        may_fall_back=may_fall_back,
        entry=unit.entry,
        fixtures=unit.fixtures,
    )


def _imports_used(unit: Unit, body: ast.stmt) -> tuple[ast.stmt, ...]:
    """Leave out an import of pytest that the rewritten test no longer needs."""
    rest = [n for n in unit.setup if not _imports_pytest(n)]
    names = set().union(*(selftests.mentioned(n) for n in [*rest, body]))
    return unit.setup if "pytest" in names or "raises" in names else tuple(rest)


def _imports_pytest(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import):
        return [a.name for a in node.names] == ["pytest"]
    return isinstance(node, ast.ImportFrom) and node.module == "pytest"


def _shown(unit: Unit) -> str:
    """Give the test as a person would write it: without its imports."""
    setup = [n for n in unit.setup if not isinstance(n, ast.Import | ast.ImportFrom)]
    parts = [ast.unparse(ast.fix_missing_locations(n)) for n in [*setup, unit.body]]
    return "\n".join(parts)


# ---------------------------------------------------------------- examples


def example_cases(docstring: str, found: Found, context: Context) -> list[Case]:
    """Make trusted cases of the docstring's examples."""
    some = examples(docstring, found.node.name)
    prints = _speaks_of_printing(docstring, found.node)
    made = [_example_case(example, found, context, prints) for example in some]
    cases = [case for case in made if case is not None]
    return [replace(case, name=f"example {number}") for number, case in enumerate(cases, 1)]


def _speaks_of_printing(docstring: str, node: Function) -> bool:
    """Whether a value in an example may be what is printed instead of what is returned."""
    prose = "\n".join(line for line in docstring.splitlines() if ">>>" not in line)
    returns_none = isinstance(node.returns, ast.Constant) and node.returns.value is None
    return returns_none or re.search(r"\bprint(s|ed|ing)?\b", prose, re.IGNORECASE) is not None


def _example_case(example: Example, found: Found, context: Context, prints: bool) -> Case | None:
    tree = syntax.module("\n".join(example.setup))
    setup = selftests.usable_imports(tree.body, context) if tree is not None else []
    example = replace(example, setup=tuple(ast.unparse(node) for node in setup))
    statements = statements_of(example, context, prints)
    nodes = syntax.module("\n".join(statements))
    if nodes is None or not statements or not _names_are_known(nodes.body, context):
        return None
    mode, may_fall_back = where_to_run(nodes.body, context, found)
    return Case(
        name="example",
        source="\n".join(statements),
        shown=shown_example(example),
        origin="example",
        mode="in-process" if prints or example.text is not None else mode,
        may_fall_back=may_fall_back,
    )


def _names_are_known(nodes: list[ast.stmt], context: Context) -> bool:
    bare = {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}
    is_bare_method = context.is_method and context.target in bare - context.names
    return not (selftests.unknown_names(nodes, context) or is_bare_method)


def shown_example(example: Example) -> str:
    if example.error is not None:
        what = f"raises {example.error}" + (f": {example.message}" if example.message else "")
    else:
        what = f"== {example.value}" if example.value is not None else f"prints {example.text!r}"
    return "\n".join([*example.setup, f"{example.expression} {what}"])


def statements_of(example: Example, context: Context, prints: bool = False) -> list[str]:
    """Write an example as source: its setup, then the check; [] when it cannot be run."""
    expression = example.expression
    if context.is_async and "run(" not in expression:
        expression = f"__import__('asyncio').run({expression.removeprefix('await ')})"
    if "await" in expression:
        return []
    if example.error is not None:
        return [*example.setup, *_raising(expression, example, context)]
    if example.value is None:
        return [*example.setup, *_printing(expression, example.text or "")]
    if prints:
        return [*example.setup, *_printing_or_returning(expression, example.value)]
    return [*example.setup, _holding(expression, example.value)]


def _holding(expression: str, value: str) -> str:
    """Hold that an expression has a value; one that compares is not compared once more."""
    tree = syntax.expression(expression)
    body = tree.body if tree is not None else None
    if isinstance(body, ast.Compare) and value in ("True", "False"):
        return f"assert {expression}" if value == "True" else f"assert not ({expression})"
    simple = isinstance(body, ast.Call | ast.Name | ast.Attribute | ast.Subscript)
    return f"assert {expression if simple else f'({expression})'} == {value}"


def _raising(expression: str, example: Example, context: Context) -> list[str]:
    kind = example.error or "Exception"
    if "." in kind and kind.split(".")[0] not in context.names:
        kind = kind.rpartition(".")[2]
    message = example.message
    exact = message and "..." not in message
    tree = expect_error(_body(expression), ast.parse(kind, mode="eval").body)
    assert isinstance(tree, ast.Try)
    if exact:
        tree.handlers[0].name = "error"
        tree.handlers[0].body = _body(f"assert str(error) == {message!r}")
    return [ast.unparse(ast.fix_missing_locations(tree))]


def _body(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


_CAPTURED = """\
import contextlib as _contextlib, io as _io
with _contextlib.redirect_stdout(_io.StringIO()) as _out:
    _value = {expression}
"""


def _printing(expression: str, text: str) -> list[str]:
    """Compare what was printed and what the interactive interpreter would show.

    A text without its quotes is what people write of a function that returns it.
    """
    return [
        _CAPTURED.format(expression=expression).rstrip(),
        "_shown = _value if isinstance(_value, str) else '' if _value is None else repr(_value)",
        f"assert (_out.getvalue() + _shown).rstrip() == {text.rstrip()!r}",
    ]


def _printing_or_returning(expression: str, value: str) -> list[str]:
    """Compare what was printed, if anything was and nothing returned; else the value."""
    return [
        _CAPTURED.format(expression=expression).rstrip(),
        "_printed = _value is None and _out.getvalue().rstrip()",
        f"assert (_printed or _value) == ({value!r} if _printed else {value})",
    ]


def example_keys(cases: Iterable[Case]) -> set[str]:
    """Give the examples as the filter compares tests."""
    trees = [syntax.module(case.source) for case in cases]
    return {selftests.key_of(tree.body) for tree in trees if tree is not None}


# ---------------------------------------------------------------- split or in-process


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
        names = selftests.mentioned(node)
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
        return list(zip(sides, sides[1:], strict=False))
    if isinstance(node, ast.Call) and last_name(node.func).startswith("assert") and node.args[1:]:
        return [(node.args[0], node.args[1])]
    return []


def _value_names(node: ast.AST, context: Context) -> list[str]:
    """List the names that a statement gives to the call's own value."""
    value = getattr(node, "value", None)
    if not isinstance(value, ast.expr) or not _is_value(value, set(), context):
        return []
    return _targets(node)


def _plain_names(node: ast.AST) -> list[str]:
    """List the names that a statement gives to plain values, one after the other in a loop."""
    value = getattr(node, "iter", None) or getattr(node, "value", None)
    return _targets(node) if isinstance(value, ast.expr) and _is_plain(value, set()) else []


def _targets(node: ast.AST) -> list[str]:
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    inner = [n for t in targets if isinstance(t, ast.expr) for n in ast.walk(t)]
    return [n.id for n in inner if isinstance(n, ast.Name)]


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
_MAKERS = frozenset(
    ["set", "frozenset", "dict", "list", "tuple", "float", "int", "str", "bytes", "bytearray"]
    + ["complex", "bool", "sorted", "sum", "len", "min", "max", "abs", "round", "range"]
)


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


# ---------------------------------------------------------------- the control


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
    for statement in tree.body:
        selftests.spread(statement, context, tainted)
    for node in ast.walk(tree):
        test = node.test if isinstance(node, ast.Assert) else None
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            sides = [test.left, test.comparators[0]]
            about = [s for s in sides if selftests.is_about(s, context, tainted)]
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
                    _body("_raised_name = type(_raised).__name__"),
                )
            ]
            node.orelse = _body("_raised_name = 'nothing'")
            tree.body = [*tree.body[: tree.body.index(node) + 1]]
            tree.body += _body(f"assert _raised_name == {private!r}")
            return tree
    return None
