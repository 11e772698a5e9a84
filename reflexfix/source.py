"""The text of a user's file, with every byte of it accounted for."""

from __future__ import annotations

import io
import re
import tokenize
import warnings
from dataclasses import dataclass
from functools import cached_property

from reflexfix.errors import UsageProblem

MAX_BYTES = 2_000_000
"""Larger files are refused: nobody keeps one function in them."""

_BREAK = re.compile(r"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Source:
    """A decoded file that can be encoded back to exactly the bytes that were read."""

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each line begins, in characters, with \\n, \\r\\n and \\r as Python reads them."""
        return (0, *(m.end() for m in _BREAK.finditer(self.text)))

    @cached_property
    def newline(self) -> str:
        """The line ending that the file uses most, the first of them on a tie."""
        found = _BREAK.findall(self.text)
        return max(dict.fromkeys(found), key=found.count) if found else "\n"

    def line(self, number: int) -> str:
        """Give one line, counted from 1, without its ending."""
        start = self.starts[number - 1]
        end = self.starts[number] if number < len(self.starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def offset(self, line: int, utf8_column: int) -> int:
        """Turn a line and a column in UTF-8 bytes, as `ast` counts, into a character offset."""
        text = self.line(line)
        if text.isascii():
            return self.starts[line - 1] + utf8_column
        return self.starts[line - 1] + len(text.encode("utf-8")[:utf8_column].decode("utf-8"))

    def after_line(self, line: int) -> int:
        """Give the offset behind a line and its ending."""
        return self.starts[line] if line < len(self.starts) else len(self.text)

    def with_newlines(self, text: str) -> str:
        """Give new text the line endings of this file."""
        return _BREAK.sub(lambda _: self.newline, text)

    def encode(self, text: str) -> bytes:
        """Encode text as this file is. Raises UsageProblem where a character does not fit."""
        try:
            return self.bom + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            char = text[error.start : error.start + 1]
            raise UsageProblem(
                f"The answer holds {char!r}, which {self.encoding} cannot write."
            ) from None


def read_python(data: bytes, name: str) -> Source:
    """Decode a Python file by its BOM and PEP 263 line.

    Raises UsageProblem for a file that is too large, not text, or would not survive the way back.
    """
    refuse_size(len(data), name)
    bom = _BOM if data.startswith(_BOM) else b""
    try:
        lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        encoding, _ = tokenize.detect_encoding(io.BytesIO(lines).readline)
        encoding = "utf-8" if bom else encoding
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some encodings warn of escapes in the text
            text = data[len(bom) :].decode(encoding)
            unchanged = bom + text.encode(encoding) == data
    except (SyntaxError, ValueError, LookupError) as error:
        raise UsageProblem(f"{name} cannot be decoded: {error}") from None
    if "\0" in text or not unchanged:
        raise UsageProblem(f"{name} cannot be decoded and written back unchanged as {encoding}.")
    return Source(text, encoding, bom)


def refuse_size(size: int, name: str) -> None:
    if size > MAX_BYTES:
        raise UsageProblem(f"{name} has {size:,} bytes; at most {MAX_BYTES:,} are taken.")
