"""Parse text that nobody vouches for: a tree or nothing, and never a warning on the terminal."""

from __future__ import annotations

import ast
import warnings
from typing import Any

UNPARSABLE = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, SystemError)
"""What the parser raises; the last of them is said of some trees that are nested too deep."""
DEPTH = 80
"""How deep a test may be nested; the standard library's own tools for trees are recursive."""


def module(text: str) -> ast.Module | None:
    """Give the tree of statements, or None."""
    found: ast.Module | None = _parsed(ast.parse, text)
    return found


def expression(text: str) -> ast.Expression | None:
    """Give the tree of one expression, or None; also for one that is nested too deep."""
    found: ast.Expression | None = _parsed(lambda t: ast.parse(t, mode="eval"), text)
    return found if found is not None and is_shallow(found) else None


def is_literal(text: str) -> bool:
    """Say whether a text is a plain Python value."""
    return _parsed(lambda t: (ast.literal_eval(t),), text.strip()) is not None


def is_shallow(tree: ast.AST) -> bool:
    """Say whether a tree is nested so little that recursion over it is safe."""
    level: list[ast.AST] = [tree]
    for _ in range(DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return True
    return False


def error_in(text: str, whole: bool = False) -> str:
    """Say what keeps a text from being Python; "" when nothing does.

    With `whole`, as a program: where `return` and `await` may stand.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<code>", "exec", 0 if whole else ast.PyCF_ONLY_AST, True)
    except SyntaxError as error:
        return f"{error.msg} (line {error.lineno} of the code)"
    except UNPARSABLE as error:
        return str(error) or f"it is nested too deep ({type(error).__name__})"
    return ""


def _parsed(parse: Any, text: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return parse(text)
    except UNPARSABLE:
        return None
