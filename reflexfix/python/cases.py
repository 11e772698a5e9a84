"""Make runnable cases of the model's own tests and of the docstring's examples."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from reflexfix.attempt import Case
from reflexfix.python import selftests, syntax
from reflexfix.python.asserts import expect_error, without_pytest
from reflexfix.python.examples import Example, examples
from reflexfix.python.placing import where_to_run
from reflexfix.python.selftests import Context, Unit
from reflexfix.python.target import Found, Function
from reflexfix.python.worth import why_not
from reflexfix.task import Dropped

MAX_TESTS = 200
"""How many tests of one answer are looked at."""


def own_cases(answer: str, context: Context, found: Found) -> tuple[list[Case], list[Dropped]]:
    """Read an answer of tests: the cases worth running, in order, and the rest with reasons."""
    statements, dropped = selftests.parse(answer)
    kept: dict[str, Case] = {}
    usable = selftests.usable_imports(statements, context)
    context = replace(context, checkers=selftests.checkers_in(usable))
    for unit in islice(selftests.units(usable, []), MAX_TESTS):
        if isinstance(unit, Dropped):
            dropped.append(unit)
            continue
        unit = with_imports(unit, context)
        if reason := why_not(unit, context):
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
