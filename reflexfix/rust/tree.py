"""The files that are compiled together: a file alone, or its crate from the root down."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tree_sitter import Node

from reflexfix.errors import UsageProblem
from reflexfix.rust import syntax, uses
from reflexfix.rust.crate import Crate, crates_used, roots

MOST_FILES = 400
MOST_BYTES = 8_000_000
INCLUDES = ("include", "include_str", "include_bytes")


@dataclass(frozen=True)
class Tree:
    """Files by their path below a common folder."""

    root: str
    """The file that the compiler is given."""
    own: str
    """The user's file."""
    others: dict[str, bytes] = field(default_factory=dict)
    """All but the user's."""

    @property
    def names(self) -> set[str]:
        """Name what the root has, where the user's file is another one."""
        top = syntax.parse(self.others.get(self.root, b""))
        return {syntax.name_of(node) for node in top.named_children if node.type in syntax.ITEMS}

    @property
    def rust_files(self) -> list[bytes]:
        return [data for name, data in self.others.items() if name.endswith(".rs")]


def around(path: Path, data: bytes, root: Node, crate: Crate) -> Tree:
    """Find what a file is compiled with.

    A file that takes nothing from others is compiled alone. Raises UsageProblem when it takes
    something from where nothing is.
    """
    wants = outside(root, crate)
    if not (wants or declared(root) or included(root)):
        return alone(path)
    path = Path(os.path.abspath(path))
    for top in [*roots(path, crate), path]:
        if top != path and not wants:
            continue
        files = Walk(path, data).below(top)
        if path in files:
            break
    else:
        raise AssertionError("a file reaches itself")
    if top == path and wants and not is_root(path, crate):
        raise UsageProblem(
            f"{path.name} takes {wants[0]} from its crate, and no root of a crate around it "
            "declares it as a module.",
            hint="src/lib.rs or src/main.rs has to reach it by `mod` declarations",
        )
    return placed(files, top, path)


def alone(path: Path) -> Tree:
    name = path.name if path.stem.isidentifier() else "target.rs"
    return Tree(name, name)


def is_root(path: Path, crate: Crate) -> bool:
    return path in roots(path, crate)


def placed(files: dict[Path, bytes], top: Path, path: Path) -> Tree:
    """Name the files by their paths below the folder that holds them all."""
    base = os.path.commonpath([one.parent for one in files])
    names = {one: os.path.relpath(one, base) for one in files}
    others = {names[one]: data for one, data in files.items() if one != path}
    return Tree(names[top], names[path], others)


# ---------------------------------------------------------------- what a file says of others


def outside(root: Node, crate: Crate) -> list[str]:
    """List what a file takes from modules that are not in it, as it spells that.

    In the edition of 2015, paths of `use` lines begin in the crate's root.
    """
    own = {syntax.name_of(n) for n in root.named_children if n.type in syntax.ITEMS}
    own |= {leaf.name for leaf in uses.all_of(root) if leaf.path[0] != "crate"}
    found: dict[str, None] = {}
    for node in syntax.find(root, "use_declaration"):
        for leaf in uses.leaves_of(node):
            first, second = (*leaf.path, "")[:2]
            if first == "crate" and second not in own:
                found[f"crate::{second}"] = None
    if crate.edition == "2015":
        names = set(crates_used(root, crate.dependencies)) - crate.dependencies - {crate.name}
        found |= dict.fromkeys(f"::{name}" for name in sorted(names))
    tokens = syntax.leaves(root)
    for first, sign, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if first == "crate" and sign == "::" and name[:1].isidentifier() and name not in own:
            found[f"crate::{name}"] = None
    for node in syntax.find(root, "super"):
        if depth(node) == 0:
            found[syntax.text(node.parent).split("{")[0]] = None
    return list(found)


def depth(node: Node) -> int:
    """Say how many modules of its file a node lies in, less the times it says `super`."""
    count, place = 0, node.parent
    while place is not None:
        count += place.type == "mod_item"
        place = place.parent
    return count


def declared(root: Node) -> list[Node]:
    """List the modules that lie in files of their own, those for tests aside."""
    every = syntax.find(root, "mod_item")
    return [n for n in every if n.child_by_field_name("body") is None and not is_for_tests(n)]


def is_for_tests(node: Node | None) -> bool:
    while node is not None:
        if node.type == "mod_item" and syntax.is_test_only(node):
            return True
        node = node.parent
    return False


def included(root: Node) -> list[str]:
    """List the files that are taken in by their names, as text or as code."""
    calls = [n for n in syntax.find(root, "macro_invocation") if syntax.macro_name(n) in INCLUDES]
    texts = (next(syntax.find(call, "string_content"), None) for call in calls)
    return [syntax.text(text) for text in texts if text is not None]


# ---------------------------------------------------------------- walking


@dataclass
class Walk:
    """Gathers files from a root down; the user's own is there already."""

    path: Path
    data: bytes
    files: dict[Path, bytes] = field(default_factory=dict)

    def below(self, top: Path) -> dict[Path, bytes]:
        waiting = [(top, True)]
        while waiting:
            path, is_top = waiting.pop()
            if path in self.files:
                continue
            root = syntax.parse(self._read(path))
            waiting += [(file, file.name == "mod.rs") for file in self._modules(path, root, is_top)]
            for name in included(root):
                file = Path(os.path.abspath(path.parent / name))
                if file.is_file() and file not in self.files:
                    self._read(file)
        return self.files

    def _read(self, path: Path) -> bytes:
        try:
            data = self.data if path == self.path else path.read_bytes()
        except OSError as error:
            raise UsageProblem(f"{path} cannot be read: {error.strerror}.") from None
        self.files[path] = data
        if len(self.files) > MOST_FILES or sum(map(len, self.files.values())) > MOST_BYTES:
            raise UsageProblem(
                f"The crate around {self.path.name} is too large to be compiled with it: more than "
                f"{MOST_FILES} files or {MOST_BYTES / 1e6:.0f} MB."
            )
        return data

    def _modules(self, path: Path, root: Node, is_top: bool) -> Iterator[Path]:
        """List the files of the modules that a file declares."""
        folder = path.parent if is_top or path.name == "mod.rs" else path.parent / path.stem
        for node in declared(root):
            inner = inline_names(node)
            if named := path_attribute(node):
                base = folder.joinpath(*inner) if inner else path.parent
                yield Path(os.path.abspath(base / named))
                continue
            name = syntax.name_of(node).removeprefix("r#")
            place = folder.joinpath(*inner)
            usual = [place / f"{name}.rs", place / name / "mod.rs"]
            there = [file for file in usual if file.is_file()]
            if there:
                yield there[0]
            elif "cfg" not in syntax.attribute_names(node):
                raise UsageProblem(
                    f"{path.name} declares `mod {name};`, and there is neither {usual[0]} nor "
                    f"{usual[1]}."
                )


def inline_names(node: Node) -> list[str]:
    """Name the modules of the same file that a declaration lies in, outermost first."""
    found: list[str] = []
    place = node.parent
    while place is not None:
        if place.type == "mod_item":
            found.append(syntax.name_of(place))
        place = place.parent
    return found[::-1]


def path_attribute(node: Node) -> str:
    """Give the file that `#[path = "..."]` names; "" without one."""
    for one in syntax.attributes(node):
        if one.type == "attribute_item" and syntax.leaves(one)[2:4] == ["path", "="]:
            return syntax.text(next(syntax.find(one, "string_content"), None))
    return ""
