"""Patches to be reviewed: kept beside the repository, taken over by a three-way merge."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any

from reflexfix import edit
from reflexfix.errors import UsageProblem
from reflexfix.hook.git import quoted

FOLDER = "patches"
KEPT = 50


@dataclass(frozen=True)
class Change:
    """One file of a patch: as it was tested, and as it should be."""

    path: str
    before: bytes
    after: bytes
    mode: str = "100644"


@dataclass(frozen=True)
class Patch:
    """Changes that belong together, and what they are worth."""

    changes: tuple[Change, ...]
    fixes: tuple[str, ...]
    left: tuple[str, ...] = ()
    """Tests that fail with it all the same."""
    verified: bool = True
    functions: tuple[str, ...] = ()

    @property
    def partial(self) -> bool:
        return bool(self.left) or not self.verified

    @property
    def id(self) -> str:
        digest = sha256()
        for change in self.changes:
            digest.update(os.fsencode(change.path) + b"\0" + change.before + b"\0" + change.after)
        return digest.hexdigest()[:8]

    @property
    def text(self) -> bytes:
        """The patch as `git apply` and `git apply --3way` take it."""
        return b"".join(map(file_diff, self.changes))


def file_diff(change: Change) -> bytes:
    """Give the diff of one file with git's own header."""
    old, new = (blob_id(data) for data in (change.before, change.after))
    names = [quoted(f"{side}/{change.path}") for side in "ab"]
    end = "\t" if " " in change.path else ""
    head = [
        f"diff --git {names[0]} {names[1]}",
        f"index {old}..{new} {change.mode}",
        f"--- {names[0]}{end}",
        f"+++ {names[1]}{end}",
    ]
    body = edit.diff(change.before, change.after, "x").split("\n", 2)[2]
    return ("\n".join(head) + "\n" + body).encode("utf-8", "surrogateescape")


def blob_id(data: bytes) -> str:
    """Give the name under which git keeps these bytes."""
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


# ---------------------------------------------------------------- keeping


def save(home: Path, patch: Patch) -> Path:
    """Keep a patch, whole or not at all; the oldest are forgotten. Raises UsageProblem."""
    folder = home / FOLDER
    path = folder / f"{patch.id}.patch"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in ((f"{patch.id}.json", as_json(patch)), (path.name, patch.text)):
            temporary = folder / f".{name}"
            temporary.write_bytes(data)
            os.replace(temporary, folder / name)
    except OSError as error:
        raise UsageProblem(f"{folder} cannot be written: {error.strerror}.") from None
    forget_old(folder)
    return path


def as_json(patch: Patch) -> bytes:
    record = asdict(patch)
    for change in record["changes"]:
        change |= {k: base64.b64encode(change[k]).decode() for k in ("before", "after")}
    return json.dumps(record, indent=1).encode()


def forget_old(folder: Path) -> None:
    every = sorted(folder.glob("*.patch"), key=lambda path: path.stat().st_mtime)
    for path in every[:-KEPT]:
        path.unlink(missing_ok=True)
        path.with_suffix(".json").unlink(missing_ok=True)


def load(home: Path, wanted: str | None) -> Patch:
    """Find a patch by the beginning of its id, or the newest. Raises UsageProblem."""
    folder = home / FOLDER
    every = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
    found = [path for path in every if path.stem.startswith(wanted)] if wanted else every[-1:]
    if len(found) != 1:
        what = f"{len(found) or 'no'} patch{'es' if len(found) > 1 else ''} {wanted or ''}".rstrip()
        recent = ", ".join(path.stem for path in every[-5:])
        raise UsageProblem(
            f"There is {what} in {folder}.", hint=f"the newest are {recent}" if recent else ""
        )
    return from_json(json.loads(found[0].read_text("utf-8")))


def from_json(record: dict[str, Any]) -> Patch:
    changes = [
        Change(c["path"], base64.b64decode(c["before"]), base64.b64decode(c["after"]), c["mode"])
        for c in record.pop("changes")
    ]
    lists: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
    return Patch(changes=tuple(changes), **lists)


# ---------------------------------------------------------------- taking over


def apply(patch: Patch, top: Path, home: Path) -> list[Path]:
    """Merge a patch into the work tree, all of it or nothing; index and commits stay as they are.

    Each file is merged three ways: what was tested, what should be, what lies there now. Raises
    UsageProblem, with a diff, where the same lines were changed meanwhile.
    """
    merged = [(change, *merge(change, top / change.path)) for change in patch.changes]
    for change, now, after in merged:
        edit.write(top / change.path, now, after, home)
    return [top / change.path for change, now, after in merged if now != after]


def merge(change: Change, path: Path) -> tuple[bytes, bytes]:
    """Give a file as it lies there, and as it is with the change. Raises UsageProblem."""
    try:
        now = path.read_bytes()
    except OSError as error:
        raise UsageProblem(f"{path} cannot be read: {error.strerror}.") from None
    before, after = (as_line_endings_of(now, data) for data in (change.before, change.after))
    if now in (before, after):
        return now, after
    merged = three_way(now, before, after)
    if merged is None:
        raise UsageProblem(
            f"{path} was changed where the patch changes it; nothing was applied.\n"
            + edit.diff(before, now, change.path).rstrip(),
            hint="take it over by hand, or undo your change and run `reflexfix apply` again",
        )
    return now, merged


def as_line_endings_of(now: bytes, data: bytes) -> bytes:
    """Follow a checkout that turns line endings round."""
    if b"\r\n" in now and b"\r\n" not in data:
        return data.replace(b"\n", b"\r\n")
    return data


def three_way(now: bytes, before: bytes, after: bytes) -> bytes | None:
    """Merge as git does; None where both sides changed the same lines."""
    with tempfile.TemporaryDirectory(prefix="reflexfix-merge-") as folder:
        paths = [Path(folder, name) for name in ("now", "before", "after")]
        for path, data in zip(paths, (now, before, after), strict=True):
            path.write_bytes(data)
        done = subprocess.run(
            ["git", "merge-file", "-p", "-q", *map(str, paths)], capture_output=True
        )
    return done.stdout if done.returncode == 0 else None


def made(
    changes: Iterable[Change],
    fixes: tuple[str, ...],
    left: tuple[str, ...],
    verified: bool,
    functions: tuple[str, ...],
) -> Patch | None:
    """Make a patch, if anything differs."""
    real = tuple(change for change in changes if change.before != change.after)
    return Patch(real, fixes, left, verified, functions) if real else None
