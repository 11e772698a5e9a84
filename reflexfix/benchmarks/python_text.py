"""Python of a row: a stub that opens as a file, and tests that call what they define."""

from __future__ import annotations

import ast

from reflexfix.benchmarks.rows import NoProblem
from reflexfix.python import syntax
from reflexfix.python.target import Function, functions

STUB = "    ...\n"


def parsed(text: str, what: str) -> ast.Module:
    """Give the tree of a text. Raises NoProblem."""
    tree = syntax.module(text)
    if tree is None:
        raise NoProblem(f"{what}: {syntax.error_in(text) or 'cannot be parsed'}")
    return tree


def stub_of(prompt: str, function: str) -> tuple[str, tuple[str, ...]]:
    """Make a file of a prompt that ends where the body begins, and say what was changed.

    An import that stands between the def line and the docstring goes above the function, so that
    the docstring is one. Raises NoProblem.
    """
    text = prompt if prompt.endswith("\n") else prompt + "\n"
    if syntax.module(text) is None:
        text += STUB
    tree = parsed(text, "the prompt")
    node = last_function(tree, function)
    if node is None:
        raise NoProblem(f"the prompt has no function {function}")
    return _with_imports_above(text, node)


def last_function(tree: ast.Module, name: str) -> Function | None:
    found = [f.node for f in functions(tree) if f.name == name]
    return found[-1] if found else None


def _with_imports_above(text: str, node: Function) -> tuple[str, tuple[str, ...]]:
    leading = []
    for statement in node.body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            break
        leading.append(statement)
    rest = node.body[len(leading) :]
    if not (leading and rest and _is_text(rest[0])):
        return text, ()
    lines = text.split("\n")
    first, last = leading[0].lineno - 1, (leading[-1].end_lineno or leading[-1].lineno) - 1
    top = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
    moved = [ast.unparse(statement) for statement in leading]
    lines = [*lines[:top], *moved, "", *lines[top:first], *lines[last + 1 :]]
    return "\n".join(lines), ("an import was moved above the function",)


def _is_text(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


# ---------------------------------------------------------------- tests


def called(tests: str, function: str) -> str:
    """Give tests that run when they are loaded: a `check` that nobody calls is given its call.

    Raises NoProblem for tests that do not parse or have nothing to do with the function.
    """
    tree = parsed(tests, "the tests")
    defined = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    names = {node.name for node in defined}
    runs = {n for node in tree.body for n in _called_at_once(node)}
    if function == "check" and "check" in names:
        tests, names = _check_renamed(tree), names - {"check"} | {"_check"}
    check = "_check" if "_check" in names else "check"
    if check in names and not (runs & {node.name for node in defined}):
        tests = f"{tests}\n\n{check}({function})\n"
    if not mentions(parsed(tests, "the tests"), function.split(".")[0]):
        raise NoProblem(f"the tests do not call {function}")
    return tests


def _called_at_once(node: ast.stmt) -> set[str]:
    """Name the functions that are called when a statement of the module runs."""
    if isinstance(node, Function | ast.ClassDef):
        return set()
    calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    return {func.id for func in calls if isinstance(func, ast.Name)}


def _check_renamed(tree: ast.Module) -> str:
    """Let the tests' own `check` give way to a target of that name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "check":
            node.name = "_check"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            node.func.id = "_check" if node.func.id == "check" else node.func.id
    return ast.unparse(tree)


def mentions(tree: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(tree))
