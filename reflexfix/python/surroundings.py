"""What a file needs to be imported: its place in a package, its neighbours, its packages."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reflexfix.python import syntax

MAX_FILES = 400
MAX_BYTES = 8 * 2**20


@dataclass(frozen=True)
class Surroundings:
    """The folder that a file is imported from, and what has to be there beside it."""

    root: Path
    module: str
    """Dotted name of the file below `root`."""
    files: dict[str, bytes] = field(default_factory=dict)
    """Modules that the file reaches, by path below `root`; not the file itself."""
    packages: tuple[str, ...] = ()
    """Top-level modules from elsewhere that it needs."""


def look_around(path: Path, tree: ast.Module) -> Surroundings:
    """Find the root of the file's package, and follow its imports to the modules below it."""
    root = import_root(path)
    relative = path.resolve().relative_to(root)
    module = module_name(relative)
    walk = _Walk(root)
    walk.follow(tree, module, is_package=path.name == "__init__.py")
    files = {name: data for name, data in walk.files.items() if name != relative.as_posix()}
    return Surroundings(root, module, files, tuple(sorted(walk.packages)))


def import_root(path: Path) -> Path:
    """Give the folder above the outermost package that holds the file."""
    folder = path.resolve().parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder


def module_name(relative: Path) -> str:
    parts = list(relative.with_suffix("").parts)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)


class _Walk:
    """Follows imports from module to module, as long as they stay below the root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[str, bytes] = {}
        self.packages: set[str] = set()
        self.size = 0

    def follow(self, tree: ast.Module, module: str, is_package: bool) -> None:
        package = module if is_package else module.rpartition(".")[0]
        self._parents(package)
        for name in imported(tree, package):
            if not self._take(name):
                top = name.split(".")[0]
                if top not in sys.stdlib_module_names and not self._is_here(top):
                    self.packages.add(top)

    def _is_here(self, top: str) -> bool:
        return (self.root / f"{top}.py").is_file() or (self.root / top).is_dir()

    def _parents(self, package: str) -> None:
        parts = package.split(".") if package else []
        for end in range(1, len(parts) + 1):
            self._add(self.root.joinpath(*parts[:end], "__init__.py"))

    def _take(self, name: str) -> bool:
        """Add the module of this name if it lies below the root, with all that it imports."""
        parts = name.split(".")
        self._parents(".".join(parts[:-1]))
        for path in (
            self.root.joinpath(*parts).with_suffix(".py"),
            self.root.joinpath(*parts, "__init__.py"),
        ):
            if path.is_file():
                self._add(path)
                return True
        return self.root.joinpath(*parts).is_dir() and bool(parts[0])

    def _add(self, path: Path) -> None:
        if not path.is_file():
            return
        name = path.relative_to(self.root).as_posix()
        if name in self.files or len(self.files) >= MAX_FILES:
            return
        data = path.read_bytes()
        self.size += len(data)
        if self.size > MAX_BYTES:
            return
        self.files[name] = data
        tree = syntax.module(data.decode("utf-8", "replace"))
        if tree is not None:
            relative = path.relative_to(self.root)
            self.follow(tree, module_name(relative), path.name == "__init__.py")


def imported(tree: ast.Module, package: str) -> Iterator[str]:
    """List the dotted names that a module imports when it is loaded, and from which it imports.

    Imports under `try`, `if TYPE_CHECKING` and inside functions may be missing without harm.
    """
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            if base:
                yield base
            if node.level or base:
                yield from _submodules(node, base)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _submodules(node: ast.ImportFrom, base: str) -> Iterator[str]:
    """`from package import name` may name a module of that package."""
    if base.split(".")[0] in sys.stdlib_module_names:
        return
    for alias in node.names:
        if alias.name != "*":
            yield f"{base}.{alias.name}" if base else alias.name
