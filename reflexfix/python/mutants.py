"""Where a Python function can be changed into something wrong."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import tree_sitter
import tree_sitter_python
from tree_sitter import Node

from reflexfix.python.target import Found, body_without_docstring
from reflexfix.task import Site

TURNED = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "in": "not in",
    "not in": "in", "is": "is not", "is not": "is",
}  # fmt: skip
SWAPPED = {"+": "-", "-": "+", "*": "+", "/": "*", "//": "*", "%": "+", "+=": "-=", "-=": "+="}


def sites(data: bytes, found: Found) -> list[Site]:
    """List the places in the body of a function in UTF-8 text without a BOM."""
    body = body_without_docstring(found.node)
    if not body:
        return []
    start, end = offset(data, body[0], False), offset(data, body[-1], True)
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))
    waiting = [parser.parse(data).root_node]
    listed: list[Site] = []
    while waiting:
        node = waiting.pop()
        if node.end_byte <= start or node.start_byte >= end:
            continue
        if node.start_byte >= start:
            listed += changes(node)
        waiting += reversed(node.children)
    return sorted(listed, key=lambda site: (site.start, site.end))


def offset(data: bytes, node: ast.stmt, end: bool) -> int:
    """Give where a statement begins or ends in the file, in bytes."""
    line = (node.end_lineno or node.lineno) if end else node.lineno
    column = (node.end_col_offset or 0) if end else node.col_offset
    return sum(len(one) for one in data.splitlines(keepends=True)[: line - 1]) + column


def changes(node: Node) -> Iterator[Site]:
    """Say what can be made of one node."""
    text = (node.text or b"").decode("utf-8", "replace")
    parent = node.parent.type if node.parent else ""
    if parent == "comparison_operator" and text in TURNED and not node.is_named:
        yield site(node, TURNED[text], "comparison")
    elif parent in ("binary_operator", "augmented_assignment") and text in SWAPPED:
        yield site(node, SWAPPED[text], "arithmetic")
    elif parent == "boolean_operator" and text in ("and", "or"):
        yield site(node, "or" if text == "and" else "and", "negation")
    elif node.type == "not_operator" and (argument := node.child_by_field_name("argument")):
        yield Site(node.start_byte, argument.start_byte, b"", "negation")
    elif node.type in ("true", "false"):
        yield site(node, "False" if node.type == "true" else "True", "constant")
    elif node.type == "integer" and text.isdecimal():
        yield site(node, str(int(text) + 1), "constant")
    elif node.type == "expression_statement" and is_dropped(node):
        yield site(node, "pass", "statement")


def is_dropped(node: Node) -> bool:
    """Whether a statement does something and may be missing: a call, or an augmented assignment."""
    return bool(node.children) and node.children[0].type in ("call", "augmented_assignment")


def site(node: Node, text: str, kind: str) -> Site:
    return Site(node.start_byte, node.end_byte, text.encode(), kind)
