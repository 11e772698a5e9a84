"""Defaults that a project sets for itself: `[tool.reflexfix]` in the nearest pyproject.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reflexfix.errors import UsageProblem

TABLES = ("sandbox", "hook")
"""Subtables that are not options of a command."""


def nearest(start: Path) -> Path | None:
    """Find the pyproject.toml that governs a file or a folder."""
    start = start.resolve()
    folders = [start, *start.parents] if start.is_dir() else list(start.parents)
    return next((f / "pyproject.toml" for f in folders if (f / "pyproject.toml").is_file()), None)


def settings(start: Path) -> Mapping[str, Any]:
    """Read the table, with option names as click spells them. Raises UsageProblem."""
    path = nearest(start)
    if path is None:
        return {}
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageProblem(f"{path} cannot be read: {error}") from None
    table = data.get("tool", {}).get("reflexfix", {})
    if not isinstance(table, dict) or not isinstance(table.get("sandbox", {}), dict):
        raise UsageProblem(f"{path}: tool.reflexfix (and its sandbox) has to be a table.")
    return {spelled(name): value for name, value in table.items()}


def options(table: Mapping[str, Any]) -> dict[str, Any]:
    """Give what belongs to commands: the table itself, and the limits of the sandbox."""
    limits = {spelled(k): v for k, v in dict(table.get("sandbox", {})).items() if k != "packages"}
    return {**{k: v for k, v in table.items() if k not in TABLES}, **limits}


def spelled(name: str) -> str:
    """Give a setting the spelling that click knows."""
    return name.replace("-", "_")


def packages(table: Mapping[str, Any]) -> tuple[str, ...]:
    """Give `[tool.reflexfix.sandbox] packages`. Raises UsageProblem."""
    found = table.get("sandbox", {}).get("packages", [])
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise UsageProblem("tool.reflexfix.sandbox.packages has to be a list of names.")
    return tuple(found)
