"""The crate around a file: its edition and name, and what it takes from outside."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tree_sitter import Node

from reflexfix.rust import syntax, uses

EDITION = "2021"
EDITIONS = ("2015", "2018", "2021", "2024")
_KNOWN = ("std", "core", "alloc", "crate", "self", "super", "Self")


@dataclass(frozen=True)
class Crate:
    """What Cargo.toml says, where there is one."""

    edition: str = EDITION
    name: str = ""
    folder: Path = Path()
    dependencies: frozenset[str] = frozenset()
    """Names of the crates that it asks for, as code spells them."""
    targets: tuple[str, ...] = ()
    """Root files that Cargo.toml names, below its folder."""


def around(path: Path) -> Crate:
    """Read the nearest Cargo.toml above a file; 2021 and no name without one."""
    for folder in path.absolute().parents:
        if (folder / "Cargo.toml").is_file():
            return _read(folder)
    return Crate()


def _read(folder: Path) -> Crate:
    table = _table(folder / "Cargo.toml")
    package = table.get("package") or {}
    edition = package.get("edition", "2015")
    if isinstance(edition, dict):
        edition = _workspace_edition(folder)
    name = str(package.get("name", "")).replace("-", "_")
    edition = edition if edition in EDITIONS else EDITION
    targets = tuple(_targets(table))
    return Crate(edition, name, folder, frozenset(_dependencies(table)), targets)


def _targets(table: dict[str, Any]) -> Iterator[str]:
    yield str((table.get("lib") or {}).get("path", "src/lib.rs"))
    yield "src/main.rs"
    for kind in ("bin", "example", "test", "bench"):
        yield from (str(one["path"]) for one in table.get(kind) or [] if "path" in one)


def roots(path: Path, crate: Crate) -> list[Path]:
    """List the root files of crates that a file may belong to, the likeliest first.

    Without a Cargo.toml these are the `lib.rs` and `main.rs` beside the file and above.
    """
    if not crate.targets:
        above = list(path.parents)[:4]
        found = [folder / name for folder in above for name in ("lib.rs", "main.rs")]
    else:
        found = [crate.folder / name for name in crate.targets]
        for folder in ("src/bin", "examples", "tests", "benches"):
            found += sorted(crate.folder.glob(f"{folder}/*.rs"))
            found += sorted(crate.folder.glob(f"{folder}/*/main.rs"))
    return [file for file in dict.fromkeys(found) if file.is_file()]


def _dependencies(table: dict[str, Any]) -> Iterator[str]:
    parts = [table, *(table.get("target") or {}).values()]
    for part in parts:
        for name in ("dependencies", "dev-dependencies"):
            yield from (one.replace("-", "_") for one in part.get(name) or {})


def _workspace_edition(folder: Path) -> str:
    for above in (folder, *folder.parents):
        workspace = _table(above / "Cargo.toml").get("workspace") or {}
        if found := (workspace.get("package") or {}).get("edition"):
            return str(found)
    return EDITION


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def crates_used(root: Node, dependencies: frozenset[str]) -> tuple[str, ...]:
    """Name the crates from elsewhere that a file takes something from.

    A path without a `use` line counts where it begins with a crate that Cargo.toml asks for.
    """
    own = {syntax.name_of(n) for n in syntax.find(root, *syntax.ITEMS) if n.type != "impl_item"}
    own |= {leaf.name for leaf in uses.all_of(root) if len(leaf.path) > 1}
    found: dict[str, None] = {}
    for node in syntax.find(root, "use_declaration"):
        for leaf in uses.leaves_of(node):
            if leaf.path[0] not in (*_KNOWN, *own):
                found[leaf.path[0]] = None
    for node in syntax.find(root, "extern_crate_declaration"):
        name = syntax.text(node.child_by_field_name("name"))
        if name not in _KNOWN:
            found[name] = None
    tokens = syntax.leaves(root) if dependencies - own - found.keys() else []
    for before, name, after in zip(["", *tokens], tokens, tokens[1:], strict=False):
        if name in dependencies - own and after == "::" and before != "::":
            found[name] = None
    return tuple(found)
