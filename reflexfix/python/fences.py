"""Fenced blocks in what a model writes, whichever way it fences them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

MAX_FENCES = 40
MAX_CODE = 200_000
"""The longest text, in characters, that is tried as code."""
MAX_TRIED = 1_000_000
"""How many characters are tried as code, in all."""

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$")
_ONE_LINE = re.compile(r"^[ \t]*```(?:[A-Za-z]\w*[ \t]+)?(?P<code>[^`]+)```[ \t]*$")
_CODE_BEHIND = re.compile(
    r"^(?:[A-Za-z]\w*[ \t]+)?(?P<code>(?:async def|def|class|import|from) .+)$"
)


@dataclass(frozen=True)
class Block:
    """The text between two fences, or all of an answer that has none."""

    text: str
    closed: bool = True
    """Whether the end was seen; an answer may have been cut off."""


@lru_cache(maxsize=4)
def blocks(answer: str) -> tuple[Block, ...]:
    """List the fenced blocks of an answer, or all of it where there is no fence."""
    found: list[Block] = []
    lines = answer.split("\n")
    number = 0
    while number < len(lines):
        if not _is_fence(lines[number]):
            pass
        elif single := _ONE_LINE.match(lines[number]):
            found.append(Block(single["code"] + "\n"))
        elif opening := _FENCE.match(lines[number]):
            end = _closing(lines, number + 1, opening["fence"])
            found.append(_block(opening, lines[number + 1 : end], end < len(lines)))
            number = end
        number += 1
    return tuple(found) or (Block(answer),)


def _is_fence(line: str) -> bool:
    return line.lstrip().startswith(("```", "~~~"))


def _closing(lines: list[str], start: int, fence: str) -> int:
    """Give the line that closes a fence; the number of lines when none does."""
    for number in range(start, len(lines)):
        text = lines[number].strip()
        if text.startswith(fence) and not text.strip(fence[0]):
            return number
    return len(lines)


def _block(opening: re.Match[str], lines: list[str], closed: bool) -> Block:
    indent = len(opening["indent"])
    kept = [line[min(indent, len(line) - len(line.lstrip())) :] for line in lines]
    if behind := _CODE_BEHIND.match(opening["info"].strip()):
        kept.insert(0, behind["code"])
    if not closed and kept and kept[-1].rstrip().endswith("```"):
        kept[-1], closed = kept[-1].rstrip()[:-3], True
    return Block("\n".join(kept) + "\n", closed)


def stretched(answer: str) -> Iterator[str]:
    """List what lies between any two fences, the beginning and the end counting as fences.

    For a fence inside a docstring, and for a block whose opening or closing fence is missing.
    """
    lines = answer.split("\n")
    ends = list(accumulate((len(line) + 1 for line in lines), initial=0))
    fences = [n for n, line in enumerate(lines) if _is_fence(line)]
    bounds = [-1, *fences[-MAX_FENCES:], len(lines)]
    spent = 0
    for position in reversed(range(len(bounds) - 1)):
        first = bounds[position] + 1
        for last in bounds[position + 1 :]:
            size = ends[last] - ends[first]
            if size <= MAX_CODE and spent + size <= MAX_TRIED:
                spent += size
                yield answer[ends[first] : ends[last]]


def latest(found: Sequence[Block]) -> list[Block]:
    """Give the last blocks first, as many of them as can be tried."""
    return [block for block in reversed(found[-MAX_FENCES:]) if len(block.text) <= MAX_CODE]
