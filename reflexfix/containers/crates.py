"""The crates that a user's crate asks for, read from Cargo.toml, to become a layer of the image."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from reflexfix.errors import UsageProblem

TABLES = ("dependencies", "dev-dependencies")
SOURCES = "/crates/sources"
"""Where the folders that stand in for a registry lie during the build."""

Table = Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """Where the crates come from: cargo's configuration, and the folders that it names."""

    config: str = ""
    folders: tuple[Path, ...] = ()
    """In the order of their places below SOURCES."""


@dataclass(frozen=True)
class Crates:
    """What is built into the layer: a manifest of dependencies alone, and the user's lock."""

    folder: Path
    manifest: str
    lock: str = ""
    names: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Dependencies that are folders of the user's."""
    source: Source = Source()
    """Where they are taken from; which layer they make does not depend on it."""

    @cached_property
    def digest(self) -> str:
        """Name the layer by what is asked for; what else stands in the lock does not count."""
        text = "\0".join([self.manifest, *locked(self.lock)])
        return sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


# ---------------------------------------------------------------- the manifest


def around(path: Path) -> Crates | None:
    """Read the crate that a file or folder lies in; None where it asks for no crates."""
    path = path.absolute()
    for folder in (path, *path.parents):
        if (folder / "Cargo.toml").is_file():
            try:
                found = read(folder)
            except UsageProblem:
                return None
            return found if found.names else None
    return None


def named(path: Path, chosen: Path | None = None) -> Crates:
    """Read the crate that the user named by its folder or its Cargo.toml. Raises UsageProblem.

    `chosen` is a folder that stands in for the registry.
    """
    folder = path.parent if path.name == "Cargo.toml" else path
    if not (folder / "Cargo.toml").is_file():
        raise UsageProblem(f"{path} is no crate: there is no Cargo.toml.")
    found = read(folder.absolute())
    if not found.names:
        said = f" but folders ({', '.join(found.left_out)})" if found.left_out else ""
        raise UsageProblem(f"{folder / 'Cargo.toml'} asks for no crates{said}.")
    return replace(found, source=source(folder.absolute(), chosen))


def read(folder: Path) -> Crates:
    """Make a manifest that asks for what the user's asks for. Raises UsageProblem."""
    table = toml_of(folder / "Cargo.toml")
    if not isinstance(table.get("package"), dict):
        raise UsageProblem(
            f"{folder / 'Cargo.toml'} has no [package].",
            hint="name the member of the workspace whose crates are wanted",
        )
    home = workspace_of(folder)
    shared = toml_of(home / "Cargo.toml").get("workspace") or {} if home else {}
    left_out: list[str] = []
    kept: dict[str, Any] = {"package": package_of(table["package"], shared)}
    kept |= {"lib": {"path": "lib.rs"}, "workspace": {}}
    for name, part in dependencies_in(table, shared, left_out):
        place = kept
        for step in name[:-1]:
            place = place.setdefault(step, {})
        place[name[-1]] = part
    kept |= {"features": features_of(table, left_out)} if table.get("features") else {}
    return Crates(
        folder=folder,
        manifest=written(kept),
        lock=lock_of(home or folder),
        names=tuple(sorted(set(names_in(kept)))),
        left_out=tuple(dict.fromkeys(left_out)),
    )


def toml_of(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageProblem(f"{path} cannot be read: {error}") from None


def workspace_of(folder: Path) -> Path | None:
    """Find the folder of the workspace that a crate is part of, itself perhaps."""
    for above in (folder, *folder.parents):
        manifest = above / "Cargo.toml"
        if manifest.is_file() and "workspace" in toml_of(manifest):
            return above
    return None


def package_of(package: Table, shared: Table) -> dict[str, Any]:
    """Keep name, version and edition; a workspace may say the last two."""
    kept = {"name": str(package.get("name", "crate")), "version": "0.0.0", "edition": "2015"}
    common = shared.get("package") or {}
    for field_name in ("version", "edition"):
        value = package.get(field_name, kept[field_name])
        kept[field_name] = str(common.get(field_name, "2021") if isinstance(value, dict) else value)
    return {**kept, "version": "0.0.0", "publish": False}


def dependencies_in(
    table: Table, shared: Table, left_out: list[str]
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """List the tables of dependencies by where they stand, those for one target too."""
    for name in TABLES:
        if table.get(name):
            yield (name,), plain(table[name], shared, left_out)
    for target, part in (table.get("target") or {}).items():
        for name in TABLES:
            if part.get(name):
                yield ("target", target, name), plain(part[name], shared, left_out)


def plain(wanted: Table, shared: Table, left_out: list[str]) -> dict[str, Any]:
    """Write out what is inherited; leave out what is a folder of the user's."""
    kept: dict[str, Any] = {}
    for name, asked in wanted.items():
        one = dict(asked) if isinstance(asked, dict) else {"version": asked}
        if one.pop("workspace", False):
            common = (shared.get("dependencies") or {}).get(name, "*")
            base = dict(common) if isinstance(common, dict) else {"version": common}
            features = [*base.get("features", []), *one.get("features", [])]
            one = {**base, **one} | ({"features": features} if features else {})
        if "path" in one:
            left_out.append(name)
        else:
            kept[name] = one
    return kept


def features_of(table: Table, left_out: list[str]) -> dict[str, list[str]]:
    """Keep the features, without what they ask of dependencies that are left out."""

    def stays(asked: str) -> bool:
        return asked.removeprefix("dep:").split("/")[0].rstrip("?") not in left_out

    return {name: [a for a in asked if stays(a)] for name, asked in table["features"].items()}


def names_in(kept: Table) -> Iterator[str]:
    for name in TABLES:
        yield from kept.get(name, {})
    for part in (kept.get("target") or {}).values():
        yield from (name for table in part.values() for name in table)


def lock_of(folder: Path) -> str:
    try:
        return (folder / "Cargo.lock").read_text("utf-8")
    except (OSError, ValueError):
        return ""


def locked(lock: str) -> Iterator[str]:
    """List which versions a lock holds fast, the user's own crates aside."""
    try:
        packages = tomllib.loads(lock).get("package", [])
    except ValueError:
        packages = []
    yield from sorted(f"{p['name']} {p['version']}" for p in packages if "source" in p)


def written(value: Any, top: bool = True) -> str:
    """Write TOML: one line a top-level key, inline tables below."""
    if isinstance(value, dict) and top:
        return "".join(f"{json.dumps(k)} = {written(v, False)}\n" for k, v in value.items())
    if isinstance(value, dict):
        inside = ", ".join(f"{json.dumps(k)} = {written(v, False)}" for k, v in value.items())
        return "{ " + inside + " }"
    if isinstance(value, list):
        return "[" + ", ".join(written(v, False) for v in value) + "]"
    return json.dumps(value)


# ---------------------------------------------------------------- where crates come from


def source(folder: Path, chosen: Path | None = None) -> Source:
    """Say where cargo takes crates from: a folder that was named, or as its configuration says.

    Only sources and registries are taken over, no token and no other setting.
    """
    if chosen is not None:
        if not chosen.is_dir():
            raise UsageProblem(f"{chosen} is no folder of crates.", hint="`cargo vendor` makes one")
        config = {"crates-io": {"replace-with": "chosen"}, "chosen": {"directory": f"{SOURCES}/0"}}
        return Source(written({"source": config}), (chosen.absolute(),))
    merged = Merged()
    for file in reversed(list(configurations(folder))):
        merged.take(toml_of(file), file.parent.parent)
    return Source(written({k: v for k, v in merged.tables.items() if v}), tuple(merged.folders))


@dataclass
class Merged:
    """Cargo's configuration from several files, the later ones above the earlier."""

    tables: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {"source": {}, "registries": {}, "registry": {}}
    )
    folders: list[Path] = field(default_factory=list)

    def take(self, table: Table, home: Path) -> None:
        for name, one in (table.get("source") or {}).items():
            one = dict(one)
            for kind in ("directory", "local-registry"):
                if kind in one:
                    one[kind] = self.placed(home / one[kind])
            self.tables["source"][name] = {**self.tables["source"].get(name, {}), **one}
        for name, one in (table.get("registries") or {}).items():
            if "index" in one:
                self.tables["registries"][name] = {"index": one["index"]}
        if default := (table.get("registry") or {}).get("default"):
            self.tables["registry"]["default"] = default

    def placed(self, folder: Path) -> str:
        """Give a folder its place during the build. Raises UsageProblem when there is none."""
        if not folder.is_dir():
            raise UsageProblem(f"{folder}, which cargo's configuration names, is no folder.")
        self.folders.append(folder.resolve())
        return f"{SOURCES}/{len(self.folders) - 1}"


def configurations(folder: Path) -> Iterator[Path]:
    """List cargo's configuration files for a folder, the nearest first."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    above = [one / ".cargo" for one in (folder, *folder.parents)]
    for place in dict.fromkeys([*above, home]):
        for name in ("config.toml", "config"):
            if (place / name).is_file():
                yield place / name
                break
