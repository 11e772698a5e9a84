"""Where the files that are not Python modules lie, in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
ROOT = _PACKAGE if (_PACKAGE / "prompts").is_dir() else _PACKAGE.parent
"""The folder that holds prompts/, sandbox/ and Dockerfile.sandbox; the Docker build context."""


def prompt(language: str, question: str) -> str:
    """Give the text of one prompt file, with its $variables unfilled."""
    return (ROOT / "prompts" / language / f"{question}.md").read_text("utf-8")


def all_prompts() -> bytes:
    """Give all prompt files, one after the other: what a hash of them is made of."""
    files = sorted((ROOT / "prompts").glob("*/*.md"))
    return b"".join(f"{p.parent.name}/{p.name}\0".encode() + p.read_bytes() for p in files)


def sandbox_files() -> dict[str, bytes]:
    """Give what goes into the image, by path below ROOT."""
    folder = ROOT / "sandbox"
    files = sorted([*folder.glob("*.py"), *folder.glob("*.rs")])
    return {str(path.relative_to(ROOT)): path.read_bytes() for path in files}


def dockerfile() -> bytes:
    return (ROOT / "Dockerfile.sandbox").read_bytes()


def seccomp_profile() -> str:
    return (ROOT / "sandbox" / "seccomp.json").read_text("utf-8")
