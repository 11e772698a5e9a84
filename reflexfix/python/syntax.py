"""Parse text that nobody vouches for: a tree or nothing, and never a warning on the terminal."""

from __future__ import annotations

import ast
import warnings
from typing import Any

_UNPARSABLE = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)


def module(text: str) -> ast.Module | None:
    """Give the tree of statements, or None."""
    found: ast.Module | None = _parsed(ast.parse, text)
    return found


def expression(text: str) -> ast.Expression | None:
    """Give the tree of one expression, or None."""
    found: ast.Expression | None = _parsed(lambda t: ast.parse(t, mode="eval"), text)
    return found


def is_literal(text: str) -> bool:
    """Say whether a text is a plain Python value."""
    return _parsed(lambda t: (ast.literal_eval(t),), text.strip()) is not None


def error_in(text: str) -> str:
    """Say what keeps a text from being Python; "" when nothing does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return f"{error.msg} (line {error.lineno} of the code)"
    except _UNPARSABLE as error:
        return str(error)
    return ""


def _parsed(parse: Any, text: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return parse(text)
    except _UNPARSABLE:
        return None
