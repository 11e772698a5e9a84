"""Rust source as a tree: tree-sitter reads, and these are the few questions asked of a node."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import tree_sitter
import tree_sitter_rust
from tree_sitter import Node

COMMENTS = ("line_comment", "block_comment")
STRINGS = ("string_literal", "raw_string_literal")
ITEMS = (
    "function_item", "struct_item", "enum_item", "union_item", "const_item", "static_item",
    "type_item", "trait_item", "impl_item", "mod_item", "macro_definition", "use_declaration",
    "extern_crate_declaration", "function_signature_item", "foreign_mod_item",
)  # fmt: skip


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))


def parse(data: bytes) -> Node:
    """Give the tree of a text; what is not Rust is marked in it."""
    return _parser().parse(data).root_node


def text(node: Node | None) -> str:
    """Give a node's source; "" for none."""
    found = node.text if node is not None else None
    return (found or b"").decode("utf-8", "replace")


def walk(node: Node) -> Iterator[Node]:
    """List a node and all below it, in the order of the text."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += reversed(one.children)


def find(node: Node, *kinds: str) -> Iterator[Node]:
    """List the nodes of these kinds at or below a node."""
    return (one for one in walk(node) if one.type in kinds)


def leaves(node: Node) -> list[str]:
    """Give the tokens of a node, comments left out; string and char literals are one token."""
    found: list[str] = []
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.type in COMMENTS:
            continue
        if one.child_count == 0 or one.type in (*STRINGS, "char_literal"):
            found.append(text(one))
        else:
            waiting += reversed(one.children)
    return found


def squeezed(node: Node) -> str:
    """Give a node's tokens with one space between them: equal for what differs in layout only."""
    return " ".join(leaves(node))


def words(node: Node) -> set[str]:
    """List every identifier that a piece of code mentions, in macros too."""
    kinds = ("identifier", "type_identifier", "field_identifier", "shorthand_field_identifier")
    names = {text(one) for one in find(node, *kinds)}
    return names | inlined(node)


def inlined(node: Node) -> set[str]:
    """List the names in the braces of format strings, as `{name}` and `{name:?}` use them."""
    found = set()
    for literal in find(node, *STRINGS):
        for part in text(literal).replace("{{", "").split("{")[1:]:
            name = part.split("}")[0].split(":")[0].strip()
            if name.isidentifier():
                found.add(name)
    return found


def statements(block: Node) -> list[Node]:
    """List what stands in a block or a file, without comments."""
    return [n for n in block.named_children if n.type not in COMMENTS]


def first_error(node: Node) -> tuple[int, int] | None:
    """Give line and column, from 1, of the first place that is not Rust."""
    for one in walk(node):
        if one.is_error or one.is_missing:
            return one.start_point[0] + 1, one.start_point[1] + 1
    return None


def macro_name(node: Node) -> str:
    """Give the last part of the name of the macro that a statement calls; "" for anything else."""
    if node.type == "expression_statement" and node.named_children:
        node = node.named_children[0]
    if node.type != "macro_invocation":
        return ""
    return text(node.child_by_field_name("macro")).rpartition("::")[2]


def token_tree(node: Node) -> Node | None:
    """Give the arguments of a macro call."""
    return next((n for n in find(node, "token_tree")), None)


def is_expression(code: str) -> bool:
    """Say whether a text is one whole expression."""
    data = f"fn _f() {{ let _v = {code}\n; }}".encode("utf-8", "replace")
    root = parse(data)
    if root.has_error or len(root.named_children) != 1:
        return False
    block = root.named_children[0].child_by_field_name("body")
    inside = statements(block) if block is not None else []
    return len(inside) == 1 and inside[0].type == "let_declaration"


def attributes(item: Node) -> list[Node]:
    """List the attributes and comments that stand right above an item, in order."""
    found: list[Node] = []
    node = item.prev_sibling
    below = item.start_point[0]
    while node is not None and node.type in ("attribute_item", *COMMENTS):
        if inner(node) or (not outer(node) and node.type in COMMENTS and _gap(node, below)):
            break
        found.append(node)
        below = node.start_point[0]
        node = node.prev_sibling
    while found and _trails(found[-1]):
        found.pop()
    return found[::-1]


def _gap(comment: Node, below: int) -> bool:
    """Whether an empty line parts a comment from what stands under it."""
    return below - last_row(comment) > 1


def _trails(comment: Node) -> bool:
    """Whether a comment stands behind other code, on its line."""
    before = comment.prev_sibling
    return before is not None and last_row(before) == comment.start_point[0]


def last_row(node: Node) -> int:
    """Give the row a node ends in; a doc comment's line end belongs to its own row."""
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point[0] else row


def outer(comment: Node) -> bool:
    return comment.child_by_field_name("outer") is not None


def inner(comment: Node) -> bool:
    return comment.child_by_field_name("inner") is not None


def attribute_names(item: Node) -> set[str]:
    """Name the attributes of an item: `test`, `cfg`, `tokio::test` as `test`."""
    names = set()
    for one in attributes(item):
        if one.type == "attribute_item" and one.named_children:
            path = one.named_children[0].named_children[0]
            names.add(text(path).rpartition("::")[2])
    return names


def is_test_only(item: Node) -> bool:
    """Whether an item is a test or exists in test builds alone."""
    found = attributes(item)
    return "test" in attribute_names(item) or any(
        one.type == "attribute_item" and {"cfg", "test"} <= set(leaves(one)) for one in found
    )


def name_of(item: Node) -> str:
    """Give the name that an item is known by; for an impl block its type's."""
    if item.type == "impl_item":
        return type_name(item.child_by_field_name("type"))
    return text(item.child_by_field_name("name"))


def type_name(node: Node | None) -> str:
    """Give the last name of a type, without what it is applied to."""
    while node is not None and node.type in ("generic_type", "reference_type"):
        node = node.child_by_field_name("type")
    if node is not None and node.type == "scoped_type_identifier":
        return text(node.child_by_field_name("name"))
    return text(node)


def same_type(node: Node, other: Node) -> bool:
    return squeezed(node) == squeezed(other)
