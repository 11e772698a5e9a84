"""Crates inside an image's build: fetch them, build them, and note what the compiler is told.

    crates.py fetch         with the network of the build, nothing is run
    crates.py build         offline; the only place where build scripts run
    crates.py note RUSTC .. called by cargo in the compiler's place
    crates.py vendor ROOT   the same for a whole project, whose tests cargo itself will build:
    crates.py prepare ROOT  all crates that any of its packages asks for, as its tests need them

What cargo tells the compiler of the user's crate (which library is which crate, where they lie,
which features hold) is kept in USE; the image that runs candidates gets that and the libraries.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

FOLDER = Path("/crates")
PROJECT = FOLDER / "project"
TARGET = FOLDER / "target"
READY = FOLDER / "ready"
NOTED = FOLDER / "noted.json"
VENDOR = FOLDER / "vendor"
CONFIG = FOLDER / "config.toml"
USE = FOLDER / "use.json"
"""In the image that runs candidates."""
MARK = "reflexfix-crates: "
"""What the one line that says what went wrong begins with."""
PAIRS = ("--extern", "-L", "-l", "--cfg", "--check-cfg")


def main(arguments: list[str]) -> None:
    if arguments[0] == "note":
        note(arguments[1:])
    elif arguments[0] == "fetch":
        fetch()
    elif arguments[0] == "vendor":
        vendor(arguments[1])
    elif arguments[0] == "prepare":
        prepare(arguments[1])
    else:
        build()


def fetch() -> None:
    (PROJECT / "lib.rs").write_text("")
    cargo("cannot get the crates", "fetch")


def build() -> None:
    """Build what tests of the user's crate could use, then keep what the compiler needs of it."""
    wrapper = FOLDER / "note"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} note "$@"\n')
    wrapper.chmod(0o755)
    more = ["test", "--no-run", "--lib", "--release", "--offline"]
    known = {"RUSTC_WORKSPACE_WRAPPER": str(wrapper), "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1"}
    cargo("cannot build the crates", *more, **known)
    keep(json.loads(NOTED.read_text()))


def vendor(root: str) -> None:
    """Get the crates of a project into one folder, and note how cargo finds them there."""
    how = ["vendor", "--respect-source-config", "--versioned-dirs", str(VENDOR)]
    said = cargo("cannot get the crates", *how, root=root)
    VENDOR.mkdir(exist_ok=True)
    CONFIG.write_text(said)


def prepare(root: str) -> None:
    """Build these crates as the project's tests will ask for them; its own code is not here."""
    cargo("cannot build the crates", *TEST, *configured(CONFIG), "--tests", root=root, **PROFILE)


TEST = ("test", "--no-run", "--offline")
PROFILE = {
    "CARGO_INCREMENTAL": "0",
    "CARGO_PROFILE_DEV_DEBUG": "0",
    "CARGO_PROFILE_TEST_DEBUG": "0",
}
"""How a project's tests are built, here and when they are run: what is built here is used then."""


def configured(config: Path) -> list[str]:
    """Say how cargo links, and where crates from elsewhere lie."""
    linked = """target.'cfg(all())'.rustflags=["-Clink-arg=-fuse-ld=lld"]"""
    more = [str(config)] if config.exists() else []
    return [word for one in (linked, *more) for word in ("--config", one)]


def cargo(trouble: str, *arguments: str, root: str = ".", **environment: str) -> str:
    """Run cargo, and give what it said; when it fails, end with one line that tells why."""
    known = {"CARGO_HOME": str(FOLDER / "home"), "CARGO_TARGET_DIR": str(TARGET)}
    known |= {"CARGO_NET_RETRY": "1", "CARGO_HTTP_TIMEOUT": "20", "CARGO_TERM_COLOR": "never"}
    done = subprocess.run(
        ["cargo", *arguments],
        cwd=PROJECT / root,
        env={**os.environ, **known, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    print(done.stderr)
    if done.returncode:
        sys.exit(f"{MARK}{trouble}: {reason(done.stderr)}")
    return done.stdout


def reason(said: str) -> str:
    """Say in one line why cargo failed: its error, and what lies at the bottom of it."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error")]
    bottom = [lines[n + 1] for n, line in enumerate(lines[:-1]) if line == "Caused by:"]
    parts = [*errors[:1], *bottom[-1:]] or lines[-1:]
    return "; ".join(part.removeprefix("error: ") for part in parts)[:400]


def note(command: list[str]) -> NoReturn:
    """Keep what cargo tells the compiler of the user's crate, and be the compiler."""
    if "--test" in command and os.environ.get("CARGO_PRIMARY_PACKAGE"):
        NOTED.write_text(json.dumps(command[1:]))
    os.execvp(command[0], command)


def keep(told: list[str]) -> None:
    """Lay out libraries and USE as the image that runs candidates will have them."""
    deps = TARGET / "release" / "deps"
    (READY / "deps").mkdir(parents=True)
    for library in [*deps.glob("*.rlib"), *deps.glob("*.so")]:
        shutil.copy(library, READY / "deps")
    arguments = [text.replace(str(deps), str(FOLDER / "deps")) for text in kept(told)]
    for number, out in enumerate(sorted((TARGET / "release" / "build").glob("*/out"))):
        if any(str(out) in text for text in arguments):
            shutil.copytree(out, READY / "native" / str(number), symlinks=True)
            new = str(FOLDER / "native" / str(number))
            arguments = [text.replace(str(out), new) for text in arguments]
    pairs = itertools.pairwise(arguments)
    names = [text.partition("=")[0] for flag, text in pairs if flag == "--extern"]
    (READY / USE.name).write_text(json.dumps({"names": names, "arguments": arguments}))


def kept(told: list[str]) -> Iterator[str]:
    """Leave out what a compilation of ours says itself."""
    for flag, value in itertools.pairwise(told):
        if flag in PAIRS:
            yield from (flag, value)


if __name__ == "__main__":
    main(sys.argv[1:])
