"""Make runnable cases of tests and examples, and decide where each of them has to run."""

from __future__ import annotations

import ast
import builtins
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

_CAPTURE = {"capsys", "redirect_stdout", "redirect_stderr"}


def own_cases(answer: str, context: Context, found: Found) -> tuple[list[Case], list[Dropped]]:
    """Read an answer of tests: the cases worth running, in order, and the rest with reasons."""
    statements, dropped = selftests.parse(answer)
    kept: dict[str, Case] = {}
    usable = selftests.usable_imports(statements, context)
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
    cases = []
    for number, example in enumerate(examples(docstring, found.node.name), 1):
        statements = statements_of(example, context)
        nodes = syntax.module("\n".join(statements))
        if nodes is None or not nodes.body:
            continue
        mode, may_fall_back = where_to_run(nodes.body, context, found)
        if example.text is not None:
            mode = "in-process"
        cases.append(
            Case(
                name=f"example {number}",
                source="\n".join(statements),
                shown=shown_example(example),
                origin="example",
                mode=mode,
                may_fall_back=may_fall_back,
            )
        )
    return cases


def shown_example(example: Example) -> str:
    if example.error is not None:
        what = f"raises {example.error}" + (f": {example.message}" if example.message else "")
    else:
        what = f"== {example.value}" if example.value is not None else f"prints {example.text!r}"
    return "\n".join([*example.setup, f"{example.expression} {what}"])


def statements_of(example: Example, context: Context) -> list[str]:
    """Write an example as source: its setup, then the check."""
    expression = example.expression
    if context.is_async and "await" not in expression and "run(" not in expression:
        expression = f"__import__('asyncio').run({expression})"
    if example.error is not None:
        return [*example.setup, *_raising(expression, example, context)]
    if example.value is not None:
        return [*example.setup, f"assert {expression} == {example.value}"]
    return [*example.setup, *_printing(expression, example.text or "")]


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


def _printing(expression: str, text: str) -> list[str]:
    """Compare what the interactive interpreter would show."""
    return [
        "import contextlib as _contextlib, io as _io",
        "with _contextlib.redirect_stdout(_io.StringIO()) as _out:",
        f"    _value = {expression}",
        "    if _value is not None: print(repr(_value))",
        f"assert _out.getvalue() == {text!r}",
    ]


def example_keys(cases: Iterable[Case]) -> set[str]:
    """Give the examples as the filter compares tests."""
    trees = [syntax.module(case.source) for case in cases]
    return {ast.unparse(tree) for tree in trees if tree is not None}


# ---------------------------------------------------------------- split or in-process


def where_to_run(nodes: list[ast.stmt], context: Context, found: Found) -> tuple[Mode, bool]:
    """Decide the mode of a test before any candidate has run.

    In-process are tests of methods and nested functions, tests that use the file's classes or its
    changeable globals, that hand over functions, or that look at what was printed. The second
    value says whether a refused result may be judged again in-process: only where the test does
    something with the value that needs the object itself, never where it compares it with a
    literal.
    """
    if context.is_method or found.around or needs_one_process(nodes, context):
        return "in-process", False
    return "split", not compares_directly(nodes, context)


def needs_one_process(nodes: list[ast.stmt], context: Context) -> bool:
    local = {n.name for node in nodes for n in ast.walk(node) if isinstance(n, Function)}
    for node in nodes:
        names = selftests.mentioned(node)
        if names & context.changeable or names & _CAPTURE:
            return True
        if any(isinstance(n, ast.Attribute) and n.attr in _CAPTURE for n in ast.walk(node)):
            return True
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
    """Whether a test compares the call's own value with a plain literal."""
    bound = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and target_calls(node.value, context, deep=False)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    asserts = [n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Assert)]
    return any(_is_direct(a.test, bound, context) for a in asserts)


def _is_direct(test: ast.expr, bound: set[str], context: Context) -> bool:
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
        return False
    sides = (test.left, test.comparators[0])
    for value, other in (sides, sides[::-1]):
        value = value.value if isinstance(value, ast.Await) else value
        value = _driven(value)
        is_value = bool(target_calls(value, context, deep=False)) or (
            isinstance(value, ast.Name) and value.id in bound
        )
        if is_value and syntax.is_literal(ast.unparse(other)):
            return True
    return False


def _driven(node: ast.expr) -> ast.expr:
    """Look through `asyncio.run(f(x))` to the call."""
    if isinstance(node, ast.Call) and last_name(node.func) == "run" and node.args:
        return node.args[0]
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
    asserts = [n for n in ast.walk(tree) if isinstance(n, ast.Assert)]
    for node in asserts:
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            on_right = target_calls(test.comparators[0], context)
            value = test.comparators[0] if on_right else test.left
            node.test = ast.Compare(value, [ast.Eq()], [ast.Constant(private)])
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
