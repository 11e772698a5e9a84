"""Rust of a row: a stub that opens as a file, without what only cargo could give."""

from __future__ import annotations

import itertools
import re

from reflexfix.benchmarks.rows import NoProblem
from reflexfix.rust import syntax, target
from reflexfix.rust.splice import Edit, applied
from reflexfix.rust.target import Found

CRATES = {"rand": {"rand", "Rng", "thread_rng"}, "regex": {"Regex"}, "md5": {"md5"}}
"""Crates that HumanEval-X imports in every row, and the words that tell that one is used."""
STUB = "    todo!()\n}\n"
_EMPTY_MAIN = re.compile(r"^\s*fn main\(\)\s*\{\s*\}\s*\n")
_ASCII = re.compile(r",\s*ascii::AsciiExt\b|^use std::ascii::AsciiExt;\n", re.MULTILINE)
"""An import that the standard library has long been without need of."""


def functions(code: str) -> list[Found]:
    return list(target.functions(syntax.parse(code.encode())))


def named(code: str, name: str) -> Found | None:
    return next((f for f in functions(code) if name in (f.name, f.own_name)), None)


def crates_in(*texts: str) -> tuple[str, ...]:
    """Name the crates that are used, beside being imported."""
    words: set[str] = set()
    for text in texts:
        data = text.encode()
        uses = syntax.find(syntax.parse(data), "use_declaration")
        bare = applied(data, [Edit(node.start_byte, node.end_byte, "") for node in uses])
        words |= syntax.words(syntax.parse(bare))
    return tuple(crate for crate, signs in CRATES.items() if words & signs)


def cleaned(code: str, kept: tuple[str, ...] = ()) -> str:
    """Leave out the empty `main`, and `use` lines of crates that are not needed."""
    text = _ASCII.sub("", _EMPTY_MAIN.sub("", code.lstrip("\n")))
    root = syntax.parse(text.encode())
    edits = []
    for node in syntax.find(root, "use_declaration"):
        crate = syntax.text(node.child_by_field_name("argument")).split("::")[0]
        if crate in CRATES and crate not in kept:
            after = node.end_byte + (text.encode()[node.end_byte : node.end_byte + 1] == b"\n")
            edits.append(Edit(node.start_byte, after, ""))
    return applied(text.encode(), edits).decode()


def completed(prompt: str) -> str:
    """Close a prompt that ends where the body begins."""
    return (prompt if prompt.endswith("\n") else prompt + "\n") + STUB


def hollowed(code: str, found: Found) -> str:
    """Give the file up to a function, and that function without its body."""
    head = code.encode()[: found.body.start_byte].decode()
    return head + "{\n" + STUB


def documented(code: str, name: str, text: str = "") -> str:
    """Put a text above a function as its documentation, or turn the comment there into one."""
    found = named(code, name)
    if found is None:
        raise NoProblem(f"the prompt has no function {name}")
    node, data = found.outermost, code.encode()
    before = node.prev_sibling
    start = node.start_byte
    if not text and before is not None and before.type == "block_comment":
        text, start = syntax.text(before)[2:-2], before.start_byte
    lines = [f"/// {line.strip()}".rstrip() for line in text.strip().split("\n")]
    doc = "\n".join(lines) + "\n" if text.strip() else ""
    return (data[:start].decode() + doc) + data[node.start_byte :].decode()


def laid_open(tests: str) -> str:
    """Give tests as items: without the brace that closed a completion, or a comment around all."""
    text = tests.strip()
    if text.startswith("/*") and text.endswith("*/"):
        text = text[2:-2]
    return text.removeprefix("}").strip() + "\n"


def tested(code: str, tests: str) -> str:
    """Name the function that the tests are of: by their own name, or whom they call first."""
    names = [f.own_name for f in functions(code)]
    told = re.findall(r"\bfn test_(\w+)", tests)
    if told and told[0] in names:
        return str(told[0])
    words = syntax.leaves(syntax.parse(tests.encode()))
    calls = [w for w, after in itertools.pairwise(words) if after == "(" and w in names]
    if not (calls or names):
        raise NoProblem("the prompt has no function")
    return calls[0] if calls else names[-1]
