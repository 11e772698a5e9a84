"""Which types cross between two processes: those of the standard library that hold plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node

from reflexfix.rust import syntax, uses

_PLAIN = (
    "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize",
    "f32", "f64", "bool", "char", "str", "String",
)  # fmt: skip
_APPLIED: dict[str, tuple[int, tuple[str, ...]]] = {
    "Vec": (1, ("std", "vec", "Vec")),
    "Option": (1, ("std", "option", "Option")),
    "Result": (2, ("std", "result", "Result")),
    "Box": (1, ("std", "boxed", "Box")),
    "HashMap": (2, ("std", "collections", "HashMap")),
    "BTreeMap": (2, ("std", "collections", "BTreeMap")),
    "HashSet": (1, ("std", "collections", "HashSet")),
    "BTreeSet": (1, ("std", "collections", "BTreeSet")),
    "VecDeque": (1, ("std", "collections", "VecDeque")),
}
_ORDERING = ("std", "cmp", "Ordering")
_MOST_IN_TUPLE = 8
_MOST_ALIASES = 20


@dataclass(frozen=True)
class Names:
    """What names of types mean in a module."""

    own: frozenset[str] = frozenset()
    """Types that the file defines, and type parameters."""
    aliases: dict[str, Node] = field(default_factory=dict)
    imported: dict[str, tuple[str, ...]] = field(default_factory=dict)


def names_in(holder: Node) -> Names:
    """Gather what a module defines and imports."""
    kinds = ("struct_item", "enum_item", "union_item", "trait_item")
    own = {syntax.name_of(n) for n in holder.named_children if n.type in kinds}
    aliases = {syntax.name_of(n): n for n in holder.named_children if n.type == "type_item"}
    imported = {leaf.name: leaf.path for leaf in uses.all_of(holder) if not leaf.is_glob}
    return Names(frozenset(own), aliases, imported)


def crosses(node: Node | None, names: Names, depth: int = 0) -> bool:
    """Say whether the values of a type can be sent and made anew on the other side."""
    if node is None or node.type == "unit_type":
        return True
    if depth > _MOST_ALIASES:
        return False
    if node.type in ("primitive_type", "type_identifier", "scoped_type_identifier"):
        return _named(node, names, depth)
    if node.type == "generic_type":
        return _generic(node, names, depth)
    if node.type == "tuple_type":
        parts = syntax.statements(node)
        return len(parts) <= _MOST_IN_TUPLE and all(crosses(n, names, depth + 1) for n in parts)
    if node.type == "array_type":
        return crosses(node.child_by_field_name("element"), names, depth + 1)
    if node.type == "reference_type":
        return not is_mutable(node) and crosses(node.child_by_field_name("type"), names, depth + 1)
    return False


def is_mutable(reference: Node) -> bool:
    return any(child.type == "mutable_specifier" for child in reference.children)


def _path(node: Node) -> tuple[str, ...]:
    return tuple(syntax.text(node).replace(" ", "").removeprefix("::").split("::"))


def _named(node: Node, names: Names, depth: int) -> bool:
    path = _path(node)
    if len(path) == 1 and path[0] in names.own:
        return False
    if len(path) == 1 and path[0] in names.aliases:
        return crosses(names.aliases[path[0]].child_by_field_name("type"), names, depth + 1)
    if len(path) == 1 and path[0] in _PLAIN and path[0] not in names.imported:
        return True
    return _full(path, names) in (_ORDERING, ("std", "string", "String"))


def _generic(node: Node, names: Names, depth: int) -> bool:
    head = node.child_by_field_name("type")
    arguments = node.child_by_field_name("type_arguments")
    if head is None or arguments is None:
        return False
    types = [n for n in syntax.statements(arguments) if n.type != "lifetime"]
    path = _path(head)
    if len(path) == 1 and path[0] in names.own:
        return False
    if len(path) == 1 and path[0] in names.aliases:
        alias = names.aliases[path[0]]
        return not types and crosses(alias.child_by_field_name("type"), names, depth + 1)
    full = _full(path, names)
    arity, known = _APPLIED.get(full[-1], (0, ()))
    in_prelude = full == path and len(path) == 1 and path[0] in ("Vec", "Option", "Result", "Box")
    right = bool(known) and (full == known or in_prelude or _by_module(full, known))
    return right and len(types) == arity and all(crosses(n, names, depth + 1) for n in types)


def _full(path: tuple[str, ...], names: Names) -> tuple[str, ...]:
    """Give a path as the imports of the module complete it."""
    before = names.imported.get(path[0])
    full = (*before, *path[1:]) if before else path
    return ("std", *full[1:]) if full[0] in ("core", "alloc") else full


def _by_module(full: tuple[str, ...], known: tuple[str, ...]) -> bool:
    """Whether a type is named by the module that it is re-exported from (hash_map::HashMap)."""
    own_module = {"HashMap": "hash_map", "BTreeMap": "btree_map", "HashSet": "hash_set",
                  "BTreeSet": "btree_set", "VecDeque": "vec_deque"}  # fmt: skip
    return full == (*known[:-1], own_module.get(known[-1], ""), known[-1])
