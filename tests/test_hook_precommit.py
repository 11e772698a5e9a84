"""The hook through the real pre-commit program, in a real repository with a real failing test."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT
from endpoint import Endpoint, scripted, serving
from hookrepo import CALC, RIGHT, USELESS, WRONG, Repo

pytestmark = [pytest.mark.container, pytest.mark.usefixtures("sandbox_image")]


@pytest.fixture(scope="session")
def pre_commit() -> list[str]:
    program = Path(sys.executable).parent / "pre-commit"
    if not program.exists():
        pytest.skip("pre-commit is not installed: pip install -e '.[dev]'")
    return [str(program)]


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """This checkout as it stands, as a repository that pre-commit can clone; and its revision."""
    folder = tmp_path_factory.mktemp("source")
    repo = Repo(folder)
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "as it stands")
    return folder, repo.git("rev-parse", "HEAD").strip()


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps the environment that it installs once."""
    return tmp_path_factory.mktemp("pre-commit-home")


@pytest.fixture
def repo(
    tmp_path: Path, pre_commit: list[str], source: tuple[Path, str], home: Path
) -> Iterator[Repo]:
    made = Repo(tmp_path / "a project")
    made.env |= {"PRE_COMMIT_HOME": str(home)}
    made.env.pop("PYTHONPATH", None)
    made.committed()
    folder, rev = source
    made.stage(
        {".pre-commit-config.yaml": f"repos: [{{repo: '{folder}', rev: '{rev}', "
         "hooks: [{id: reflexfix}]}]\n"}
    )  # fmt: skip
    made.git("commit", "-q", "-m", "use the hook")
    done = subprocess.run(
        [*pre_commit, "install", "--install-hooks"], cwd=made.folder, env=made.env,
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    yield made


@pytest.fixture
def model() -> Iterator[Endpoint]:
    answers = scripted(improve=[RIGHT], reflect=["Two, not three."])
    with serving(answers) as endpoint:
        yield endpoint


def settled(repo: Repo) -> dict[str, str]:
    repo.settle()
    return repo.state()


def commit(repo: Repo, endpoint: Endpoint, *more: str, code: int) -> str:
    return repo.git("commit", "-m", "x", *more, code=code, OPENAI_BASE_URL=endpoint.url)


def test_passing_tests_let_the_commit_through(repo: Repo, model: Endpoint) -> None:
    repo.stage({"shop/calc.py": CALC + "\n\nMORE = 1\n"})
    tracked = repo.git("ls-files", "-s")
    said = commit(repo, model, code=0)
    assert "Passed" in said and model.asked == []
    assert repo.git("ls-files", "-s") == tracked
    assert repo.git("status", "--porcelain") == ""


def test_failing_tests_fail_the_commit_and_leave_a_patch(repo: Repo, model: Endpoint) -> None:
    repo.stage({"shop/calc.py": WRONG})
    before = settled(repo)
    said = commit(repo, model, code=1)
    assert repo.state() == before
    assert "2 of 2 failed" in said and "tests/test_calc.py::test_double" in said
    assert "mended: shop/calc.py: double (changed in this commit" in said
    assert "-    return x * 3\n+    return x * 2\n" in said
    (patch,) = repo.patches()
    assert f"git apply .reflexfix/patches/{patch.name}" in said
    repo.git("apply", str(patch))
    assert (repo.folder / "shop/calc.py").read_text() == CALC
    repo.git("add", "-u")
    assert repo.git("diff", "--cached", "HEAD") == ""


def test_what_cannot_be_fixed_fails_the_commit_without_a_patch(repo: Repo) -> None:
    repo.stage({"shop/calc.py": WRONG})
    before = settled(repo)
    with serving(scripted(improve=[USELESS], reflect=["No.", "Think.", "Hm."])) as endpoint:
        said = commit(repo, endpoint, code=1)
    assert repo.state() == before
    assert "no fix was found" in said and repo.patches() == []


def test_a_flaky_test_is_reported_and_not_repaired(repo: Repo, model: Endpoint) -> None:
    # it fails in the first process of a container's life that runs the whole suite, and only there
    text = (
        "import sys\nfrom shop.calc import double\n\n\ndef test_now_and_then():\n"
        "    assert double(1) == 2\n"
        "    assert sys.monitoring.get_tool(4) or len(sys.argv) > 99 or first()\n\n\n"
        "def first():\n    return False\n"
    )
    repo.stage({"tests/test_flaky.py": text})
    before = settled(repo)
    said = commit(repo, model, code=1)
    assert repo.state() == before
    assert "flaky: tests/test_flaky.py::test_now_and_then" in said
    assert model.asked == [] and repo.patches() == []


def test_a_missing_package_is_trouble_with_the_line_to_add(repo: Repo, model: Endpoint) -> None:
    repo.stage({"shop/calc.py": "import yaml\n" + CALC})
    before = settled(repo)
    said = commit(repo, model, code=1)
    assert repo.state() == before
    assert 'add to pyproject.toml: [tool.reflexfix.hook] packages = ["PyYAML"]' in said
    assert "reflexfix hook --prepare" in said
    assert model.asked == [] and repo.patches() == []


def test_an_image_that_is_not_prepared_is_said_and_never_built(repo: Repo, model: Endpoint) -> None:
    packages = '[tool.reflexfix.hook]\npackages = ["a-package-that-nobody-has==7"]\n'
    repo.stage({"pyproject.toml": packages, "shop/calc.py": WRONG})
    tracked = repo.git("ls-files", "-s")
    said = commit(repo, model, "-v", code=0)
    assert repo.git("ls-files", "-s") == tracked
    assert model.asked == [] and repo.patches() == []
    assert "Passed" in said
    repo.stage({"pyproject.toml": packages + 'on-trouble = "fail"\n'})
    before = settled(repo)
    said = commit(repo, model, code=1)
    assert "not tested" in said and "run: reflexfix hook --prepare" in said
    assert repo.state() == before


def test_unstaged_edits_and_untracked_files_neither_leak_in_nor_get_lost(
    repo: Repo, model: Endpoint
) -> None:
    repo.stage({"shop/calc.py": WRONG})
    repo.write(
        {"shop/calc.py": WRONG.replace("x * 3", "x * 2"), "tests/test_calc.py": "broken(\n",
         "tests/test_new.py": "def test_untracked():\n    assert False\n"}
    )  # fmt: skip
    before = repo.state(whole_index=False)
    said = commit(repo, model, code=1)
    assert repo.state(whole_index=False) == before
    assert "2 of 2 failed" in said and "untracked" not in said
    (patch,) = repo.patches()
    assert "-    return x * 3" in patch.read_text()


def test_write_is_refused_under_pre_commit(repo: Repo, model: Endpoint) -> None:
    repo.stage({"shop/calc.py": WRONG})
    before = settled(repo)
    said = repo.git("commit", "-m", "x", code=1, OPENAI_BASE_URL=model.url, REFLEXFIX_WRITE="1")
    assert "--write is refused under pre-commit" in said
    assert repo.state() == before
