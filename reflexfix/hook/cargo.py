"""A Rust project in the hook: what of it are tests, and what its manifests say."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from reflexfix.hook.tree import Tree

BUILD = "build"
"""The name under which the container tells that the tests do not compile."""


def is_test(path: str) -> bool:
    """Whether a file holds nothing but tests: such a file is never edited."""
    parts = Path(path).parts
    return path.endswith(".rs") and (
        any(part in ("tests", "benches") for part in parts[:-1])
        or parts[-1] in ("tests.rs", "test.rs")
    )


def is_project(tree: Tree) -> bool:
    return "Cargo.toml" in tree.files


def has_tests(tree: Tree) -> bool:
    return any(b"test]" in f.data for path, f in tree.files.items() if path.endswith(".rs"))


def edition_of(tree: Tree, path: str) -> str:
    """Read the edition of the nearest Cargo.toml above a file."""
    for folder in Path(path).parents:
        manifest = str(folder / "Cargo.toml")
        if manifest in tree.files:
            package = manifest_of(tree, manifest).get("package", {})
            edition = package.get("edition", "2015") if isinstance(package, dict) else "2015"
            return edition if isinstance(edition, str) else "2021"
    return "2021"


def manifest_of(tree: Tree, path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(tree.text(path))
    except tomllib.TOMLDecodeError:
        return {}  # cargo will say what is wrong with it
