"""Write a user's file so that nothing can be lost, and take the last write back."""

from __future__ import annotations

import base64
import contextlib
import difflib
import json
import os
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from reflexfix.errors import UsageProblem

JOURNAL = "journal.jsonl"
CONTEXT_LINES = 2


def diff(before: bytes, after: bytes, name: str) -> str:
    """Give a unified diff of two versions of a file, as `git apply` takes it."""
    lines = difflib.unified_diff(
        lines_of(before), lines_of(after), f"a/{name}", f"b/{name}", lineterm="\n"
    )
    return "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines
    )


def lines_of(data: bytes) -> list[str]:
    """Cut into lines that keep their endings; bytes that are no UTF-8 survive the way back."""
    return [line.decode("utf-8", "surrogateescape") for line in data.splitlines(keepends=True)]


def write(path: Path, before: bytes, after: bytes, home: Path) -> None:
    """Replace a file's content at once, journalled first.

    A link stays a link; mode and owner stay. Raises UsageProblem when the file changed since it
    was read, or the disk is full; the file is then as it was.
    """
    real = Path(os.path.realpath(path))
    try:
        now = real.read_bytes()
    except OSError as error:
        raise UsageProblem(f"{path} cannot be read: {error.strerror}.") from None
    if now != before:
        raise UsageProblem(
            f"{path} changed while the run was going on; it was not written.",
            hint="run again, or take the result from `reflexfix show`",
        )
    if after != before:
        note(home, real, before, after)
        replace(real, after)


def replace(path: Path, data: bytes) -> None:
    """Write beside the file, then move over it: it is whole at every moment."""
    temporary = ""
    try:
        status = path.stat()
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "Permission denied")
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), status.st_mode & 0o7777)
            with contextlib.suppress(PermissionError):
                os.fchown(file.fileno(), status.st_uid, status.st_gid)
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise UsageProblem(f"{path} cannot be written: {error.strerror}.") from None


@dataclass(frozen=True)
class Entry:
    """One journalled write."""

    path: Path
    before: bytes
    after: bytes
    time: str
    undone: bool = False


def note(home: Path, path: Path, before: bytes, after: bytes, undone: bool = False) -> None:
    """Append a write to the journal. Raises UsageProblem when that cannot be done."""
    record = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "path": str(path),
        "before": base64.b64encode(before).decode(),
        "after": base64.b64encode(after).decode(),
        "undone": undone,
    }
    try:
        home.mkdir(parents=True, exist_ok=True)
        with (home / JOURNAL).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UsageProblem(f"{home} cannot be written: {error.strerror}.") from None


def entries(home: Path) -> list[Entry]:
    """Read the journal; a line that a crash cut short is passed over."""
    try:
        lines = (home / JOURNAL).read_text("utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        with contextlib.suppress(ValueError, KeyError):
            record = json.loads(line)
            before, after = (base64.b64decode(record[k]) for k in ("before", "after"))
            undone = bool(record["undone"])
            found.append(Entry(Path(record["path"]), before, after, record["time"], undone))
    return found


def last_write(home: Path) -> Entry:
    """Find the last write that was not taken back. Raises UsageProblem when there is none."""
    taken_back = 0
    for entry in reversed(entries(home)):
        if entry.undone:
            taken_back += 1
        elif taken_back:
            taken_back -= 1
        else:
            return entry
    raise UsageProblem(f"There is no write to undo in {home}.")


def undo(home: Path) -> Entry:
    """Take the last write back where what it wrote is unchanged; the rest of the file may differ.

    Raises UsageProblem, with a diff, where it was changed since.
    """
    entry = last_write(home)
    try:
        now = entry.path.read_bytes()
    except OSError as error:
        raise UsageProblem(f"{entry.path} cannot be read: {error.strerror}.") from None
    restored = taken_back(entry, now)
    if restored is None:
        raise UsageProblem(
            f"{entry.path} was changed where it was written; nothing was undone.\n"
            + diff(entry.after, now, entry.path.name).rstrip()
        )
    note(home, entry.path, now, restored, undone=True)
    replace(entry.path, restored)
    return entry


def taken_back(entry: Entry, now: bytes) -> bytes | None:
    """Reverse a write in a file that may have changed elsewhere; None where the span changed."""
    if now in (entry.after, entry.before):  # the latter when the disk was full after the journal
        return entry.before
    old, new, current = lines_of(entry.before), lines_of(entry.after), lines_of(now)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    hunks = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    for _, old_start, old_end, new_start, new_end in reversed(hunks):
        first = max(0, new_start - CONTEXT_LINES)
        last = min(len(new), new_end + CONTEXT_LINES)
        places = positions(current, new[first:last])
        if len(places) != 1:
            return None
        start = places[0] + new_start - first
        current[start : start + new_end - new_start] = old[old_start:old_end]
    return "".join(current).encode("utf-8", "surrogateescape")


def positions(lines: list[str], wanted: list[str]) -> list[int]:
    last = len(lines) - len(wanted)
    return [n for n in range(last + 1) if lines[n : n + len(wanted)] == wanted]
