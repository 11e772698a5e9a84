"""MBPP, full and sanitized: a sentence, a solution, and asserts that tell the function's name."""

from __future__ import annotations

import ast

from reflexfix.benchmarks.problem import Problem, Program, Wishes
from reflexfix.benchmarks.python_text import mentions, parsed
from reflexfix.benchmarks.rows import NoProblem, Row
from reflexfix.python.target import Function


def full(row: Row, wishes: Wishes) -> Problem:
    """Read a row of mbpp.jsonl (CC-BY-4.0, Google Research)."""
    setup = row.text("test_setup_code", "")
    return _problem(row, wishes, row.text("text"), [setup] if setup.strip() else [], "test_list")


def sanitized(row: Row, wishes: Wishes) -> Problem:
    """Read a row of sanitized-mbpp.json."""
    return _problem(row, wishes, row.text("prompt"), row.texts("test_imports"), "test_list")


def listed(row: Row, wishes: Wishes) -> Problem:
    """Read a row of a copy that calls its asserts `test`."""
    return _problem(row, wishes, row.text("prompt"), [], "test")


def _problem(row: Row, wishes: Wishes, text: str, setup: list[str], field: str) -> Problem:
    asserts, code = row.texts(field), row.text("code")
    if not asserts:
        raise NoProblem("has no tests")
    shown = asserts[: wishes.visible_tests]
    if len(shown) == len(asserts):
        raise NoProblem(f"all {len(asserts)} tests would be shown; none is left to score by")
    tree = parsed(code, "the reference solution")
    every = parsed("\n".join([*setup, *asserts]), "the tests")
    node = target_of(tree, every)
    notes = [f"tests shown and not scored by: {len(shown)} of {len(asserts)}"] if shown else []
    return Problem(
        id=f"Mbpp/{row.fields['task_id']}",
        language="python",
        source=stub_from(tree, node, every, text),
        function=node.name,
        hidden=Program("\n".join([*setup, *asserts[len(shown) :], ""])),
        visible="\n".join([*setup, *shown, ""]) if shown else "",
        solution=code if code.endswith("\n") else code + "\n",
        notes=tuple(notes),
    )


def target_of(code: ast.Module, tests: ast.Module) -> Function:
    """Find the function of the reference that the asserts call, the outermost call first.

    Raises NoProblem.
    """
    defined = {node.name: node for node in code.body if isinstance(node, Function)}
    for statement in tests.body:
        if isinstance(statement, ast.Assert):
            for node in ast.walk(statement.test):
                name = node.func.id if _is_plain_call(node) else ""  # type: ignore[attr-defined]
                if name in defined:
                    return defined[name]
    raise NoProblem("no assert calls a function of the reference solution")


def _is_plain_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def stub_from(code: ast.Module, node: Function, tests: ast.Module, text: str) -> str:
    """Write the def line of the reference with the text as its docstring.

    Only names and parameters are told. What else of the reference the tests use (a class whose
    objects they make, a module that it imports) is given, with the imports that it needs.
    """
    helpers = [n for n in _needed(code, tests) if n is not node]
    imports = [n for n in code.body if isinstance(n, ast.Import | ast.ImportFrom)]
    imports = [n for n in imports if helpers or any(mentions(tests, name) for name in bound(n))]
    head = [ast.unparse(n) for n in [*imports, *helpers]]
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    stub = f"{kind} {node.name}({parameters(node)}):\n{docstring(text)}\n"
    return "\n\n".join([*head, stub]) if head else stub


def _needed(code: ast.Module, tests: ast.Module) -> list[ast.stmt]:
    """List the definitions of the reference that the tests mention, and those that these need."""
    kinds = Function | ast.ClassDef
    waiting = {n.name: n for n in code.body if isinstance(n, kinds)}
    users: list[ast.AST] = [tests]
    found: list[ast.stmt] = []
    while users:
        user = users.pop()
        for name in [name for name in waiting if mentions(user, name)]:
            node = waiting.pop(name)
            found.append(node)
            if isinstance(node, ast.ClassDef):
                users.append(node)
    helpers = [n for n in found if isinstance(n, ast.ClassDef)]
    called = [n for n in found if not isinstance(n, ast.ClassDef)]
    return sorted([*helpers, *called], key=lambda n: n.lineno) if helpers else []


def bound(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [(alias.asname or alias.name).split(".")[0] for alias in node.names]


def parameters(node: Function) -> str:
    """Give the parameters without their types; of the values that they default to, plain ones."""
    given = node.args
    for one in [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]:
        if one is not None:
            one.annotation = None
    given.defaults = [_plain(value) for value in given.defaults]
    given.kw_defaults = [value and _plain(value) for value in given.kw_defaults]
    return ast.unparse(given)


def _plain(value: ast.expr) -> ast.expr:
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ast.Constant(None)
    return value


def docstring(text: str) -> str:
    """Write a text as the docstring of a function, in its own words to the letter."""
    safe = text.strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines = [f"    {line}".rstrip() for line in safe.split("\n")]
    shown = "\n".join(lines).strip()
    return (
        f'    """{shown}\n    """' if "\n" in shown or shown.endswith('"') else f'    """{shown}"""'
    )
