"""Read a model's answer: find the code in it, whatever is written around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from reflexfix.rust import syntax, uses
from reflexfix.rust.splice import Code, dedented
from reflexfix.rust.target import Found, functions, says_unwritten

MAX_FENCES = 40
_HELPERS = tuple(kind for kind in syntax.ITEMS if kind not in ("use_declaration",))


@dataclass(frozen=True)
class Reading:
    """What an answer turned out to hold: code, or why there is none."""

    code: Code | None = None
    why: str = ""


def read(answer: str, found: Found, taken: frozenset[str], body_only: bool = False) -> Reading:
    """Find the target's new body in an answer, with the helpers and `use` lines that it needs.

    `taken` are the names that the target's module has. Never raises: an answer without usable
    code says why.
    """
    answer = answer.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    for block in candidates(answer, found.own_name):
        root = syntax.parse(block.encode("utf-8", "replace"))
        node = _target(root, found)
        if node is not None:
            return Reading(_code(root, node, found, taken, body_only))
    for block in blocks(answer):
        body = bare_body(block, found.own_name)
        if body is not None:
            return Reading(Code(body))
    return Reading(why=_why_not(answer, found.own_name))


def _why_not(answer: str, name: str) -> str:
    if not answer.strip():
        return "the answer is empty"
    if f"fn {name}" not in answer:
        return f"the answer does not define {name}"
    for block in blocks(answer):
        place = syntax.first_error(syntax.parse(block.encode("utf-8", "replace")))
        if place is not None:
            return "the answer is not valid Rust (line {}, column {} of the code)".format(*place)
    return f"the answer has no usable definition of {name}"


# ---------------------------------------------------------------- where code may be


def candidates(answer: str, name: str) -> Iterator[str]:
    """List texts that may hold the target's definition, the likeliest first.

    Later blocks come first (models correct themselves downwards), then a fence is allowed to
    close further down (for a fence inside a doc comment), then the bare text is searched.
    """
    sign = f"fn {name}"
    yield from (text for text in reversed(list(blocks(answer))) if sign in text)
    yield from (text for text in stretched_blocks(answer) if sign in text)
    if sign in answer:
        yield answer


def blocks(answer: str) -> Iterator[str]:
    """List the fenced blocks of an answer, or all of it where there is no fence."""
    lines = answer.split("\n")
    fences = fence_rows(lines)
    if not fences:
        yield answer
    for begin, end in zip(fences[::2], [*fences[1::2], len(lines)], strict=False):
        yield "\n".join(lines[begin + 1 : end]) + "\n"


def stretched_blocks(answer: str) -> Iterator[str]:
    """List what lies between any two fences, and what an unclosed fence opens."""
    lines = answer.split("\n")
    fences = fence_rows(lines)[:MAX_FENCES]
    for position, begin in enumerate(fences):
        for end in [*fences[position + 2 :], len(lines)]:
            yield "\n".join(lines[begin + 1 : end]) + "\n"


def fence_rows(lines: list[str]) -> list[int]:
    return [n for n, line in enumerate(lines) if line.strip().startswith(("```", "~~~"))]


def bare_body(text: str, name: str) -> str | None:
    """Read what stands between the braces, given alone; its end must be a value or a return."""
    if f"fn {name}" in text or not text.strip():
        return None
    root = syntax.parse(f"fn _f() -> T {{\n{text}\n}}".encode("utf-8", "replace"))
    if root.has_error or len(root.named_children) != 1:
        return None
    block = root.named_children[0].child_by_field_name("body")
    inside = syntax.statements(block) if block is not None else []
    if not inside or all(n.type in syntax.ITEMS for n in inside) or says_unwritten(inside[-1]):
        return None
    is_value = inside[-1].type not in ("expression_statement", "let_declaration", *syntax.ITEMS)
    returns = any(syntax.find(inside[-1], "return_expression"))
    is_word = inside[-1].type == "identifier"
    return dedented(text) if (is_value and not is_word) or returns else None


# ---------------------------------------------------------------- what is taken from it


def _target(root: Node, found: Found) -> Node | None:
    """Find the definition that matches the target best: by its path, its owner, its own name."""
    every = [f for f in functions(root) if f.own_name == found.own_name]
    whole = [f for f in every if not f.node.has_error and not _is_empty(f)]
    exact = [f for f in whole if f.name == found.name]
    owned = [f for f in whole if _owner(f) == _owner(found)]
    matches = exact or owned or whole
    return matches[-1].node if matches else None


def _owner(found: Found) -> str:
    return found.name.rpartition("::")[0].rpartition("::")[2] if found.owner is not None else ""


def _is_empty(found: Found) -> bool:
    """An answer that repeats the stub is no answer."""
    inside = syntax.statements(found.body)
    return not inside or (len(inside) == 1 and says_unwritten(inside[0]))


def _code(root: Node, node: Node, found: Found, taken: frozenset[str], body_only: bool) -> Code:
    body = body_text(node)
    if body_only:
        return Code(body)
    helpers = needed_helpers(root, node, taken)
    block = node.child_by_field_name("body")
    assert block is not None
    used = syntax.words(block).union(*(syntax.words(item) for item in helpers))
    lines = uses.needed(root, used, taken)
    return Code(body, tuple(lines), tuple(item_text(item) for item in helpers))


def body_text(node: Node) -> str:
    """Cut out what stands between the braces of a function."""
    body = node.child_by_field_name("body")
    inside = syntax.text(body)[1:-1]
    if "\n" not in inside.strip():
        return inside.strip()
    lead = inside[: len(inside) - len(inside.lstrip())]
    first = lead.rpartition("\n")[2] if "\n" in lead else ""
    return dedented(first + inside.strip() if "\n" in lead else inside)


def item_text(item: Node) -> str:
    """Give an item with its attributes and docs, not indented."""
    data = _whole(item)
    first = [*syntax.attributes(item), item][0]
    start = data.rfind(b"\n", 0, first.start_byte) + 1
    lead = data[start : first.start_byte].decode("utf-8", "replace")
    text = data[first.start_byte : item.end_byte].decode("utf-8", "replace")
    return dedented((lead if not lead.strip() else "") + text)


def _whole(node: Node) -> bytes:
    """Give the text that a node is part of."""
    while node.parent is not None:
        node = node.parent
    return b" " * node.start_byte + (node.text or b"")


def needed_helpers(root: Node, node: Node, taken: frozenset[str]) -> list[Node]:
    """List the items that the body needs and the file lacks, in their order."""
    offered: dict[str, list[Node]] = {}
    for item in offered_items(root, node):
        name = syntax.name_of(item)
        if name and name not in taken:
            offered.setdefault(name, []).append(item)
    wanted: dict[int, Node] = {}
    waiting = [node]
    while waiting:
        words = syntax.words(waiting.pop())
        for item in (item for word in sorted(words & offered.keys()) for item in offered[word]):
            if item.id not in wanted:
                wanted[item.id] = item
                waiting.append(item)
    return sorted(wanted.values(), key=lambda item: item.start_byte)


def offered_items(root: Node, node: Node) -> Iterator[Node]:
    """List the items beside the target, in its module and above; tests are none of them."""
    place: Node | None = node
    while place is not None:
        for item in place.named_children if place.type in _HOLDERS else ():
            holds = item.start_byte <= node.start_byte and node.end_byte <= item.end_byte
            if item.type in _HELPERS and not holds and not syntax.is_test_only(item):
                yield item
        place = place.parent


_HOLDERS = ("source_file", "mod_item")
