"""Where a Rust function can be changed into something wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from reflexfix.rust.syntax import text, walk
from reflexfix.task import Site

TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
SWAPPED = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "+", "+=": "-=", "-=": "+="}
OTHER = {"&&": "||", "||": "&&"}
_WHOLE = re.compile(r"(\d+)((?:[iu](?:8|16|32|64|128|size))?)\Z")


def sites(body: Node) -> list[Site]:
    """List the places in the body of a function; not all changes there compile."""
    listed = [site for node in walk(body) if node is not body for site in changes(node)]
    return sorted(listed, key=lambda site: (site.start, site.end))


def changes(node: Node) -> Iterator[Site]:
    """Say what can be made of one node."""
    parent = node.parent.type if node.parent else ""
    said = text(node)
    if parent in ("binary_expression", "compound_assignment_expr") and not node.is_named:
        for table, kind in ((TURNED, "comparison"), (SWAPPED, "arithmetic"), (OTHER, "negation")):
            if said in table:
                yield site(node, table[said], kind)
    elif node.type == "unary_expression" and said.startswith("!"):
        yield Site(node.start_byte, node.start_byte + 1, b"", "negation")
    elif node.type == "boolean_literal":
        yield site(node, "false" if said == "true" else "true", "constant")
    elif node.type == "integer_literal" and (whole := _WHOLE.match(said)):
        yield site(node, f"{int(whole[1]) + 1}{whole[2]}", "constant")
    elif node.type == "expression_statement" and is_dropped(node):
        yield site(node, "", "statement")


def is_dropped(node: Node) -> bool:
    """Whether a statement does something and may be missing."""
    kinds = ("call_expression", "compound_assignment_expr")
    return bool(node.children) and node.children[0].type in kinds and text(node).endswith(";")


def site(node: Node, text: str, kind: str) -> Site:
    return Site(node.start_byte, node.end_byte, text.encode(), kind)
