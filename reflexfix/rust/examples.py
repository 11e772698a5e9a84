"""Examples that the user wrote in the documentation, as pieces of tests that are trusted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from reflexfix.rust import selftests, syntax
from reflexfix.rust.selftests import Unit

_KNOWN = ("", "rust", "rs", "should_panic", "test_harness", "standalone", "standalone_crate")


@dataclass(frozen=True)
class Fence:
    """A block of code in documentation, its hidden lines laid open."""

    code: str
    should_panic: bool = False


def documentation(item: Node) -> str:
    """Give the text of an item's doc comments and doc attributes."""
    parts: list[str] = []
    for node in syntax.attributes(item):
        if node.type == "attribute_item":
            parts += _doc_attribute(node)
        elif syntax.outer(node):
            parts.append(_comment_text(node))
    return "\n".join(parts)


def _doc_attribute(node: Node) -> list[str]:
    words = syntax.leaves(node)
    if words[2:3] != ["doc"]:
        return []
    literals = syntax.find(node, "string_literal", "raw_string_literal")
    return [syntax.text(n) for one in literals for n in syntax.find(one, "string_content")]


def _comment_text(node: Node) -> str:
    text = syntax.text(node.child_by_field_name("doc"))
    if node.type == "line_comment":
        return text.rstrip("\r\n")
    lines = [line.strip() for line in text.removesuffix("*/").splitlines()]
    return "\n".join(line.removeprefix("*").removeprefix(" ") for line in lines)


def units(documentation: str, target: str) -> list[Unit]:
    """List the tests that a documentation holds, each once."""
    found: dict[str, Unit] = {}
    for unit in [*_of_fences(documentation, target), *_of_prompts(documentation, target)]:
        found.setdefault(unit.key, unit)
    return list(found.values())


# ---------------------------------------------------------------- fenced code


def fences(documentation: str) -> Iterator[Fence]:
    """List the blocks that rustdoc would run."""
    lines = documentation.splitlines()
    row = 0
    while row < len(lines):
        mark = lines[row].strip()
        if not mark.startswith(("```", "~~~")):
            row += 1
            continue
        fence = mark[: len(mark) - len(mark.lstrip(mark[0]))]
        end = next((n for n in range(row + 1, len(lines)) if lines[n].strip() == fence), len(lines))
        words = [w.strip() for w in mark[len(fence) :].replace(",", " ").split()] or [""]
        if _is_run(words):
            yield Fence("\n".join(map(_laid_open, lines[row + 1 : end])), "should_panic" in words)
        row = end + 1


def _is_run(words: list[str]) -> bool:
    return all(word in _KNOWN or word.startswith("edition") for word in words)


def _laid_open(line: str) -> str:
    """Give a line without the `# ` that hides it from readers."""
    text = line.strip()
    if text == "#":
        return ""
    if text.startswith("##"):
        return line.replace("##", "#", 1)
    return line.replace("# ", "", 1) if text.startswith("# ") else line


def _of_fences(documentation: str, target: str) -> Iterator[Unit]:
    for fence in fences(documentation):
        if any(line.strip().startswith(">>>") for line in fence.code.splitlines()):
            continue
        root = syntax.parse(fence.code.encode("utf-8", "replace"))
        for piece in selftests.pieces(root, target):
            if fence.should_panic:
                yield replace(selftests.whole_unit(piece), should_panic=True)
            else:
                yield from selftests.units(piece)


# ---------------------------------------------------------------- >>> form


def _of_prompts(documentation: str, target: str) -> Iterator[Unit]:
    """Read `>>> f(1)` with the value on the lines below it."""
    setup: list[str] = []
    for call, value in prompts(documentation):
        code = "\n".join([*setup, f"assert_eq!({call}, {value});"])
        if value and syntax.is_expression(call):
            root = syntax.parse(code.encode("utf-8", "replace"))
            yield from (u for p in selftests.pieces(root, target) for u in selftests.units(p))
        elif not value:
            setup.append(call if call.endswith((";", "}")) else call + ";")


def prompts(documentation: str) -> Iterator[tuple[str, str]]:
    """List what stands behind `>>>`, and the shortest expression below it."""
    lines = [line.strip() for line in documentation.splitlines()]
    for row, line in enumerate(lines):
        if not line.startswith(">>>"):
            continue
        value = ""
        for below in lines[row + 1 : row + 12]:
            if not below or below.startswith((">>>", "```")):
                value = ""
                break
            value = f"{value} {below}".strip()
            if syntax.is_expression(value):
                break
        yield line.removeprefix(">>>").strip(), value
