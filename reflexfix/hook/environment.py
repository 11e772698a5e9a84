"""What a project's tests need beside Python and pytest, and the image that has it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from reflexfix.containers import crates
from reflexfix.containers import image as images
from reflexfix.containers import workspace as workspaces
from reflexfix.containers.engine import Engine
from reflexfix.containers.workspace import Workspace
from reflexfix.errors import SandboxTrouble, UsageProblem
from reflexfix.hook import plan as plans
from reflexfix.hook.plan import Plan
from reflexfix.hook.settings import Settings, pyproject
from reflexfix.hook.tree import LINK, Tree

TEST_EXTRAS = ("test", "tests", "testing")
FILES = ("requirements.txt", "requirements-test.txt", "requirements-tests.txt",
         "requirements-dev.txt", "test-requirements.txt", "dev-requirements.txt",
         "requirements/test.txt", "requirements/tests.txt", "requirements/dev.txt")  # fmt: skip
PREPARE = "reflexfix hook --prepare"
_NAME = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_OLD_PYTEST = re.compile(r"^pytest\s*(?:>=\s*[0-8](?:\.\d+)*)?$", re.IGNORECASE)

DISTRIBUTIONS = {
    "attr": "attrs", "bs4": "beautifulsoup4", "cv2": "opencv-python-headless", "dateutil":
    "python-dateutil", "dotenv": "python-dotenv", "git": "GitPython", "jose": "python-jose",
    "jwt": "PyJWT", "OpenSSL": "pyOpenSSL", "PIL": "Pillow", "pkg_resources": "setuptools",
    "serial": "pyserial", "skimage": "scikit-image", "sklearn": "scikit-learn", "yaml": "PyYAML",
    "zmq": "pyzmq",
}  # fmt: skip
"""Packages whose name is not that of the module that they bring."""


@dataclass(frozen=True)
class Need:
    """What the tests of a project need."""

    packages: tuple[str, ...] = ()
    dockerfile: bytes = b""
    is_rust: bool = False
    workspace: Workspace | None = None
    """What a Rust project takes from elsewhere."""

    @property
    def recipe(self) -> images.Recipe:
        if self.is_rust:
            return images.Recipe("cargo", workspace=self.workspace)
        return images.Recipe("python", self.packages, dockerfile=self.dockerfile)


class NotPrepared(SandboxTrouble):
    """The image that the tests need is not built yet."""


def need(tree: Tree, settings: Settings, how: Plan | None = None) -> Need:
    """Find out what the tests need: what is set, else what the project declares.

    `how` says how they are run, where that is known already.
    """
    how = how or plans.plan(tree, settings.tests)
    if how.kind == "cargo":
        files = {path: file.data for path, file in tree.files.items() if file.mode != LINK}
        return Need(is_rust=True, workspace=workspaces.of(files, next(iter(how.roots), "")))
    dockerfile = tree.read(settings.dockerfile) if settings.dockerfile else b""
    if dockerfile is None:
        raise UsageProblem(f"tool.reflexfix.hook.dockerfile: there is no {settings.dockerfile}.")
    packages = settings.packages if settings.packages is not None else declared(tree)
    wanted = dict.fromkeys(one.strip() for one in packages if not _OLD_PYTEST.match(one.strip()))
    return Need(tuple(sorted(wanted)), dockerfile)


def declared(tree: Tree) -> tuple[str, ...]:
    """List what the project says that it and its tests need."""
    data = pyproject(tree)
    project = data.get("project", {})
    found = [*project.get("dependencies", []), *in_extras(project.get("optional-dependencies", {}))]
    found += in_groups(data.get("dependency-groups", {}))
    sandbox = data.get("tool", {}).get("reflexfix", {}).get("sandbox", {})
    found += sandbox.get("packages", []) if isinstance(sandbox, dict) else []
    for path in FILES:
        found += in_requirements(tree, path)
    own = normal(str(project.get("name", "")))
    return tuple(one for one in found if isinstance(one, str) and name_of(one) != own)


def in_extras(extras: Mapping[str, Any]) -> list[str]:
    """Take the extras for tests; `dev` where there are none."""
    named = [name for name in extras if name.lower() in TEST_EXTRAS] or ["dev"]
    return [one for name in named for one in extras.get(name, [])]


def in_groups(groups: Mapping[str, Any]) -> list[str]:
    """The same of dependency groups, which can include each other."""
    named = [name for name in groups if name.lower() in TEST_EXTRAS] or ["dev"]
    found: list[str] = []
    seen: set[str] = set()
    while named:
        name = named.pop()
        if name in seen:
            continue
        seen.add(name)
        for one in groups.get(name, []):
            if isinstance(one, dict):
                named.append(str(one.get("include-group", "")))
            else:
                found.append(one)
    return found


def in_requirements(tree: Tree, path: str, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """Read a requirements file, and those that it names; the project itself is left out."""
    if path in seen or tree.read(path) is None:
        return
    text = tree.text(path).replace("\\\n", " ")
    for raw in text.splitlines():
        line = re.sub(r"(^|\s)#.*$", "", raw).strip()
        line = re.split(r"\s--hash=", line)[0].strip()
        inner = re.match(r"(?:-r|--requirement)[ =]\s*(\S+)", line)
        if inner:
            beside = str(PurePosixPath(path).parent / inner[1])
            yield from in_requirements(tree, beside, seen | {path})
        elif line and not line.startswith(("-", ".", "/")):
            yield line


def name_of(requirement: str) -> str:
    found = _NAME.match(requirement.strip())
    return normal(found[0]) if found else ""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


# ---------------------------------------------------------------- the image


def ready(engine: Engine, wanted: Need) -> str:
    """Give the id of the image. Raises NotPrepared: nothing is ever built during a commit."""
    found = images.find(engine, wanted.recipe)
    if found is None:
        names = wanted.workspace.names if wanted.workspace else wanted.packages
        what = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        raise NotPrepared(
            f"The image for the tests is not built{f' ({what})' if what else ''}.",
            hint=f"run: {PREPARE}",
        )
    return found


def prepare(engine: Engine, wanted: Need, top: Path) -> Iterator[str]:
    """Build the image, saying each step. Raises SandboxTrouble with what failed.

    `top` is the project's folder: its cargo configuration says where crates come from.
    """
    if wanted.workspace is not None:
        from_where = crates.source(top / wanted.workspace.root)
        wanted = replace(wanted, workspace=replace(wanted.workspace, source=from_where))
    yield from images.build(engine, wanted.recipe)
    yield f"the image for the tests is ready ({wanted.recipe.tag})"


# ---------------------------------------------------------------- what it lacks all the same


def lacking(tree: Tree, missing: Mapping[str, str]) -> dict[str, str]:
    """Of the modules that tests did not find, give those that are not the project's own."""
    tops = {path.split("/")[0].removesuffix(".py") for path in tree.files}
    tops |= {p.split("/")[1].removesuffix(".py") for p in tree.files if p.startswith("src/")}
    return {test: name for test, name in missing.items() if name.split(".")[0] not in tops}


def line_to_add(settings: Settings, wanted: Need, modules: Iterable[str]) -> str:
    """Give the line of pyproject.toml that brings these modules."""
    names = [module.split(".")[0] for module in modules]
    new = [DISTRIBUTIONS.get(name, name) for name in names]
    every = dict.fromkeys([*wanted.packages, *new])
    listed = ", ".join(f'"{name}"' for name in every)
    return f"[tool.reflexfix.hook] packages = [{listed}]"


@contextlib.contextmanager
def connected() -> Iterator[Engine]:
    """Connect to the engine for as long as the `with` lasts. Raises SandboxTrouble."""
    from reflexfix.containers import engine as engines

    with contextlib.closing(engines.connect()) as engine:
        yield engine
