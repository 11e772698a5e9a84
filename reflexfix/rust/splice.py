"""Put a body into its function and leave every other byte of the file as it was."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from reflexfix.rust import syntax
from reflexfix.rust.target import Found


@dataclass(frozen=True)
class Code:
    """What was read from an answer: not indented, `\\n` line endings."""

    body: str
    """What stands between the braces."""
    uses: tuple[str, ...] = ()
    """One `use` line each."""
    helpers: tuple[str, ...] = ()
    """Complete items."""

    @property
    def text(self) -> str:
        """All of it as one text, to be shown and compared."""
        parts = ["\n".join(self.uses), *self.helpers, self.body]
        return "\n\n".join(part for part in parts if part)


@dataclass(frozen=True)
class Edit:
    """Text that takes the place of what lies between two byte offsets."""

    start: int
    end: int
    text: str


def spliced(data: bytes, root: Node, found: Found, code: Code) -> bytes:
    """Give the whole file with this code in the target's place."""
    edits = [body_edit(data, found, code.body)]
    if code.helpers:
        edits.append(helpers_edit(data, found, code.helpers))
    if code.uses:
        edits.append(uses_edit(data, root, found, code.uses))
    return applied(data, edits)


def applied(data: bytes, edits: list[Edit]) -> bytes:
    """Apply edits that do not overlap; new text gets the line endings of the file."""
    newline = newline_of(data)
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        new = edit.text.replace("\n", newline).encode("utf-8", "replace")
        data = data[: edit.start] + new + data[edit.end :]
    return data


def newline_of(data: bytes) -> str:
    """Give the line ending that the file uses most."""
    pairs = data.count(b"\r\n")
    return "\r\n" if pairs > data.count(b"\n") - pairs else "\n"


# ---------------------------------------------------------------- the body


def body_edit(data: bytes, found: Found, body: str) -> Edit:
    """Say what text takes the place of the old body, between its braces.

    Comments above the old body stay, unless they say TODO or FIXME.
    """
    own = leading(data, found.node.start_byte)
    indent = own + unit_of(data)
    start, end = found.body.start_byte + 1, found.body.end_byte - 1
    kept = [syntax.text(one).strip() for one in kept_comments(found)]
    lines = [indent + one for one in kept] + [indented(body, indent)]
    return Edit(start, end, "\n" + "\n".join(line for line in lines if line) + "\n" + own)


def kept_comments(found: Found) -> list[Node]:
    """List the comments that the user wrote above the body for whoever fills it in."""
    kept: list[Node] = []
    for child in found.body.named_children:
        if child.type not in syntax.COMMENTS or syntax.inner(child):
            break
        if not any(word in syntax.text(child) for word in ("TODO", "FIXME", "\n")):
            kept.append(child)
    return kept


def leading(data: bytes, offset: int) -> str:
    """Give the white space that the line of an offset begins with."""
    line = data[data.rfind(b"\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(b" \t"))].decode("ascii")


def unit_of(data: bytes) -> str:
    """Give one level of indentation: a tab where most indented lines begin with one."""
    lines = data.split(b"\n")[:2000]
    tabs = sum(line.startswith(b"\t") for line in lines)
    return "\t" if tabs > sum(line.startswith(b"  ") for line in lines) else "    "


def indented(code: str, indent: str) -> str:
    """Indent code, leaving the inside of strings and comments of several lines alone."""
    inside = rows_inside(code)
    tabs = indent.endswith("\t")
    lines = code.split("\n")
    return "\n".join(
        line if row in inside or not line.strip() else indent + (_tabbed(line) if tabs else line)
        for row, line in enumerate(lines)
    )


def _tabbed(line: str) -> str:
    rest = line.lstrip(" ")
    levels, more = divmod(len(line) - len(rest), 4)
    return "\t" * levels + " " * more + rest


def rows_inside(code: str) -> set[int]:
    """List the rows whose beginning lies inside a string or comment that began further up."""
    root = syntax.parse(code.encode("utf-8", "replace"))
    inside: set[int] = set()
    for node in syntax.find(root, *syntax.STRINGS, "block_comment"):
        inside.update(range(node.start_point[0] + 1, node.end_point[0] + 1))
    return inside


def dedented(code: str) -> str:
    """Take away the indentation that all lines share, strings of several lines aside."""
    inside = rows_inside(code)
    lines = code.split("\n")
    free = [line for row, line in enumerate(lines) if row not in inside and line.strip()]
    shared = min((len(line) - len(line.lstrip(" \t")) for line in free), default=0)
    kept = [
        line if row in inside else line[shared:] if line.strip() else ""
        for row, line in enumerate(lines)
    ]
    return "\n".join(
        line if row + 1 in inside else line.rstrip() for row, line in enumerate(kept)
    ).strip("\n")


# ---------------------------------------------------------------- helpers and `use` lines


def helpers_edit(data: bytes, found: Found, helpers: tuple[str, ...]) -> Edit:
    """Put helpers above the item that holds the target, above its attributes and docs.

    In a nested module that is inside the module, where the target can see them.
    """
    at = top_of(data, found.outermost)
    indent = leading(data, found.outermost.start_byte)
    new = "".join(indented(helper, indent) + "\n\n" for helper in helpers)
    return Edit(at, at, new)


def top_of(data: bytes, item: Node) -> int:
    """Give the beginning of the line on which an item begins, with what belongs to it."""
    first = ([*syntax.attributes(item), item])[0]
    start = data.rfind(b"\n", 0, first.start_byte) + 1
    return start if not data[start : first.start_byte].strip(b" \t") else first.start_byte


def uses_edit(data: bytes, root: Node, found: Found, uses: tuple[str, ...]) -> Edit:
    """Put `use` lines behind those of the target's module, or where they would be."""
    holder = found.modules[-1].child_by_field_name("body") if found.modules else root
    assert holder is not None
    last = last_use(holder)
    indent = leading(data, found.outermost.start_byte)
    text = "".join(f"{indent}{line}\n" for line in uses)
    if last is not None:
        return _behind(data, last, text)
    first = next(n for n in holder.named_children if _is_item(n))
    at = top_of(data, first)
    return Edit(at, at, text + "\n")


def last_use(holder: Node) -> Node | None:
    """Find the last `use` of the block that a module begins with."""
    found = None
    for node in holder.named_children:
        if node.type == "use_declaration":
            found = node
        elif _is_item(node) and not _may_precede(node):
            break
    return found


def _may_precede(node: Node) -> bool:
    """Whether an item may stand among the `use` lines that a module begins with."""
    is_declared = node.type == "mod_item" and node.child_by_field_name("body") is None
    return is_declared or node.type == "extern_crate_declaration"


def _is_item(node: Node) -> bool:
    return node.type in (*syntax.ITEMS, "expression_statement", "macro_invocation")


def _behind(data: bytes, node: Node, text: str) -> Edit:
    """Put lines below the line on which a node ends, or right behind it where more stands there."""
    more = node.next_sibling
    if more is not None and more.start_point[0] == node.end_point[0] and _is_item(more):
        return Edit(node.end_byte, node.end_byte, "\n" + text)
    at = data.find(b"\n", node.end_byte)
    if at < 0:
        return Edit(len(data), len(data), "\n" + text)
    return Edit(at + 1, at + 1, text)
