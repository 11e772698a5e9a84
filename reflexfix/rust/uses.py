"""`use` declarations, taken apart into single names and written again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from reflexfix.rust import syntax

METHODS: dict[str, set[str]] = {
    "Write": {"write", "writeln", "write_str", "write_char", "write_fmt", "write_all", "flush"},
    "Read": {"read", "read_to_string", "read_to_end", "read_exact", "bytes"},
    "BufRead": {"lines", "read_line", "split"},
    "FromStr": {"from_str"},
    "FromIterator": {"from_iter"},
    "TryFrom": {"try_from"},
    "TryInto": {"try_into"},
    "Hash": {"hash", "hash_slice"},
    "Hasher": {"finish", "write"},
    "BuildHasher": {"build_hasher", "hash_one"},
    "Borrow": {"borrow"},
    "BorrowMut": {"borrow_mut"},
    "Any": {"type_id"},
    "Error": {"source"},
}
"""Traits that are imported for these methods and macros, without being named."""


@dataclass(frozen=True)
class Leaf:
    """One name that a `use` brings in."""

    path: tuple[str, ...]
    alias: str = ""
    """What follows `as`."""

    @property
    def name(self) -> str:
        return self.alias or self.path[-1]

    @property
    def line(self) -> str:
        return f"use {'::'.join(self.path)}{' as ' + self.alias if self.alias else ''};"

    @property
    def is_glob(self) -> bool:
        return self.path[-1] == "*"


def leaves_of(declaration: Node) -> list[Leaf]:
    """Take a `use` apart; `self` in braces stands for the path before them."""
    argument = declaration.child_by_field_name("argument")
    return list(_leaves(argument, ())) if argument is not None else []


def _leaves(node: Node, before: tuple[str, ...]) -> Iterator[Leaf]:
    if node.type == "use_as_clause":
        path = _path(node.child_by_field_name("path"))
        yield Leaf(_joined(before, path), syntax.text(node.child_by_field_name("alias")))
    elif node.type == "scoped_use_list":
        inner = (*before, *_path(node.child_by_field_name("path")))
        for child in syntax.statements(node.child_by_field_name("list") or node):
            yield from _leaves(child, inner)
    elif node.type == "use_list":
        for child in syntax.statements(node):
            yield from _leaves(child, before)
    elif node.type == "use_wildcard":
        rest = _path(node.named_children[0]) if node.named_children else ()
        yield Leaf((*before, *rest, "*"))
    else:
        yield Leaf(_joined(before, _path(node)))


def _path(node: Node | None) -> tuple[str, ...]:
    return tuple(syntax.text(node).replace(" ", "").removeprefix("::").split("::")) if node else ()


def _joined(before: tuple[str, ...], path: tuple[str, ...]) -> tuple[str, ...]:
    return before if path == ("self",) and before else (*before, *path)


def all_of(holder: Node) -> list[Leaf]:
    """List what all `use` declarations of a module bring in."""
    found = [n for n in holder.named_children if n.type == "use_declaration"]
    return [leaf for node in found for leaf in leaves_of(node)]


def needed(root: Node, used: set[str], taken: frozenset[str]) -> Iterator[str]:
    """Write the `use` lines that new code needs and the file does not have."""
    seen: set[Leaf] = set()
    for node in syntax.find(root, "use_declaration"):
        if _inside_function(node):
            continue
        leaves = [leaf for leaf in leaves_of(node) if leaf not in seen]
        wanted = [leaf for leaf in leaves if _is_wanted(leaf, used, taken)]
        seen |= set(wanted)
        if wanted and len(wanted) == len(leaves_of(node)) and "\n" not in syntax.text(node):
            yield syntax.text(node).removeprefix("pub ")
        else:
            yield from (leaf.line for leaf in wanted)


def _is_wanted(leaf: Leaf, used: set[str], taken: frozenset[str]) -> bool:
    if leaf.path[0] in ("super", "self", "crate") or leaf.name in taken:
        return False
    if leaf.is_glob:
        return leaf.path[0] in ("std", "core", "alloc")
    return leaf.name in used or bool(METHODS.get(leaf.path[-1], set()) & used)


def _inside_function(node: Node) -> bool:
    place = node.parent
    while place is not None:
        if place.type == "block":
            return True
        place = place.parent
    return False
