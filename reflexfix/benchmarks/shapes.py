"""Shapes of arguments: JSON knows no tuple, set or complex number, the benchmark's asserts do."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

from reflexfix.python import syntax

SEQUENCES = ("tuple", "list", "set")


@dataclass(frozen=True)
class Shape:
    """What a JSON value stands for, and what its items do."""

    kind: str = ""
    """"tuple", "list", "set", "text", or "number" (which may come as text); "" if not known."""
    item: Shape | None = None
    """The shape of the items; of a dict, of its values."""
    deep: bool = False
    """Whether what lies deeper than the asserts go is like what is above it."""


def shape_of(node: ast.expr, known: Shape | None = None) -> Shape:
    """Read the shape of a literal, joined with what is known from others of its kind."""
    shape = known or Shape()
    if isinstance(node, ast.Dict):
        return _with_items(shape, node.values)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        shape = _with_items(shape, node.elts)
    return replace(shape, kind=joined(shape.kind, kind_of(node)))


def _with_items(shape: Shape, items: list[ast.expr]) -> Shape:
    for item in items:
        shape = replace(shape, item=shape_of(item, shape.item))
    return shape


def kind_of(node: ast.expr) -> str:
    """Name the kind of a literal; "" for what says nothing."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return "text"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return {"set": "set", "tuple": "tuple", "complex": "number"}.get(node.func.id, "")
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return type(node).__name__.lower()
    numbers = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
    plain = isinstance(node, ast.Constant | ast.BinOp | ast.UnaryOp)
    return "number" if plain and all(isinstance(n, int | float | complex) for n in numbers) else ""


def joined(first: str, second: str) -> str:
    """Join two kinds; a sequence is what it is among others, and a list among sequences."""
    kinds = {first, second} - {""}
    some = kinds & set(SEQUENCES) or kinds & {"text"} or kinds
    return some.pop() if len(some) == 1 else "list" if some else ""


def argument(value: Any, shape: Shape | None) -> str:
    """Write an argument as Python source; a number may have become text on its way through JSON."""
    if isinstance(value, str) and shape is not None and shape.kind == "number":
        tree = syntax.expression(value.strip())
        if tree is not None and kind_of(tree.body) == "number":
            return f"complex({value!r})" if "j" in value else f"float({value!r})"
    return shaped(value, shape or Shape())


def shaped(value: Any, shape: Shape) -> str:
    """Write a JSON value as Python source in its shape."""
    inner = shape.item or Shape()
    if shape.deep:
        inner = replace(
            inner, deep=True, kind=inner.kind if inner.kind in SEQUENCES else shape.kind
        )
    if isinstance(value, dict):
        pairs = [f"{shaped(k, Shape())}: {shaped(v, inner)}" for k, v in value.items()]
        return "{" + ", ".join(pairs) + "}"
    if not isinstance(value, list):
        return repr(value)
    return _written(shape.kind, [shaped(item, inner) for item in value])


def _written(kind: str, parts: list[str]) -> str:
    inside = ", ".join(parts)
    if kind == "tuple":
        return f"({inside},)" if parts else "()"
    if kind == "set":
        return "{" + inside + "}" if parts else "set()"
    return f"[{inside}]"
