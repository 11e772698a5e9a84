"""A project's files as they are to be tested: those that are staged, or those in a folder."""

from __future__ import annotations

import base64
import fnmatch
import functools
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reflexfix.errors import UsageProblem
from reflexfix.hook.git import Repository, read_batch, run_git

LARGEST_MB = 5
"""A binary file above this size is left out, in megabytes."""
MOST_MB = 500
"""More than this is no project."""
LINK, PROGRAM, PLAIN, SUBMODULE = "120000", "100755", "100644", "160000"
NOT_OURS = (".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", "node_modules", "__pycache__",
            ".mypy_cache", ".ruff_cache", ".pytest_cache", ".reflexfix")  # fmt: skip
"""Folders that are passed over where no git says what belongs to the project."""


Lines = dict[str, list[tuple[int, int]]]


@dataclass(frozen=True)
class File:
    """One file: its mode as git writes it, its bytes (of a link, where it leads), its blob."""

    mode: str
    data: bytes
    blob: str = ""
    """The id of git's object with these bytes; "" for one that git does not keep."""


@dataclass(frozen=True)
class Tree:
    """Files by path below the project's folder, and what is not among them."""

    files: dict[str, File]
    left_out: tuple[str, ...] = ()
    compare: Callable[[], Lines] = dict
    """Gives for each file that the commit changes the lines that it does, first and last."""
    staged: bool = False

    @property
    def changed(self) -> Lines:
        """What the commit changes: asked of git only when it matters, for it can take a while."""
        return self.compare()

    def read(self, path: str) -> bytes | None:
        found = self.files.get(path)
        return found.data if found is not None and found.mode != LINK else None

    def text(self, path: str) -> str:
        return (self.read(path) or b"").decode("utf-8", "replace")

    def has_folder(self, name: str) -> bool:
        return any(path.startswith(name + "/") for path in self.files)

    @property
    def size(self) -> int:
        return sum(len(file.data) for file in self.files.values())

    def with_file(self, path: str, data: bytes) -> Tree:
        """Give the tree with one file's content replaced."""
        return replace(self, files={**self.files, path: replace(self.files[path], data=data)})

    def with_new_file(self, path: str, data: bytes) -> Tree:
        """Give the tree with one file more, unless there is one of that name."""
        return replace(self, files={path: File(PLAIN, data), **self.files})

    def packed(self) -> dict[str, Any]:
        """Give the tree as an order carries it."""
        order = [[path, file.mode, len(file.data)] for path, file in self.files.items()]
        data = zlib.compress(b"".join(file.data for file in self.files.values()), 1)
        return {"tree": order, "pack": base64.b64encode(data).decode("ascii")}


# ---------------------------------------------------------------- what is staged


def declaring(repository: Repository) -> Tree:
    """Read only what says how a staged project is tested: a first, quick look."""
    wanted = ["--", "pyproject.toml", ":(glob)*requirements*.txt", ":(glob)requirements/*.txt",
              ":(glob)**/Cargo.toml", ":(glob)**/Cargo.lock"]  # fmt: skip
    entries = dict(in_index(repository.ask("ls-files", "-s", "-z", *wanted)))
    blobs = repository.contents(one.blob for one in entries.values())
    return Tree({path: replace(one, data=blobs[one.blob]) for path, one in entries.items()})


def staged(repository: Repository, largest_mb: float = LARGEST_MB) -> Tree:
    """Read the tree out of the index that git names. Raises UsageProblem in a half-done merge."""
    entries = list(in_index(repository.ask("ls-files", "-s", "-z")))
    blobs = repository.contents(one.blob for _, one in entries if one.mode != SUBMODULE)
    files = {path: replace(one, data=blobs[one.blob]) for path, one in entries if one.blob in blobs}
    links = [(path, one.blob) for path, one in entries if one.mode == SUBMODULE]
    left_out = []
    for path, commit in links:
        inner = submodule(repository.top / path, commit)
        files |= {f"{path}/{name}": file for name, file in inner.items()}
        left_out += [] if inner else [f"{path} (a submodule that is not checked out)"]
    kept, large = without_large(files, largest_mb)
    compare = functools.cache(repository.changed_lines)
    return Tree(kept, (*left_out, *large), compare, staged=True)


def in_index(printed: bytes) -> Iterator[tuple[str, File]]:
    """Read `git ls-files -s -z`: "mode object stage<tab>path"."""
    for line in filter(None, printed.split(b"\0")):
        head, _, path = line.partition(b"\t")
        mode, blob, stage = head.decode("ascii").split()
        if stage != "0":
            raise UsageProblem(
                f"{os.fsdecode(path)} is not merged yet.", hint="resolve it and `git add` it"
            )
        yield os.fsdecode(path), File(mode, b"", blob)


def submodule(folder: Path, commit: str) -> dict[str, File]:
    """Read a submodule at the commit that is staged; empty where it is not checked out."""
    if not (folder / ".git").exists():
        return {}
    inside = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    printed = run_git(folder, inside, "ls-tree", "-r", "-z", "--full-tree", commit, may_fail=True)
    entries: dict[str, tuple[str, str]] = {}
    for line in filter(None, printed.split(b"\0")):
        head, _, path = line.partition(b"\t")
        mode, kind, blob = head.decode("ascii").split()
        if kind == "blob":
            entries[os.fsdecode(path)] = (mode, blob)
    given = "".join(f"{blob}\n" for _, blob in entries.values()).encode()
    blobs = read_batch(run_git(folder, inside, "cat-file", "--batch", given=given))
    return {path: File(mode, blobs[blob]) for path, (mode, blob) in entries.items()}


def without_large(files: dict[str, File], most_mb: float) -> tuple[dict[str, File], list[str]]:
    """Leave out binary files above a size, and name them."""
    large = {
        path: len(file.data)
        for path, file in files.items()
        if len(file.data) > most_mb * 2**20 and b"\0" in file.data[:8000]
    }
    kept = {path: file for path, file in files.items() if path not in large}
    return kept, [f"{path} (binary, {size / 2**20:.1f} MB)" for path, size in large.items()]


# ---------------------------------------------------------------- what lies in a folder


def on_disk(folder: Path, repository: Repository | None, largest_mb: float = LARGEST_MB) -> Tree:
    """Read the work tree: all that git does not ignore; without git, all but hidden folders."""
    compare: Callable[[], Lines] = dict
    if repository is None:
        paths = list(walk(folder))
    else:
        listed = repository.ask("ls-files", "-c", "-o", "--exclude-standard", "--deduplicate", "-z")
        paths = [os.fsdecode(path) for path in listed.split(b"\0") if path]
        compare = functools.cache(functools.partial(repository.changed_lines, cached=False))
    files: dict[str, File] = {}
    size = 0
    for path in paths:
        if (file := from_disk(folder / path)) is not None:
            files[path], size = file, size + len(file.data)
        refuse_size(size, folder)
    kept, large = without_large(files, largest_mb)
    return Tree(kept, tuple(large), compare)


def refuse_size(size: int, folder: Path) -> None:
    if size > MOST_MB * 2**20:
        raise UsageProblem(
            f"{folder} holds more than {MOST_MB} MB.", hint="run in the folder of one project"
        )


def walk(folder: Path) -> Iterator[str]:
    for where, folders, files in os.walk(folder):
        built = {"target"} if "Cargo.toml" in files else set[str]()
        passed_over = built.union(NOT_OURS)
        folders[:] = sorted(f for f in folders if f not in passed_over and not f.startswith("."))
        yield from (os.path.relpath(os.path.join(where, name), folder) for name in sorted(files))


def from_disk(path: Path) -> File | None:
    """Read one file of the work tree; None for what is gone, a folder, or no file at all."""
    try:
        if path.is_symlink():
            return File(LINK, os.fsencode(os.readlink(path)))
        if not path.is_file():
            return None
        mode = PROGRAM if os.access(path, os.X_OK) else PLAIN
        return File(mode, path.read_bytes())
    except OSError as error:
        raise UsageProblem(f"{path} cannot be read: {error.strerror}.") from None


def excluded(tree: Tree, patterns: Iterable[str]) -> Tree:
    """Leave out what the project's settings name."""
    wanted = list(patterns)
    out = {p for p in tree.files if any(fnmatch.fnmatch(p, pattern) for pattern in wanted)}
    kept = {path: file for path, file in tree.files.items() if path not in out}
    said = [f"{len(out)} files by [tool.reflexfix.hook] exclude"] if out else []
    return replace(tree, files=kept, left_out=(*tree.left_out, *said))
