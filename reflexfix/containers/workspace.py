"""A Rust project whose tests want crates from elsewhere: its manifests, to become a layer."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from reflexfix.containers.crates import Source

KINDS = ("dependencies", "dev-dependencies", "build-dependencies")
STUB = b"fn main() {}\n"
"""What stands for each source file while the crates are built."""


@dataclass(frozen=True)
class Workspace:
    """What of a project decides which crates it gets; none of its code goes into the image."""

    manifests: tuple[tuple[str, bytes], ...]
    """Each Cargo.toml, and Cargo.lock, by its path below the project's folder."""
    root: str = ""
    """The folder of the workspace, below the project's."""
    names: tuple[str, ...] = ()
    """The crates that are asked for."""
    sources: tuple[str, ...] = field(default=(), compare=False)
    """Paths of the project's source files: cargo wants to see that they are there."""
    source: Source = field(default=Source(), compare=False)
    """Where crates are taken from; which layer they make does not depend on it."""

    @cached_property
    def digest(self) -> str:
        hashed = sha256(self.root.encode())
        for path, data in self.manifests:
            hashed.update(path.encode() + b"\0" + data + b"\0")
        return hashed.hexdigest()[:12]

    def context(self) -> Iterator[tuple[str, Any]]:
        """List what the build is given, by path; a path stands for a folder."""
        for path in self.sources:
            yield f"crates/project/{path}", STUB
        for path, data in self.manifests:
            yield f"crates/project/{path}", data
        config = str(PurePosixPath("crates/project", self.root, ".cargo/config.toml"))
        yield config, self.source.config.encode()
        for number, folder in enumerate(self.source.folders):
            yield f"crates/sources/{number}", folder


def of(files: Mapping[str, bytes], root: str = "") -> Workspace | None:
    """Read the manifests of a project; None where they ask for nothing from elsewhere."""
    named = {"Cargo.toml", "Cargo.lock"}
    manifests = tuple(sorted((p, d) for p, d in files.items() if PurePosixPath(p).name in named))
    names = sorted(set(asked_for(data for path, data in manifests if path.endswith(".toml"))))
    sources = tuple(sorted(path for path in files if path.endswith(".rs")))
    return Workspace(manifests, root, tuple(names), sources) if names else None


def asked_for(manifests: Iterable[bytes]) -> Iterator[str]:
    """Name the crates that manifests take from elsewhere; folders of the project are none."""
    for data in manifests:
        try:
            table = tomllib.loads(data.decode("utf-8", "replace"))
        except tomllib.TOMLDecodeError:
            continue  # cargo will say what is wrong with it
        parts = [table, table.get("workspace"), *tables(table.get("target"))]
        for part in parts:
            for kind in KINDS if isinstance(part, dict) else ():
                wanted = part.get(kind)
                for name, one in wanted.items() if isinstance(wanted, dict) else ():
                    inner = one if isinstance(one, dict) else {}
                    if "path" not in inner and not inner.get("workspace"):
                        yield name


def tables(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else []
