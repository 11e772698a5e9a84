"""Rows of a benchmark's file, one after the other, each with its place."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reflexfix.benchmarks.problem import BadRow
from reflexfix.errors import UsageProblem

LINE_BYTES = 64 * 2**20
"""The longest line that is taken."""
MAX_JSON_BYTES = 512 * 2**20


class NoProblem(ValueError):
    """A row that is no problem; the words say why."""


@dataclass(frozen=True)
class Row:
    """One row and where it stands."""

    file: str
    line: int
    fields: dict[str, Any]

    def text(self, name: str, default: str | None = None) -> str:
        """Give a field of text, its line ends as \\n. Raises NoProblem when it is none."""
        value = self.fields.get(name, default)
        if not isinstance(value, str):
            raise NoProblem(f"{name} is no text" if name in self.fields else f"{name} is missing")
        if "\0" in value or not is_unicode(value):
            raise NoProblem(f"{name} holds characters that no file can have")
        return value.replace("\r\n", "\n").replace("\r", "\n")

    def texts(self, name: str) -> list[str]:
        """Give a list of texts; one text counts as a list of one. Raises NoProblem."""
        value = self.fields.get(name, [])
        some = [value] if isinstance(value, str) else value
        if not isinstance(some, list) or not all(isinstance(one, str) for one in some):
            raise NoProblem(f"{name} is no list of texts")
        return [Row(self.file, self.line, {name: one}).text(name) for one in some]

    def bad(self, why: str) -> BadRow:
        return BadRow(self.file, self.line, why)


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8; half a surrogate pair cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def rows(path: Path) -> Iterator[Row | BadRow]:
    """Give the rows of a file: .jsonl and .jsonl.gz line by line, .json as one list.

    Raises UsageProblem with file and line for a file that is broken.
    """
    if not path.is_file():
        raise UsageProblem(f"{path} does not exist or is no file.")
    name = path.name.removesuffix(".gz")
    if name.endswith(".json"):
        return _listed(path)
    return _lines(path)


def _opened(path: Path) -> io.BufferedIOBase:
    try:
        return gzip.open(path) if path.suffix == ".gz" else path.open("rb")
    except OSError as error:
        raise UsageProblem(f"{path} cannot be read: {error.strerror}.") from None


def _lines(path: Path) -> Iterator[Row | BadRow]:
    """Read a file line by line, never more of it than one line."""
    number = 0
    with _opened(path) as file:
        while True:
            number += 1
            try:
                line = file.readline(LINE_BYTES)
            except (OSError, EOFError, zlib.error) as error:
                raise UsageProblem(f"{path}:{number}: this file is damaged: {error}") from None
            if not line:
                return
            if len(line) == LINE_BYTES:
                raise UsageProblem(f"{path}:{number}: a line of more than {LINE_BYTES:,} bytes.")
            if line.strip() not in (b"", b"\xef\xbb\xbf"):
                yield _row(path, number, line)


def _row(path: Path, number: int, line: bytes) -> Row | BadRow:
    try:
        found = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except (ValueError, RecursionError) as error:
        return BadRow(str(path), number, f"is not JSON: {error}")
    return _as_row(path, number, found)


def _as_row(path: Path, number: int, found: Any) -> Row | BadRow:
    if not isinstance(found, dict):
        return BadRow(str(path), number, "is no object with fields")
    return Row(str(path), number, found)


def _listed(path: Path) -> Iterator[Row | BadRow]:
    """Read a JSON list as a whole."""
    try:
        with _opened(path) as file:
            data = file.read(MAX_JSON_BYTES)
        found = json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise UsageProblem(f"{path}:{error.lineno}: this is not JSON: {error.msg}") from None
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise UsageProblem(f"{path}:1: this file is damaged: {error}") from None
    if not isinstance(found, list):
        raise UsageProblem(
            f"{path}:1: this is no list of rows.", hint="one object a line goes into a .jsonl file"
        )
    for number, one in enumerate(found, 1):
        yield _as_row(path, number, one)
