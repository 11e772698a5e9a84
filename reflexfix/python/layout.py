"""How code is laid out: blocks are indented anew, the inside of strings stays as it is."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field

from reflexfix.source import Source

TAB = 4
"""How many columns a tab stands for where tabs and spaces are turned into each other."""


def leading(line: str) -> str:
    """Give the white space that a line begins with; a form feed sets the column back to none."""
    return line[: len(line) - len(line.lstrip(" \t\f"))].rpartition("\f")[2]


def dedented(text: str) -> str:
    """Take away the margin that all lines have; where there is none, not a character changes."""
    lines = text.split("\n")
    margins = [leading(line) for line in lines if line.strip()]
    margin = min(margins, key=len, default="")
    if not margin or not all(m.startswith(margin) for m in margins):
        return text
    return "\n".join(line.removeprefix(margin) if line.strip() else "" for line in lines)


def normal(text: str) -> str:
    """Give code its normal form: not indented, four spaces a level, no blank lines around it."""
    return reindented(text, "", "    ").strip("\n")


def reindented(code: str, indent: str, unit: str) -> str:
    """Indent code by `indent`, and by one more `unit` for each level of blocks."""
    lines = code.split("\n")
    shape = _Shape.of(code)
    return "\n".join(
        line if number in shape.inside else _line(line, number, shape, indent, unit)
        for number, line in enumerate(lines, 1)
    )


def _line(line: str, number: int, shape: _Shape, indent: str, unit: str) -> str:
    text = line.lstrip(" \t\f")
    if number + 1 not in shape.inside:
        text = text.rstrip()
    if not text:
        return ""
    level, width = shape.place_of(number, columns(line))
    more = max(0, columns(line) - width)
    aligned = "\t" * (more // TAB) + " " * (more % TAB) if unit == "\t" else " " * more
    return indent + unit * level + aligned + text


def columns(line: str) -> int:
    """Say how far a line is indented."""
    return len(leading(line).expandtabs(TAB))


def lines_inside_strings(code: str) -> set[int]:
    """List the lines, from 1, whose beginning lies inside a string that began further up."""
    return _Shape.of(code).inside


def comments_in(code: str) -> list[str]:
    """List the comments of a piece of code, as far as it can be read."""
    return [t.string for t in tokens(code) if t.type == tokenize.COMMENT]


def tokens(code: str) -> Iterator[tokenize.TokenInfo]:
    """Give the tokens up to where the code cannot be read."""
    text = code.replace("\r\n", "\n").replace("\r", "\n")
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError):
        return


_UNSEEN = (tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)


@dataclass
class _Shape:
    """Where the statements of a piece of code begin, and what lies inside strings."""

    begins: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Level and column of each line that begins a statement."""
    inside: set[int] = field(default_factory=set)
    comments: set[int] = field(default_factory=set)
    """Lines that hold nothing but a comment, between statements."""

    @classmethod
    def of(cls, code: str) -> _Shape:
        shape = cls()
        level, fresh = 0, True
        opened: list[int] = []
        for token in tokens(code):
            line = token.start[0]
            shape._note_string(token, opened)
            if token.type in (tokenize.INDENT, tokenize.DEDENT):
                level += 1 if token.type == tokenize.INDENT else -1
            elif token.type == tokenize.NEWLINE:
                fresh = True
            elif fresh and token.type == tokenize.COMMENT:
                shape.comments.add(line)
            elif fresh and token.type not in _UNSEEN:
                shape.begins[line] = (level, columns(token.line[: token.start[1]]))
                fresh = False
        return shape._based_on_first()

    def _note_string(self, token: tokenize.TokenInfo, opened: list[int]) -> None:
        name = tokenize.tok_name[token.type]
        if name in ("FSTRING_START", "TSTRING_START"):
            opened.append(token.start[0])
        elif name in ("FSTRING_END", "TSTRING_END"):
            self.inside.update(range(opened.pop() + 1, token.end[0] + 1))
        elif token.type == tokenize.STRING:
            self.inside.update(range(token.start[0] + 1, token.end[0] + 1))

    def _based_on_first(self) -> _Shape:
        base = min((level for level, _ in self.begins.values()), default=0)
        self.begins = {line: (at - base, width) for line, (at, width) in self.begins.items()}
        return self

    def place_of(self, number: int, width: int) -> tuple[int, int]:
        """Give the level that a line belongs to, and the column of that level's statements."""
        if number in self.begins:
            return self.begins[number]
        before = max((line for line in self.begins if line < number), default=None)
        after = min((line for line in self.begins if line > number), default=None)
        if number not in self.comments and before is not None:
            return self.begins[before]
        near = [self.begins[line] for line in (after, before) if line is not None]
        fitting = [place for place in near if place[1] == width]
        level, _ = (fitting or near or [(0, width)])[0]
        return level, width


def usual_unit(source: Source, indents: Iterator[tuple[int, int]]) -> str:
    """Give the file's step of indentation: that of the first block; four spaces without one.

    `indents` are pairs of lines: one that opens a block, and the first in it.
    """
    for outer, inner in indents:
        around, within = leading(source.line(outer)), leading(source.line(inner))
        if within.startswith(around) and within != around:
            return within[len(around) :]
    return "    "
