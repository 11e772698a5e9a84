"""Whole statements in text that is not all Python: what parses is taken, prose is passed over."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reflexfix.python import syntax
from reflexfix.python.fences import MAX_CODE
from reflexfix.python.layout import dedented, leading

MAX_LINES = 4000
"""Longer texts are read up to here."""
MAX_TRIED = 1_000_000
"""How many characters are parsed, in all."""
_A_TRY = 500
"""What a try costs beside its characters."""
_LONGEST = 40
"""How many lines a statement that is no block may have."""
_GOES_ON = 5
"""How often a block may reach the margin, within strings."""

_BLOCK = re.compile(r"\s*(?:async def|def|class|@)\b|\s*@")
_MAY_BEGIN = re.compile(
    r"(?:async|def|class|import|from|assert|with|try|for|if|while|raise|return|del|global"
    r"|nonlocal|pass|await|yield|match)\b|@|[A-Za-z_][\w.]*\s*[\[(=:,+*/|&^%@-]|[(\[{*\"']"
)
_DEFINITION = re.compile(r"\s*(?:async def|def|class)\b")
_INDENTED = re.compile(r"\s+(?:async def|def|class|import|from|assert)\b|\s+@")


def statements(text: str) -> tuple[list[str], list[str]]:
    """Take whole statements out of a text, and the first lines of those that do not parse."""
    lines = text.split("\n")[:MAX_LINES]
    taken: list[str] = []
    lost: list[str] = []
    begin, budget = 0, MAX_TRIED
    while begin < len(lines) and budget > 0:
        used = 0
        if _begins(lines[begin]):
            for end in _ends(lines, begin):
                piece = dedented("\n".join(lines[begin:end]))
                budget -= len(piece) + _A_TRY
                if len(piece) > MAX_CODE:
                    continue
                if syntax.module(piece) is not None:
                    taken.append(piece)
                    used = end - begin
                    break
            else:
                lost.append(lines[begin].strip())
        begin += max(used, 1)
    return taken, lost


def _begins(line: str) -> bool:
    pattern = _INDENTED if line[:1] in " \t" else _MAY_BEGIN
    return pattern.match(line) is not None


def _ends(lines: list[str], begin: int) -> Iterator[int]:
    """List where a statement that begins here may end.

    A definition is taken whole or not at all: what is cut off must not pass as complete. A string
    in it may reach the margin, so the block may go on.
    """
    if _BLOCK.match(lines[begin]):
        end = begin
        for _ in range(_GOES_ON):
            if end < len(lines):
                end = _block_end(lines, end)
                if not any(map(_DEFINITION.match, lines[begin:end])):
                    return  # decorators of nothing
                yield end
        return
    block = _block_end(lines, begin)
    yield from dict.fromkeys([block, *range(begin + 1, min(block, begin + _LONGEST))])


def _block_end(lines: list[str], begin: int) -> int:
    """Give the line behind everything that is indented below this one, and its closing brackets."""
    margin = len(leading(lines[begin]))
    end = begin + 1
    decorated = lines[begin].lstrip().startswith("@")
    while end < len(lines) and (decorated or _belongs(lines[end], margin)):
        decorated = decorated and end < begin + _LONGEST and not _DEFINITION.match(lines[end])
        end += 1
    return end


def _belongs(line: str, margin: int) -> bool:
    text = line.strip()
    if not text or len(leading(line)) > margin:
        return True
    return len(leading(line)) == margin and (
        text[0] in ")]}" or re.match(r"(?:else|elif|except|finally)\b", text) is not None
    )
