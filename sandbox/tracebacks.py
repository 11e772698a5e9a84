"""Say what an exception was, in a form that is short, plain and safe to show."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from sandbox.modules import FOLDER, source_line

SHOWN = 2000
"""The longest text of a value or a message, in characters."""
SHOWN_FRAME = 300


def short(text: str, limit: int = SHOWN) -> str:
    """Cut a long text in the middle, where it tells least."""
    text = str.__str__(text)  # a subclass may say what it likes of itself
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} ... [{len(text) - 2 * half} characters left out] ... {text[-half:]}"


def show(value: object) -> str:
    """Give the repr of a value; a value that cannot say what it is, is named by its type."""
    try:
        return short(repr(value))
    except BaseException as error:  # a user's __repr__ may raise anything
        return f"<{name_of(type(value))}, whose repr raised {name_of(type(error))}>"


def name_of(kind: type) -> str:
    """Give the name of a class without running anything of its metaclass."""
    return str.__str__(type.__dict__["__qualname__"].__get__(kind))[:200]


def message_of(error: BaseException) -> str:
    """Give "Type: text" of an exception."""
    try:
        text = str(error)
    except BaseException:  # a user's __str__ may raise anything
        text = "?"
    name = name_of(type(error))
    return short(f"{name}: {text}" if text else name)


def frames_of(trace: TracebackType | None, last: int = 3) -> list[str]:
    """List the last frames that lie in the user's files: "file:line in function: source"."""
    found: list[tuple[str, int, str]] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(FOLDER):
            found.append((code.co_filename, trace.tb_lineno, code.co_name))
            del found[:-last]
        trace = trace.tb_next
    return [
        f"{path.removeprefix(FOLDER + '/')}:{line} in {name}: {source_line(path, line)}"[
            :SHOWN_FRAME
        ]
        for path, line, name in found
    ]


def problem(error: BaseException) -> dict[str, Any]:
    """Describe an exception as the wire carries it."""
    frames = frames_of(error.__traceback__)
    if isinstance(error, SyntaxError) and error.filename:
        where = str(error.filename).removeprefix(FOLDER + "/")
        line = str(error.text or "").strip()
        frames.append(f"{where}:{error.lineno}: {line}"[:SHOWN_FRAME])
    return {"message": message_of(error), "frames": frames}
