"""Little repositories for tests of the hook, and what must be the same after it."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from conftest import ROOT

CALC = '''"""Sums of money."""


def double(x):
    """Give twice x."""
    return x * 2


def both(x):
    """Give twice x, and x."""
    return double(x), x
'''
WRONG = CALC.replace("x * 2", "x * 3")
TESTS = """from shop.calc import both, double


def test_double():
    assert double(2) == 4


def test_both():
    assert both(1) == (2, 1)
"""
RIGHT = "```python\ndef double(x):\n    return x * 2\n```"
USELESS = "```python\ndef double(x):\n    return 5\n```"
PYPROJECT = "[tool.reflexfix.sandbox]\ntest_seconds = 20\n"


class Repo:
    """A repository in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.env = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("OPENAI", "REFLEXFIX", "GIT_", "PRE_COMMIT"))
        }
        self.env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        self.git("init", "-q", "-b", "main")
        for key, value in (("user.name", "T"), ("user.email", "t@example.org")):
            self.git("config", key, value)
        self.git("config", "protocol.file.allow", "always")

    def git(self, *arguments: str, code: int | None = 0, **env: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**self.env, **env},
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
        said = (done.stdout + done.stderr).decode("utf-8", "replace")
        assert code is None or done.returncode == code, said
        return said

    def write(self, files: dict[str, str | bytes]) -> None:
        for name, data in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.encode() if isinstance(data, str) else data)

    def stage(self, files: dict[str, str | bytes]) -> None:
        self.write(files)
        self.git("add", "--", *files)

    def project(self, calc: str = CALC) -> None:
        """Stage a small project."""
        self.stage(
            {"pyproject.toml": PYPROJECT, "shop/__init__.py": "", "shop/calc.py": calc,
             "tests/test_calc.py": TESTS}
        )  # fmt: skip

    def committed(self, calc: str = CALC) -> None:
        """Commit a small project, without any hook."""
        self.project(calc)
        self.git("commit", "-q", "--no-verify", "-m", "a project")

    def hook(self, *arguments: str, **env: str) -> tuple[int, str]:
        return self.run("hook", *arguments, **env)

    def run(self, *arguments: str, **env: str) -> tuple[int, str]:
        """Run the command of this checkout here."""
        done = subprocess.run(
            [sys.executable, "-m", "reflexfix", *arguments],
            cwd=self.folder,
            env={**self.env, "PYTHONPATH": str(ROOT), **env},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # no terminal: progress is on standard error
            timeout=300,
        )
        return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")

    def settle(self) -> None:
        """Let git write into the index what it writes before it asks any hook."""
        hooks = self.folder / ".git/refusing"
        hooks.mkdir(exist_ok=True)
        (hooks / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
        (hooks / "pre-commit").chmod(0o755)
        self.git("-c", f"core.hooksPath={hooks}", "commit", "-m", "x", code=1)

    def state(self, whole_index: bool = True) -> dict[str, str]:
        """Hash the index, the work tree and what HEAD and the stash say.

        The whole index holds the times of files too, which a stash of unstaged edits changes.
        """
        index = (self.folder / ".git/index").read_bytes() if whole_index else b""
        found = {"index": digest(index), "entries": digest(self.git("ls-files", "-s").encode())}
        for where, folders, files in os.walk(self.folder):
            folders[:] = [f for f in folders if f not in (".git", ".reflexfix")]
            for name in files:
                path = Path(where, name)
                data = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
                found[str(path)] = f"{digest(data)} {path.lstat().st_mode:o}"
        found["head"] = self.git("rev-parse", "HEAD", code=None)
        found["stash"] = self.git("stash", "list")
        found["status"] = self.git("status", "--porcelain")
        return found

    def patches(self) -> list[Path]:
        return sorted((self.folder / ".reflexfix/patches").glob("*.patch"))


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()
