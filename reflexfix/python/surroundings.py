"""What a file needs to be imported: its place in a package, its neighbours, its packages."""

from __future__ import annotations

import ast
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reflexfix.errors import UsageProblem
from reflexfix.python import syntax
from reflexfix.source import read_python

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


def alone(path: Path, tree: ast.Module) -> Surroundings:
    """Say what a text needs that has no folder around it: only packages."""
    tops = {name.split(".")[0] for name in imported(tree.body, "")}
    packages = tuple(sorted(tops - set(sys.stdlib_module_names)))
    return Surroundings(path.parent, path.stem, packages=packages)


def import_root(path: Path) -> Path:
    """Give the folder above the outermost package that holds the file."""
    folder = path.resolve().parent
    while is_file(folder / "__init__.py") and folder.parent != folder:
        folder = folder.parent
    return folder


def module_name(relative: Path) -> str:
    parts = list(relative.with_suffix("").parts)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)


def is_file(path: Path) -> bool:
    """Say whether there is a file; a name that no file can have, or a locked folder, has none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


class _Walk:
    """Follows imports from module to module, as long as they stay below the root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[str, bytes] = {}
        self.packages: set[str] = set()
        self.size = 0
        self.waiting: deque[tuple[ast.Module, str, bool]] = deque()

    def follow(self, tree: ast.Module, module: str, is_package: bool) -> None:
        """Take in all that a module reaches."""
        self.waiting.append((tree, module, is_package))
        while self.waiting:
            self._look_at(*self.waiting.popleft())

    def _look_at(self, tree: ast.Module, module: str, is_package: bool) -> None:
        package = module if is_package else module.rpartition(".")[0]
        self._parents(package)
        needed = set(imported(tree.body, package))
        for name in imported(every_import(tree), package):
            if not self._take(name) and name in needed:
                top = name.split(".")[0]
                if top not in sys.stdlib_module_names and not self._is_here(top):
                    self.packages.add(top)

    def _is_here(self, top: str) -> bool:
        return is_file(self.root / f"{top}.py") or is_folder(self.root / top)

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
            if is_file(path):
                self._add(path)
                return True
        return is_folder(self.root.joinpath(*parts))

    def _add(self, path: Path) -> None:
        relative = path.relative_to(self.root)
        name = relative.as_posix()
        if name in self.files or len(self.files) >= MAX_FILES or not is_file(path):
            return
        data = contents(path)
        if data is None or self.size + len(data) > MAX_BYTES:
            return
        self.size += len(data)
        self.files[name] = data
        tree = parsed(data, name)
        if tree is not None:
            self.waiting.append((tree, module_name(relative), path.name == "__init__.py"))


def contents(path: Path) -> bytes | None:
    """Give the bytes of a file, or None where it may not be read or is larger than all may be."""
    try:
        return path.read_bytes() if path.stat().st_size <= MAX_BYTES else None
    except OSError:
        return None


def parsed(data: bytes, name: str) -> ast.Module | None:
    """Give the tree of a neighbour, whatever its encoding; None where it is not Python."""
    try:
        return syntax.module(read_python(data, name).text)
    except UsageProblem:
        return None


def every_import(tree: ast.Module) -> Iterator[ast.stmt]:
    """List the imports of a module at any depth: what lies beside it comes along anyway.

    Of packages from elsewhere, only those that are imported when the module is loaded are needed:
    imports under `try`, `if TYPE_CHECKING` and inside functions may be missing without harm.
    """
    return (n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom))


def imported(nodes: Iterator[ast.stmt] | list[ast.stmt], package: str) -> Iterator[str]:
    """List the dotted names that these statements import, and from which they import."""
    for node in nodes:
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
    parts = parts[: max(0, len(parts) - node.level + 1)]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _submodules(node: ast.ImportFrom, base: str) -> Iterator[str]:
    """`from package import name` may name a module of that package."""
    if base.split(".")[0] in sys.stdlib_module_names:
        return
    for alias in node.names:
        if alias.name != "*":
            yield f"{base}.{alias.name}" if base else alias.name
