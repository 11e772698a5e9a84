"""Put the hook into a repository, without pre-commit; one that is there already is left alone."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from reflexfix.errors import UsageProblem
from reflexfix.hook.git import Repository

NAME = "pre-commit"


def script() -> str:
    """Give the hook's text: the command of this very installation."""
    python = shlex.quote(sys.executable)
    lines = ["#!/bin/sh", "# written by `reflexfix hook --install`"]
    return "\n".join([*lines, f'exec {python} -m reflexfix hook "$@"', ""])


def install(repository: Repository) -> Path:
    """Write the hook where git looks for it. Raises UsageProblem where another one is."""
    path = repository.folder("hooks") / NAME
    if path.exists() or path.is_symlink():
        if path.is_file() and path.read_text("utf-8", "replace") == script():
            return path
        raise UsageProblem(
            f"There is a hook already at {path}; it was left as it is.",
            hint="add the line `reflexfix hook` to it, or use pre-commit",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(script())
    except OSError as error:
        raise UsageProblem(f"{path} cannot be written: {error.strerror}.") from None
    return path
