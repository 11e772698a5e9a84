"""Build the image in which tests run, once, and again only when what it is made of changes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from docker.errors import APIError, BuildError, DockerException, ImageNotFound

from reflexfix import __version__, assets, program
from reflexfix.containers.crates import Crates
from reflexfix.containers.engine import Engine, speaking
from reflexfix.containers.workspace import Workspace
from reflexfix.errors import SandboxTrouble

REPOSITORY = "reflexfix-sandbox"
BASE = "debian:trixie-slim"
SUITE = "trixie"
PYTHON = "3.13"
"""The Python of the image, for which packages are chosen."""


@dataclass(frozen=True)
class Recipe:
    """What an image is made from; its tag is the hash of all that."""

    stage: str = "python"
    packages: tuple[str, ...] = ()
    """Requirements of the user's files, as pip writes them."""
    crates: Crates | None = None
    """What a Rust crate takes from outside."""
    workspace: Workspace | None = None
    """A Rust project whose tests take crates from outside."""
    dockerfile: bytes = b""
    """A user's own file, which builds on `${BASE}`: the image without these packages."""

    @property
    def plain_tag(self) -> str:
        digest = sha256(assets.dockerfile())
        for name, data in assets.sandbox_files().items():
            digest.update(name.encode() + b"\0" + data + b"\0")
        return f"{REPOSITORY}:{self.stage}-{digest.hexdigest()[:16]}"

    @property
    def tag(self) -> str:
        if layer := self.crates or self.workspace:
            return f"{self.plain_tag}-{layer.digest}"
        if not self.packages and not self.dockerfile:
            return self.plain_tag
        wanted = "\n".join(sorted(self.packages)).encode()
        if self.dockerfile:
            wanted += b"\0" + self.dockerfile
        return f"{self.plain_tag}-{sha256(wanted).hexdigest()[:12]}"


def find(engine: Engine, recipe: Recipe) -> str | None:
    """Give the id of the image if it is there already."""
    with speaking(engine):
        try:
            return str(engine.client.images.get(recipe.tag).id)
        except ImageNotFound:
            return None


def base_of(engine: Engine, image: str) -> str:
    """Say what an image was built on: a registry's digest, or the id of a base made here."""
    with speaking(engine):
        found = engine.client.images.get(image)
    return str(found.labels.get("reflexfix.base", ""))


def build(engine: Engine, recipe: Recipe) -> Iterator[str]:
    """Build the image, saying each step. Raises SandboxTrouble with the step that failed."""
    with speaking(engine):
        yield from _build_steps(engine, recipe)


def _build_steps(engine: Engine, recipe: Recipe) -> Iterator[str]:
    if not find(engine, Recipe(recipe.stage)):
        yield from _build_plain(engine, Recipe(recipe.stage))
    if recipe.dockerfile and not find(engine, recipe):
        yield from _build_on_top(engine, recipe)
    elif recipe.packages and not find(engine, recipe):
        yield from _add_packages(engine, recipe, recipe.plain_tag)
    if recipe.crates is not None and not find(engine, recipe):
        yield from _add_crates(engine, recipe, recipe.crates)
    if recipe.workspace is not None and not find(engine, recipe):
        yield from _add_workspace(engine, recipe, recipe.workspace)


def _build_plain(engine: Engine, recipe: Recipe) -> Iterator[str]:
    yield from ensure_base(engine)
    yield f"building {recipe.tag}: {_WHAT[recipe.stage]} ({COST[recipe.stage]})"
    base = engine.client.images.get(BASE)
    digests = base.attrs.get("RepoDigests") or []
    labels = {
        "reflexfix.version": __version__,
        "reflexfix.base": str(digests[0] if digests else base.id),
    }
    files = {"Dockerfile.sandbox": assets.dockerfile(), **assets.sandbox_files()}
    build_with_network(engine, files, recipe, labels)


_WHAT = {
    "python": "Python and pytest from Debian's packages",
    "rust": "Python, rustc and lld from Debian's packages",
    "cargo": "cargo from Debian's packages, which builds crates",
}
COST = {"python": "a minute, 0.2 GB", "rust": "minutes, 1 GB", "cargo": "a minute, 0.1 GB more"}
"""How long a build takes about, and what it leaves on the disk, by stage."""


def build_with_network(
    engine: Engine,
    files: Mapping[str, bytes | Path],
    recipe: Recipe,
    labels: dict[str, str],
    **more: Any,
) -> None:
    """Build over the engine's bridge; over the host's network where the bridge leads nowhere."""
    try:
        _build(engine, files, recipe, labels, network=None, **more)
    except BuildError:
        try:
            _build(engine, files, recipe, labels, network="host", **more)
        except BuildError as error:
            raise _trouble(error) from error


CRATES_MARK = "reflexfix-crates: "
"""How sandbox/crates.py begins the line that says what went wrong."""
_CRATES_HINT = (
    "crates come from where the crate's .cargo/config.toml says, else from crates.io; "
    "--crate-source DIR takes a folder that `cargo vendor` made"
)


def _build(
    engine: Engine,
    files: Mapping[str, bytes | Path],
    recipe: Recipe,
    labels: dict[str, str],
    network: str | None,
    tag: str = "",
    arguments: dict[str, str] | None = None,
) -> None:
    with tempfile.TemporaryFile(prefix="reflexfix-context-") as packed:
        _pack(files, packed)
        engine.client.images.build(
            fileobj=packed,
            custom_context=True,
            dockerfile="Dockerfile.sandbox",
            tag=tag or recipe.tag,
            target=recipe.stage or None,
            buildargs=arguments,
            rm=True,
            forcerm=True,
            network_mode=network,
            use_config_proxy=True,
            labels=labels,
        )


def _pack(files: Mapping[str, bytes | Path], packed: IO[bytes]) -> None:
    """Pack a build context, the same bytes for the same files; a path is a folder of them."""
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in files.items():
            if isinstance(data, Path):
                archive.add(data, name, filter=_anonymous)
                continue
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    packed.seek(0)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out whose a file is and how old: nothing of that is to reach an image."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def _lines_of(error: BuildError) -> list[str]:
    """List what a failed build said; the log can be read once."""
    log = [str(step.get("stream") or step.get("error") or "") for step in error.build_log]
    return [line for text in log for line in text.strip().splitlines() if line]


def _trouble(error: BuildError) -> SandboxTrouble:
    """Say why a build failed: what cargo has against the crates, or else its last line."""
    lines = _lines_of(error)
    if said := [line.partition(CRATES_MARK)[2] for line in lines if CRATES_MARK in line]:
        return SandboxTrouble(f"cargo {said[-1][:500]}", hint=_CRATES_HINT)
    last = lines[-1][:300] if lines else str(error)
    return SandboxTrouble(
        f"The image could not be built: {last}",
        hint="the build needs Debian's package mirror; see `reflexfix sandbox build`",
    )


# ---------------------------------------------------------------- the base image


def ensure_base(engine: Engine) -> Iterator[str]:
    """Have the base image: it is there, or a registry gives it, or debootstrap makes it."""
    if _has(engine, BASE):
        return
    yield f"fetching {BASE}"
    try:
        engine.client.images.pull(BASE)
    except (APIError, DockerException) as error:
        yield f"no registry gives {BASE} ({_short(error)}); making it with debootstrap"
        yield from debootstrap(engine)


def _has(engine: Engine, tag: str) -> bool:
    try:
        engine.client.images.get(tag)
    except ImageNotFound:
        return False
    return True


def _short(error: Exception) -> str:
    return str(getattr(error, "explanation", None) or error).splitlines()[0][:120]


def debootstrap(engine: Engine) -> Iterator[str]:
    """Make the base image from the machine's own Debian mirror. Needs root and debootstrap."""
    _can_debootstrap()
    with tempfile.TemporaryDirectory(prefix="reflexfix-base-") as folder:
        root = Path(folder, "root")
        yield f"debootstrap {SUITE} from {mirror()} (about a minute)"
        _run(["debootstrap", "--variant=minbase", SUITE, str(root), mirror()])
        shutil.rmtree(root / "var/cache/apt/archives", ignore_errors=True)
        yield f"importing it as {BASE}"
        _import(engine, root)


def _can_debootstrap() -> None:
    if os.geteuid() != 0:
        raise SandboxTrouble(
            f"The base image {BASE} is not here, no registry gives it, and making it needs root.",
            hint="run `sudo reflexfix sandbox build` once, or `docker pull` it from a mirror",
        )
    if shutil.which("debootstrap") is None:
        raise SandboxTrouble(
            f"The base image {BASE} is not here, no registry gives it, and debootstrap is missing.",
            hint="apt-get install debootstrap, then `reflexfix sandbox build`",
        )


def mirror() -> str:
    """Read the address of the Debian mirror that this machine's apt uses."""
    for path in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]:
        for line in _lines(path):
            words = line.replace("URIs:", "deb ").split()
            urls = [w for w in words[1:] if w.startswith("http")]
            if words[:1] == ["deb"] and urls and "debian" in urls[0] and "security" not in urls[0]:
                return urls[0].rstrip("/")
    raise SandboxTrouble(
        "No Debian mirror stands in this machine's apt sources.",
        hint=f"load the image {BASE} yourself: `docker load` or `docker import`",
    )


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def _run(command: list[str]) -> None:
    done = program.run(command)
    if done.returncode:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:] or ["no output"]
        raise SandboxTrouble(f"{command[0]} failed: {last[0][:300]}")


def _import(engine: Engine, root: Path) -> None:
    """Pack a root file system, without the device files, and hand it to the engine.

    It is named afterwards: Podman 4.3 takes the name of an import, and not its tag.
    """
    pack = ["tar", "-C", str(root), "--numeric-owner", "--exclude=./dev/*", "-c", "."]
    with subprocess.Popen(pack, stdout=subprocess.PIPE) as tar:
        assert tar.stdout is not None
        said = engine.client.api.import_image_from_data(tar.stdout, changes=['CMD ["bash"]'])
    made = json.loads(said.strip().splitlines()[-1])
    if "status" not in made:
        raise SandboxTrouble(f"The engine did not import {BASE}: {str(made)[:300]}")
    repository, tag = BASE.split(":")
    engine.client.api.tag(str(made["status"]).strip(), repository, tag)


# ---------------------------------------------------------------- packages of the user's files


def _add_packages(engine: Engine, recipe: Recipe, base: str) -> Iterator[str]:
    """Put packages into a layer of their own; pip's own configuration decides where from."""
    yield f"adding {', '.join(recipe.packages)}"
    with tempfile.TemporaryDirectory(prefix="reflexfix-packages-") as folder:
        _download(folder, recipe.packages)
        files = {
            f"packages/{p.relative_to(folder)}": p.read_bytes()
            for p in sorted(Path(folder).rglob("*"))
            if p.is_file()
        }
    files["Dockerfile.sandbox"] = (
        f"FROM {base} AS {recipe.stage}\n"
        f"COPY packages/ /usr/local/lib/python{PYTHON}/dist-packages/\n"
    ).encode()
    build_with_network(engine, files, recipe, {"reflexfix.packages": " ".join(recipe.packages)})


def _build_on_top(engine: Engine, recipe: Recipe) -> Iterator[str]:
    """Build a user's own file on the plain image, then the packages on that; the entry is ours."""
    yield "building the project's own Dockerfile"
    between = f"{recipe.tag}-own"
    own = recipe.dockerfile.rstrip() + (
        b"\nUSER 65534:65534\nWORKDIR /tmp\n"
        b'ENTRYPOINT ["/usr/bin/python3", "-s", "-P", "-u", "/sandbox/supervisor.py"]\n'
    )
    labels = {"reflexfix.dockerfile": sha256(recipe.dockerfile).hexdigest()}
    arguments = {"BASE": recipe.plain_tag}
    tag = between if recipe.packages else recipe.tag
    files = {"Dockerfile.sandbox": own}
    build_with_network(engine, files, Recipe(""), labels, tag=tag, arguments=arguments)
    if recipe.packages:
        yield from _add_packages(engine, recipe, between)


def _download(folder: str, packages: tuple[str, ...]) -> None:
    """Fetch wheels that fit the image and unpack them; nothing of them is run here."""
    machine = platform.machine().replace("arm64", "aarch64")
    platforms = [
        word
        for level in ("2_17", "2_28", "2_34", "2014")
        for word in ("--platform", f"manylinux{'' if level == '2014' else '_'}{level}_{machine}")
    ]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder]
    command += ["--python-version", PYTHON, "--implementation", "cp", *platforms]
    command += ["--only-binary=:all:", "--disable-pip-version-check", *packages]
    done = program.run(command)
    if done.returncode:
        errors = [x for x in done.stderr.splitlines() if "ERROR" in x] or done.stderr.splitlines()
        raise SandboxTrouble(
            f"pip could not get {', '.join(packages)} for Python {PYTHON}: {errors[-1][:200]}",
            hint="check the name; only packages with a wheel for Linux can be added",
        )


# ---------------------------------------------------------------- crates of the user's crate


def _add_crates(engine: Engine, recipe: Recipe, crates: Crates) -> Iterator[str]:
    """Build crates in a stage of their own, and put the libraries into a layer.

    They are fetched with the network of the build; build scripts run in the step after that.
    """
    cargo = Recipe("cargo")
    if not find(engine, cargo):
        yield from _build_plain(engine, cargo)
    if crates.left_out:
        yield f"left out, for they are folders: {', '.join(crates.left_out)}"
    yield f"building the crates {', '.join(crates.names)} of {crates.folder} into {recipe.tag}"
    dockerfile = _CRATES_STAGES.format(cargo=cargo.tag, stage=recipe.stage, rust=recipe.plain_tag)
    files: dict[str, bytes | Path] = {"Dockerfile.sandbox": dockerfile.encode()}
    files |= dict(crates_context(crates))
    build_with_network(engine, files, recipe, {"reflexfix.crates": " ".join(crates.names)})


_CRATES_STAGES = """
FROM {cargo} AS crates
LABEL reflexfix.stage=crates
COPY crates/ /crates/
RUN python3 /sandbox/crates.py fetch
RUN python3 /sandbox/crates.py build
FROM {rust} AS {stage}
COPY --from=crates /crates/ready/ /crates/
"""


def _add_workspace(engine: Engine, recipe: Recipe, workspace: Workspace) -> Iterator[str]:
    """Have cargo get and build the crates of a project, without the project's code."""
    yield f"building the crates {', '.join(workspace.names)} into {recipe.tag}"
    dockerfile = _WORKSPACE_STAGES.format(cargo=recipe.plain_tag, root=workspace.root or ".")
    files = {"Dockerfile.sandbox": dockerfile.encode(), **dict(workspace.context())}
    build_with_network(engine, files, recipe, {"reflexfix.crates": " ".join(workspace.names)})


_WORKSPACE_STAGES = """
FROM {cargo} AS crates
LABEL reflexfix.stage=crates
COPY crates/ /crates/
RUN python3 /sandbox/crates.py vendor {root}
RUN python3 /sandbox/crates.py prepare {root}
FROM {cargo} AS cargo
COPY --from=crates /crates/config.toml /crates/config.toml
COPY --from=crates /crates/vendor/ /crates/vendor/
COPY --from=crates /crates/target/ /crates/target/
"""


def crates_context(crates: Crates) -> Iterator[tuple[str, bytes | Path]]:
    """List what the build of the crates is given, by path."""
    yield "crates/project/Cargo.toml", crates.manifest.encode()
    if crates.lock:
        yield "crates/project/Cargo.lock", crates.lock.encode()
    yield "crates/project/.cargo/config.toml", crates.source.config.encode()
    for number, folder in enumerate(crates.source.folders):
        yield f"crates/sources/{number}", folder


# ---------------------------------------------------------------- cleaning


def images(engine: Engine) -> list[Any]:
    """List the images that this tool made."""
    with speaking(engine):
        stages = {"dangling": True, "label": "reflexfix.stage=crates"}
        return [
            *engine.client.images.list(name=REPOSITORY),
            *engine.client.images.list(filters=stages),
        ]


def remove_images(engine: Engine) -> int:
    """Remove the images that this tool made, and say how many bytes that frees at most."""
    found = images(engine)
    for image in found:
        for name in image.tags or [image.id]:
            with contextlib.suppress(ImageNotFound):  # it went with another one
                engine.client.images.remove(name, force=True)
    return sum(int(image.attrs.get("Size", 0)) for image in found)
