"""Git, asked in its own plumbing: nothing here changes index, work tree or objects."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from reflexfix.errors import UsageProblem

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""What a first commit is compared with."""
_HUNK = re.compile(rb"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


@dataclass(frozen=True)
class Repository:
    """A repository with a work tree; `index` is the one that git names, if it names one."""

    top: Path
    index: str = ""

    def ask(self, *arguments: str, given: bytes = b"", may_fail: bool = False) -> bytes:
        """Run one git command, and give what it prints. Raises UsageProblem."""
        environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
        if self.index:
            environment["GIT_INDEX_FILE"] = self.index
        return run_git(self.top, environment, *arguments, given=given, may_fail=may_fail)

    def contents(self, objects: Iterable[str]) -> dict[str, bytes]:
        """Read many blobs with one process."""
        wanted = list(dict.fromkeys(objects))
        given = "".join(f"{one}\n" for one in wanted).encode()
        return read_batch(self.ask("cat-file", "--batch", given=given)) if wanted else {}

    def has_head(self) -> bool:
        return bool(self.ask("rev-parse", "--verify", "--quiet", "HEAD", may_fail=True))

    def changed_lines(self, cached: bool = True) -> dict[str, list[tuple[int, int]]]:
        """Give the lines of each file, as staged or as it lies there, that differ from HEAD."""
        against = "HEAD" if self.has_head() else EMPTY_TREE
        options = [
            *(["--cached"] if cached else []),
            "-p",
            "-U0",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
        ]
        options += ["--no-renames", "--src-prefix=a/", "--dst-prefix=b/"]
        return changed_in(self.ask("-c", "core.quotePath=true", "diff-index", *options, against))

    def folder(self, name: str) -> Path:
        """Give a folder of git's own, wherever this repository keeps it."""
        path = self.ask("rev-parse", "--git-path", name).decode("utf-8", "surrogateescape")
        return self.top / path.rstrip("\n")


def run_git(
    folder: Path,
    environment: Mapping[str, str],
    *arguments: str,
    given: bytes = b"",
    may_fail: bool = False,
) -> bytes:
    command = ["git", *arguments]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, input=given, capture_output=True
        )
    except FileNotFoundError:
        raise UsageProblem("git is not installed.", hint="install git") from None
    if done.returncode and not may_fail:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason"]
        raise UsageProblem(f"git {arguments[0]} failed: {said[-1][:300]}")
    return b"" if done.returncode else done.stdout


def find(start: Path) -> Repository | None:
    """Find the repository that a folder belongs to, and the index that git names."""
    environment = {**os.environ, "LC_ALL": "C"}
    top = run_git(start, environment, "rev-parse", "--show-toplevel", may_fail=True)
    if not top.strip():
        return None
    index = os.environ.get("GIT_INDEX_FILE", "")
    path = Path(os.fsdecode(top.rstrip(b"\n")))
    return Repository(path, str(start.resolve() / index) if index else "")


def read_batch(printed: bytes) -> dict[str, bytes]:
    """Read what `git cat-file --batch` printed: a line "object type size", then the bytes."""
    found: dict[str, bytes] = {}
    at = 0
    while at < len(printed):
        end = printed.index(b"\n", at)
        words = printed[at:end].split()
        if len(words) != 3:
            raise UsageProblem(f"git has no object {words[0].decode('ascii', 'replace')}.")
        size = int(words[2])
        found[words[0].decode("ascii")] = printed[end + 1 : end + 1 + size]
        at = end + size + 2
    return found


def changed_in(diff: bytes) -> dict[str, list[tuple[int, int]]]:
    """Read the line numbers of the new side out of a diff without context."""
    found: dict[str, list[tuple[int, int]]] = {}
    for part in re.split(rb"^diff --git ", diff, flags=re.MULTILINE)[1:]:
        named = re.search(rb"^\+\+\+ (.+?)\t?$", part, re.MULTILINE)
        name = unquoted(named.group(1)) if named else ""
        if name.startswith("b/"):
            hunks = ((int(first), int(count or b"1")) for first, count in _HUNK.findall(part))
            found[name[2:]] = [(first, first + max(count, 1) - 1) for first, count in hunks]
    return found


def unquoted(name: bytes) -> str:
    """Take git's quoting off a path."""
    if name.startswith(b'"') and name.endswith(b'"'):
        name = re.sub(
            rb"\\([0-7]{3}|.)",
            lambda m: bytes([int(m[1], 8)]) if len(m[1]) == 3 else _ESCAPES.get(m[1], m[1]),
            name[1:-1],
        )
    return os.fsdecode(name)


def quoted(name: str) -> str:
    """Quote a path as git does in a patch."""
    raw = os.fsencode(name)
    if all(32 <= byte < 127 and byte not in b'"\\' for byte in raw):
        return name
    known = {code: f"\\{sign.decode()}" for sign, code in ((k, v[0]) for k, v in _ESCAPES.items())}
    known |= {34: '\\"', 92: "\\\\"}
    plain = (known.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in raw)
    return '"' + "".join(plain) + '"'


_ESCAPES = {
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}
