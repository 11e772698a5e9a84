"""What a project says of its hook: `[tool.reflexfix.hook]` in its own pyproject.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from reflexfix.attempt import Limits
from reflexfix.errors import UsageProblem
from reflexfix.hook.tree import LARGEST_MB, Tree

OnTrouble = Literal["tests", "fail", "pass"]


@dataclass(frozen=True)
class Settings:
    """How a project is tested and mended."""

    tests: str = ""
    """The command that runs the tests; found out by itself when empty."""
    packages: tuple[str, ...] | None = None
    """What the tests need, in place of what the project declares."""
    dockerfile: str = ""
    """A file that builds on `${BASE}` what the tests need."""
    seconds: float = 120.0
    """How long a fix is looked for."""
    tokens: int | None = None
    suite_seconds: float = 600.0
    """How long the tests may take as a whole."""
    on_trouble: OnTrouble = "tests"
    own_tests: bool = False
    largest_mb: float = LARGEST_MB
    """A binary file above this size is left out."""
    exclude: tuple[str, ...] = ()
    """Patterns of files that the tests do not need."""


def of_tree(tree: Tree) -> tuple[Settings, Limits]:
    """Read the settings that are staged, so that they are tested as well. Raises UsageProblem."""
    table = pyproject(tree).get("tool", {}).get("reflexfix", {})
    if not isinstance(table, dict):
        raise UsageProblem("tool.reflexfix in pyproject.toml has to be a table.")
    return settings(table.get("hook", {})), limits(table.get("sandbox", {}))


def pyproject(tree: Tree) -> Mapping[str, Any]:
    """Give the project's pyproject.toml as data; empty where it has none."""
    data = tree.read("pyproject.toml")
    if data is None:
        return {}
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageProblem(f"pyproject.toml cannot be read: {error}") from None


def settings(table: Any) -> Settings:
    """Read the table of the hook. Raises UsageProblem for what is unknown or of a wrong kind."""
    if not isinstance(table, dict):
        raise UsageProblem("tool.reflexfix.hook has to be a table.")
    given = {name.replace("-", "_"): value for name, value in table.items()}
    known = {field.name: KINDS[field.name] for field in fields(Settings)}
    for name, value in given.items():
        if name not in known:
            raise UsageProblem(f"[tool.reflexfix.hook] in pyproject.toml has no setting {name}.")
        if not _fits(value, known[name]):
            raise UsageProblem(f"tool.reflexfix.hook.{name} has to be {WORDS[known[name]]}.")
    if given.get("on_trouble", "tests") not in get_args(OnTrouble):
        raise UsageProblem('tool.reflexfix.hook.on_trouble has to be "tests", "fail" or "pass".')
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return Settings(**{**given, **lists})


KINDS: dict[str, type] = {
    "tests": str, "packages": list, "dockerfile": str, "seconds": float, "tokens": int,
    "suite_seconds": float, "on_trouble": str, "own_tests": bool, "largest_mb": float,
    "exclude": list,
}  # fmt: skip
WORDS: dict[type, str] = {
    str: "a text",
    list: "a list of texts",
    float: "a number above 0",
    int: "a whole number above 0",
    bool: "true or false",
}


def _fits(value: Any, kind: type) -> bool:
    if kind is list:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind in (int, float):
        numbers = (int,) if kind is int else (int, float)
        return isinstance(value, numbers) and not isinstance(value, bool) and value > 0
    return isinstance(value, kind)


ROOM_MB = 512
"""How much of the project, and of what its tests write, may lie in /tmp."""
PROJECT = Limits(memory_mb=1024, processes=256, cpus=2.0, output_bytes=16 * 2**20, file_mb=64)
"""What a whole project's tests may use, where it does not say otherwise."""


def limits(table: Any) -> Limits:
    """Read the limits of `[tool.reflexfix.sandbox]`, beside which the project's own stand."""
    if not isinstance(table, dict):
        raise UsageProblem("tool.reflexfix.sandbox has to be a table.")
    named = {name.replace("-", "_"): value for name, value in table.items()}
    known = {field.name for field in fields(Limits)}
    given = {name: value for name, value in named.items() if name in known}
    return Limits(**{**{name: getattr(PROJECT, name) for name in known}, **given})


def roomy(limits: Limits, compiles: bool = False) -> Limits:
    """Make /tmp large enough for the largest tree that can be sent, and memory for it.

    What a compiler writes lies there too, and a compiler takes memory itself.
    """
    room = 4 * ROOM_MB if compiles else ROOM_MB
    return replace(
        limits,
        tmp_mb=max(limits.tmp_mb, room),
        tmp_files=max(limits.tmp_files, 65536),
        file_mb=max(limits.file_mb, 256) if compiles else limits.file_mb,
        memory_mb=limits.memory_mb + room,
        tmp_exec=True,  # a project's tests may run its own programs
    )
