"""A task: one function in one file, in whatever language the file is written."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from reflexfix.attempt import Candidate, Case, UserTests
from reflexfix.errors import UsageProblem


@dataclass(frozen=True)
class Reading:
    """What an answer turned out to hold."""

    code: str = ""
    """The new code as one text; "" when there is none."""
    file: bytes = b""
    """The user's file with that code in it."""
    why: str = ""
    """Why there is no code, or what is odd about it."""


@dataclass(frozen=True)
class Dropped:
    """A test that was not kept, and why."""

    shown: str
    reason: str


@dataclass(frozen=True)
class Site:
    """A place of a program that can be changed into something wrong, in bytes of its file."""

    start: int
    end: int
    text: bytes
    kind: str
    """comparison, constant, arithmetic, negation or statement."""


class Task(Protocol):
    """What the loop needs to know of a language, a file and a function in it."""

    @property
    def language(self) -> str: ...
    @property
    def path(self) -> Path: ...
    @property
    def name(self) -> str:
        """Dotted name of the target."""
        ...

    @property
    def id(self) -> str:
        """Hash of what is asked for, never of where it stands."""
        ...

    @property
    def original(self) -> bytes: ...
    @property
    def unfinished(self) -> bool: ...
    @property
    def packages(self) -> tuple[str, ...]:
        """Modules from elsewhere that the file needs."""
        ...

    def remedy(self, missing: tuple[str, ...]) -> str:
        """Say what to do about modules that the sandbox does not have."""
        ...

    @property
    def old_body(self) -> str:
        """The body as it stands in the file, to be repaired; "" for a stub."""
        ...

    def scope(self, tokens: int) -> str:
        """Describe the target and what is around it in at most so many tokens."""
        ...

    def read(self, answer: str) -> Reading:
        """Find the code in an answer. Never raises on what a model writes."""
        ...

    def own_tests(self, answer: str, examples: Iterable[Case]) -> tuple[list[Case], list[Dropped]]:
        """Find the tests in an answer; those not worth running with the reason."""
        ...

    def examples(self) -> list[Case]:
        """Make tests of the examples in the documentation."""
        ...

    def control(self, cases: Iterable[Case]) -> tuple[Case | None, str]:
        """Make a test that must fail, and the private value that it must fail on."""
        ...

    def candidate(self, file: bytes) -> Candidate:
        """Make a program of the user's file as it would be."""
        ...

    def sites(self, file: bytes) -> list[Site]:
        """List where the target in such a file can be changed, in the order of the text."""
        ...

    def user_tests(self, path: Path) -> UserTests:
        """Take a user's own test file along with what it needs."""
        ...


LANGUAGES = {".py": "reflexfix.python.task", ".rs": "reflexfix.rust.task"}
"""The module that opens files of each ending."""


def open_task(path: Path, function: str | None = None, body_only: bool = False) -> Task:
    """Read a file and find the function to be written in it.

    Raises UsageProblem: no such file, not a file, too large, unparsable, no such function.
    """
    if not path.exists():
        raise UsageProblem(f"{path} does not exist.")
    if path.is_dir():
        raise UsageProblem(
            f"{path} is a folder; one file is taken.", hint="name a file, and --function NAME in it"
        )
    task: Task = _module_for(path).open_task(path, function, body_only)
    return task


def task_of(
    source: bytes, path: Path, function: str | None = None, body_only: bool = False
) -> Task:
    """Find the function to be written in a text that stands in no folder.

    `path` names the text and tells its language; nothing is read there, nor beside it. Raises
    UsageProblem as `open_task` does.
    """
    task: Task = _module_for(path).task_of(source, path, function, body_only)
    return task


def _module_for(path: Path) -> Any:
    """Give the module for files of this ending. Raises UsageProblem."""
    if path.suffix not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise UsageProblem(f"{path} has no ending that is known here ({known}).")
    return importlib.import_module(LANGUAGES[path.suffix])


def read_file(path: Path, most: int) -> bytes:
    """Read a file of limited size. Raises UsageProblem."""
    try:
        size = path.stat().st_size
        if size > most:
            raise UsageProblem(f"{path} has {size:,} bytes; at most {most:,} are taken.")
        return path.read_bytes()
    except OSError as error:
        raise UsageProblem(f"{path} cannot be read: {error.strerror}.") from None
