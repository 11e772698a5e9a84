"""Who may import whom, kept true by reading the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGE = ROOT / "reflexfix"

MAP: dict[str, set[str]] = {
    "errors": set(),
    "assets": set(),
    "attempt": set(),
    "source": {"errors"},
    "config": {"errors"},
    "edit": {"errors"},
    "model": {"errors"},
    "program": set(),
    "local": {"errors", "program"},
    "warm": {"errors", "local"},
    "local_server": set(),
    "memory": set(),
    "difference": set(),
    "feedback": {"attempt", "difference"},
    "task": {"attempt", "errors"},
    "python": {"python", "attempt", "errors", "source", "task"},
    "rust": {"rust", "attempt", "errors", "task"},
    "containers": {"containers", "assets", "attempt", "errors", "program"},
    "ask": {"assets", "attempt", "feedback", "memory", "model", "task"},
    "background": set(),
    "agreement": {"attempt"},
    "watch": {"attempt"},
    "mutation": {"attempt", "task"},
    "proving": {"agreement", "ask", "attempt", "mutation", "rules", "suite"},
    "rules": {"ask", "suite"},
    "recording": {"errors", "model"},
    "suite": {"ask", "attempt", "model", "task"},
    "loop": {
        "agreement", "ask", "attempt", "background", "memory", "model", "mutation", "proving",
        "rules", "suite", "watch",
    },
    "resampling": {"loop", "rules", "suite"},
    "runlog": {"agreement", "attempt", "errors", "memory", "model", "suite"},
    "show": {"runlog"},
    "assemble": {"attempt", "containers", "errors", "local", "model", "runlog", "warm"},
    "solving": {
        "agreement", "ask", "assemble", "attempt", "containers", "errors", "loop", "memory",
        "model", "mutation", "rules", "runlog", "suite", "task",
    },
    "batch": {
        "agreement", "assemble", "attempt", "background", "benchmarks", "containers", "errors",
        "loop", "memory", "model", "recording", "resampling", "runlog", "scoring", "solving",
        "suite", "task",
    },
    "hook": {
        "ask", "assemble", "attempt", "background", "containers", "edit", "errors", "loop",
        "memory", "model", "python", "runlog", "rust", "solving", "source", "suite",
    },
    "progress": {"batch", "display"},
    "display": {"agreement", "attempt", "feedback", "loop", "memory", "mutation", "rules", "suite"},
    "conformance": {"attempt"},
    "doctor": {
        "assemble", "attempt", "conformance", "containers", "errors", "local", "model", "task",
    },
    "cleaning": {"assemble", "containers", "errors", "local", "runlog"},
    "benchmarks": {"errors", "python", "rust", "task"},
    "scoring": {"attempt", "benchmarks", "errors", "python", "rust", "task"},
}  # fmt: skip
"""Rooms of the package, and what each may import of it; `cli` may import everything."""

OUTSIDE: dict[str, set[str]] = {
    "click": {"cli", "errors"},
    "docker": {"containers"},
    "openai": {"model"},
    "tree_sitter": {"hook", "python", "rust"},
    "tree_sitter_python": {"python"},
    "tree_sitter_rust": {"rust"},
    "rich": {"cli", "display", "progress"},
    "distributed": {"batch"},
    "xllamacpp": {"local_server", "doctor"},
}
"""Packages from outside, and the only rooms that may import them."""


def rooms(folder: Path) -> Iterator[tuple[str, str]]:
    """Give each module's room (file or subpackage) and its source."""
    for path in sorted(folder.rglob("*.py")):
        relative = path.relative_to(folder)
        yield relative.parts[0].removesuffix(".py"), path.read_text()


def imports(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            prefix = "reflexfix." if node.level else ""
            yield from (f"{prefix}{node.module}.{alias.name}" for alias in node.names)


def leaks(room: str, source: str) -> list[str]:
    """List what a room imports and may not."""
    found = []
    for name in imports(source):
        top, _, rest = name.partition(".")
        inner = rest.split(".")[0]
        allowed = MAP.get(room, {inner}) | {room, "", "__version__"}
        if top == "reflexfix" and inner not in allowed:
            found.append(f"{room} imports {inner}")
        if room not in OUTSIDE.get(top, {room}):
            found.append(f"{room} imports {top}")
        if top == "sandbox":
            found.append(f"{room} imports what runs inside")
    return found


def test_every_room_keeps_to_the_map() -> None:
    assert [leak for room, source in rooms(PACKAGE) for leak in leaks(room, source)] == []


def test_every_room_is_on_the_map() -> None:
    known = set(MAP) | {"cli", "__init__", "__main__"}
    assert {room for room, _ in rooms(PACKAGE)} - known == set()


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("loop", "from reflexfix.containers import engine"),
        ("loop", "import docker"),
        ("ask", "from reflexfix import cli"),
        ("attempt", "from reflexfix.errors import UsageProblem"),
        ("suite", "def f():\n    import openai"),
        ("containers", "from sandbox import wire"),
    ],
)
def test_a_planted_leak_is_found(room: str, line: str) -> None:
    assert leaks(room, line)


def test_what_runs_inside_imports_the_standard_library_only() -> None:
    import sys

    for _, source in rooms(ROOT / "sandbox"):
        tops = {name.split(".")[0] for name in imports(source)}
        assert tops - sys.stdlib_module_names - {"sandbox", "pytest"} == set()


def test_only_cli_and_display_print() -> None:
    for room, source in rooms(PACKAGE):
        calls = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)]
        printing = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"]
        assert not printing or room in ("cli", "display", "local_server"), room


def test_the_map_stands_in_contributing() -> None:
    """CONTRIBUTING.md shows the same map to people."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for room, allowed in MAP.items():
        names = ", ".join(sorted(allowed - {room})) or "nothing of ours"
        assert f"`{room}` -> {names}" in text, f"`{room}` -> {names}"
