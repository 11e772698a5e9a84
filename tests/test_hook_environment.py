"""What the tests of a project need is built ahead, by `--prepare` alone, and found again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hookrepo import Repo

from reflexfix.containers import image as images
from reflexfix.containers.engine import Engine
from reflexfix.hook import environment

pytestmark = [pytest.mark.container, pytest.mark.usefixtures("sandbox_image")]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "a project")


def test_packages_are_fetched_when_the_image_is_prepared_and_no_other_time(
    repo: Repo, engine: Engine
) -> None:
    tests = "import toolz\n\n\ndef test_it():\n    assert toolz.identity(1) == 1\n"
    repo.stage({"test_it.py": tests, "requirements.txt": "toolz\n"})
    need = environment.Need(("toolz",))
    forget(engine, need)
    code, said = repo.hook()
    assert code == 0 and "not tested" in said and "run: reflexfix hook --prepare" in said
    code, said = repo.hook("--prepare")
    assert code == 0, said
    try:
        code, said = repo.hook()
        assert code == 0 and "tests: 1 passed" in said, said
        repo.stage({"requirements.txt": "toolz>=0.1\n"})
        code, said = repo.hook()
        assert "not tested" in said
    finally:
        forget(engine, need)


def test_a_dockerfile_of_the_projects_own_is_built_upon(repo: Repo, engine: Engine) -> None:
    text = b"ARG BASE\nFROM ${BASE}\nUSER root\nRUN echo here > /etc/own-file\n"
    settings = '[tool.reflexfix.hook]\ndockerfile = "Dockerfile.tests"\n'
    tests = "import os\n\n\ndef test_it():\n    assert open('/etc/own-file').read() == 'here\\n'\n"
    tests += "    assert os.getuid() == 65534\n"
    repo.stage({"test_it.py": tests, "pyproject.toml": settings, "Dockerfile.tests": text})
    need = environment.Need((), text)
    try:
        code, said = repo.hook("--prepare")
        assert code == 0, said
        code, said = repo.hook()
        assert code == 0 and "tests: 1 passed" in said, said
    finally:
        forget(engine, need)


def forget(engine: Engine, need: environment.Need) -> None:
    """Remove the image of these needs, and only that."""
    if images.find(engine, need.recipe):
        engine.client.images.remove(need.recipe.tag)
