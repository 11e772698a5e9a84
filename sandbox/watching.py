"""What the values in a function were when it ended, for whoever looks for its fault.

A short form of the states that LDB shows (Zhong et al., 2024, arXiv:2402.16906): those of the end.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from sandbox import tracebacks
from sandbox.modules import FOLDER, source_line

MARK = "\x1evalues: "
"""What stands before the values in what the process prints. Who forges it, forges a hint."""
NAMES = 8
SHOWN = 60
"""The longest value that is shown, in characters."""


def code_of(function: Any) -> CodeType | None:
    """Find the code of a function, beneath what wraps it."""
    for _ in range(10):
        code = getattr(function, "__code__", None)
        inner = getattr(function, "__wrapped__", None) or getattr(function, "__func__", None)
        if isinstance(code, CodeType) and inner is None:
            return code
        function = inner
    return None


class Watch:
    """Looks at the first call of a function, and remembers what it was left with."""

    def __init__(self, code: CodeType | None) -> None:
        self.code = code
        self.frame: FrameType | None = None
        self.said = ""

    def call(self, call: Callable[[], Any]) -> Any:
        if self.code is None:
            return call()
        sys.settrace(self._begins)
        try:
            return call()
        finally:
            sys.settrace(None)

    def _begins(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "call" and frame.f_code is self.code and self.frame in (None, frame):
            self.frame = frame
            return self._goes_on
        return None

    def _goes_on(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "return":
            self.said = said(frame)
        return self._goes_on

    def tell(self) -> None:
        """Write it where what is printed goes, past whatever the candidate made of its streams."""
        if self.said:
            os.write(1, f"{MARK}{self.said}".encode("utf-8", "replace"))


def said(frame: FrameType) -> str:
    """Say where a call ended, and with which values."""
    line = source_line(frame.f_code.co_filename, frame.f_lineno).strip()
    named = [(name, value) for name, value in frame.f_locals.items() if not callable(value)]
    values = ", ".join(f"{name} = {cut(tracebacks.show(value))}" for name, value in named[:NAMES])
    is_ours = frame.f_code.co_filename.startswith(FOLDER)
    return f"at `{line}`: {values}" if is_ours and values else ""


def cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
