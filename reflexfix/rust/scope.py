"""What the model is told of the file: the target, what it names, signatures, in a budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from reflexfix.rust import syntax, uses
from reflexfix.rust.splice import Edit, applied, kept_comments, leading
from reflexfix.rust.target import Found

CHARACTERS_A_TOKEN = 3.2
"""A cautious guess for code; the models' own tokenizers give 3 to 4."""


def tokens_in(text: str) -> int:
    """Estimate how many tokens a text is."""
    return int(len(text) / CHARACTERS_A_TOKEN) + 1


@dataclass(frozen=True)
class Item:
    """A top-level item of the file."""

    node: Node
    names: frozenset[str]
    full: str
    brief: str


def described(data: bytes, root: Node, found: Found, tokens: int, named_only: bool = False) -> str:
    """Give the part of the file that matters, in the file's order, in at most `tokens` tokens.

    The target comes without its old body. What was left out is said in a comment. With
    `named_only`, only what the target names is shown (its old body too), and nothing else.
    """
    items = [
        _item(data, n, found, named_only) for n in root.named_children if n.type in syntax.ITEMS
    ]
    chosen = _chosen(items, found, tokens, named_only)
    left_out = [item for item in items if item.node.id not in chosen]
    parts = [chosen[item.node.id] for item in items if item.node.id in chosen]
    if left_out and not named_only:
        names = sorted({name for item in left_out for name in item.names if name})
        some = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        parts.append(f"// left out here: {len(left_out)} more items ({some})")
    return "\n".join(part for part in parts if part).strip("\n")


def _chosen(items: list[Item], found: Found, tokens: int, named_only: bool) -> dict[int, str]:
    """Pick items until the budget is spent: the target first, then outwards from it."""
    chosen: dict[int, str] = {}
    spent = 0

    def take(item: Item, text: str, always: bool = False) -> None:
        nonlocal spent
        cost = tokens_in(text)
        if item.node.id not in chosen and (always or spent + cost <= tokens):
            chosen[item.node.id] = text
            spent += cost

    outer = found.around[0] if found.around else found.node
    target = next(item for item in items if item.node.id == outer.id)
    take(target, target.full, always=True)
    for item in items:
        if item.node.type == "use_declaration":
            take(item, item.full)
    first = syntax.words(found.node).union(*map(named, found.around)) if named_only else None
    for item in _by_distance(items, target, first):
        take(item, item.full)
    if named_only:
        return chosen
    for item in sorted(items, key=lambda i: abs(i.node.start_byte - target.node.start_byte)):
        if not syntax.is_test_only(item.node):
            take(item, item.full if tokens_in(item.full) <= 60 else item.brief)
    return chosen


def named(holder: Node) -> set[str]:
    """Give the words of an item up to its body."""
    body = holder.child_by_field_name("body")
    return set[str]().union(*(syntax.words(n) for n in holder.children if n != body))


def _by_distance(items: list[Item], target: Item, first: set[str] | None = None) -> Iterator[Item]:
    """List what the target names (`first`, or all its words), then what those name, and so on."""
    by_name: dict[str, list[Item]] = {}
    for item in items:
        for name in item.names:
            by_name.setdefault(name, []).append(item)
    seen = {target.node.id}
    ring = [target]
    while ring:
        words = first or set[str]().union(*(syntax.words(item.node) for item in ring))
        first = None
        ring = [i for word in sorted(words) for i in by_name.get(word, []) if i.node.id not in seen]
        seen |= {item.node.id for item in ring}
        yield from ring


def _item(data: bytes, node: Node, found: Found, named_only: bool) -> Item:
    if node.type == "use_declaration":
        return Item(node, frozenset(leaf.name for leaf in uses.leaves_of(node)), _text(node), "")
    names = frozenset({syntax.name_of(node)})
    holds = node.start_byte <= found.node.start_byte and found.node.end_byte <= node.end_byte
    if holds:
        dropped = unnamed(found) if named_only else []
        return Item(node, names, target_text(data, node, found, dropped), "")
    full = "\n".join(_text(n) for n in [*syntax.attributes(node), node])
    return Item(node, names, full, brief(node))


def _text(node: Node) -> str:
    return syntax.text(node).replace("\r\n", "\n").rstrip("\n")


def brief(node: Node) -> str:
    """Give the signature of a function, or an impl block with those of its functions."""
    body = node.child_by_field_name("body")
    if node.type == "function_item":
        return header(node) + " { ... }"
    if node.type in ("impl_item", "trait_item", "mod_item") and body is not None:
        inner = [brief(n) for n in body.named_children if n.type == "function_item"]
        return "\n".join([header(node) + " {", *(f"    {line}" for line in inner), "}"])
    return _text(node) if tokens_in(_text(node)) <= 100 else ""


def header(node: Node) -> str:
    """Give an item up to its body."""
    body = node.child_by_field_name("body")
    data = node.text or b""
    end = len(data) if body is None else body.start_byte - node.start_byte
    return data[:end].decode("utf-8", "replace").replace("\r\n", "\n").strip()


def unnamed(found: Found) -> list[Node]:
    """List what stands beside the target, in what holds it, and is not named by it."""
    words = syntax.words(found.node)
    dropped: list[Node] = []
    for holder in found.around:
        body = holder.child_by_field_name("body")
        for node in body.named_children if body is not None else []:
            is_other = node.type in syntax.ITEMS and node.type != "use_declaration"
            holds = node.start_byte <= found.node.start_byte < node.end_byte
            if is_other and not holds and syntax.name_of(node) not in words:
                dropped += [*syntax.attributes(node), node]
    return dropped


def target_text(data: bytes, outer: Node, found: Found, dropped: Iterable[Node] = ()) -> str:
    """Give the item that holds the target, with a mark where the body belongs.

    What is `dropped` of what stands beside the target is left out.
    """
    first = [*syntax.attributes(outer), outer][0]
    notes = [syntax.text(one).strip() for one in kept_comments(found)]
    indent = leading(data, found.node.start_byte)
    inside = "".join(f"\n{indent}    {line}" for line in [*notes, "todo!()"])
    filled = "{" + inside + f"\n{indent}" + "}"
    edits = [Edit(found.body.start_byte, found.body.end_byte, filled)]
    edits += [Edit(line_of(data, n.start_byte), n.end_byte, "") for n in dropped]
    start, end = first.start_byte, outer.end_byte
    moved = [Edit(max(0, edit.start - start), edit.end - start, edit.text) for edit in edits]
    text = applied(data[start:end], moved).decode("utf-8", "replace")
    return text.replace("\r\n", "\n")


def line_of(data: bytes, place: int) -> int:
    """Give where the blank beginning of a line begins, or the place itself."""
    start = data.rfind(b"\n", 0, place)
    return start if start >= 0 and not data[start:place].strip() else place
