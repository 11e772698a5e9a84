"""What is tested is what is staged, whichever way git commits, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT
from hookrepo import CALC, WRONG, Repo

from reflexfix.errors import UsageProblem
from reflexfix.hook import git, tree

SUITE = "tests/test_calc.py"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "a project")


def staged(repo: Repo, monkeypatch: pytest.MonkeyPatch, **env: str) -> tree.Tree:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    found = git.find(repo.folder)
    assert found is not None
    return tree.staged(found)


# ---------------------------------------------------------------- reading the index


def test_unstaged_edits_and_untracked_files_are_not_in_the_tree(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.project(WRONG)
    repo.write({"shop/calc.py": CALC, "tests/test_new.py": "assert False\n"})
    found = staged(repo, monkeypatch)
    assert found.read("shop/calc.py") == WRONG.encode()
    assert "tests/test_new.py" not in found.files
    assert all(not path.startswith(".git/") for path in found.files)


def test_ignored_files_that_are_staged_by_force_are_in_the_tree(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.stage({".gitignore": "*.dat\n"})
    repo.write({"a.dat": "1", "b.dat": "2"})
    repo.git("add", "-f", "b.dat")
    assert sorted(staged(repo, monkeypatch).files) == [".gitignore", "b.dat"]


@pytest.mark.parametrize(
    "name", ["a b.py", "größe.py", 'say "x".py', "tab\there.py", "back\\slash.py", "-dash.py"]
)
def test_odd_names_are_read_diffed_and_quoted_as_git_does(
    name: str, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.stage({name: "x = 1\ny = 2\n"})
    repo.git("commit", "-q", "-m", "x")
    repo.stage({name: "x = 1\ny = 3\n"})
    found = staged(repo, monkeypatch)
    assert found.read(name) == b"x = 1\ny = 3\n"
    assert found.changed == {name: [(2, 2)]}
    assert git.unquoted(git.quoted(name).encode()) == name


def test_links_and_modes_are_kept(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.write({"run.sh": "#!/bin/sh\n", "data.txt": "1"})
    (repo.folder / "run.sh").chmod(0o755)
    (repo.folder / "link").symlink_to("data.txt")
    repo.git("add", "-A")
    files = staged(repo, monkeypatch).files
    assert {name: file.mode for name, file in files.items()} == {
        "run.sh": tree.PROGRAM, "data.txt": tree.PLAIN, "link": tree.LINK,
    }  # fmt: skip
    assert files["link"].data == b"data.txt"


def test_a_large_binary_is_left_out_and_said_and_a_large_text_is_not(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.stage({"big.bin": b"\0" * (6 * 2**20), "big.txt": b"x\n" * (3 * 2**20), "a.bin": b"\0"})
    found = staged(repo, monkeypatch)
    assert sorted(found.files) == ["a.bin", "big.txt"]
    assert found.left_out == ("big.bin (binary, 6.0 MB)",)


def test_a_submodule_is_read_at_the_commit_that_is_staged(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repo(tmp_path / "other")
    other.stage({"lib.py": "ONE = 1\n"})
    other.git("commit", "-q", "-m", "x")
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.folder), "sub")
    repo.write({"sub/lib.py": "ONE = 2\n"})
    found = staged(repo, monkeypatch)
    assert found.read("sub/lib.py") == b"ONE = 1\n"
    repo.git("submodule", "deinit", "-f", "-q", "sub")
    left_out = staged(repo, monkeypatch).left_out
    assert left_out == ("sub (a submodule that is not checked out)",)


def test_a_half_done_merge_is_refused(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.committed()
    repo.git("checkout", "-q", "-b", "side")
    repo.stage({"shop/calc.py": CALC.replace("x * 2", "x + x")})
    repo.git("commit", "-q", "-m", "x")
    repo.git("checkout", "-q", "main")
    repo.stage({"shop/calc.py": CALC.replace("x * 2", "2 * x")})
    repo.git("commit", "-q", "-m", "y")
    repo.git("merge", "side", code=1)
    with pytest.raises(UsageProblem, match="not merged yet"):
        staged(repo, monkeypatch)


def test_reading_a_tree_changes_no_byte_of_the_repository(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.committed()
    repo.stage({"shop/calc.py": WRONG})
    for path in repo.folder.rglob("*.py"):
        path.touch()  # an index that git would like to refresh
    before = {p: p.read_bytes() for p in repo.folder.rglob("*") if p.is_file()}
    staged(repo, monkeypatch)
    assert {p: p.read_bytes() for p in repo.folder.rglob("*") if p.is_file()} == before


# ---------------------------------------------------------------- the ways to commit


@pytest.fixture
def hooked(repo: Repo) -> Repo:
    """A project with a plain hook that only tests."""
    repo.committed()
    code, said = repo.hook("--install")
    assert code == 0, said
    repo.env |= {"REFLEXFIX_NO_FIX": "1", "PYTHONPATH": str(ROOT)}
    return repo


GOOD = CALC + "\n\nMORE = 1\n"


@pytest.mark.container
@pytest.mark.usefixtures("sandbox_image")
class TestCommits:
    def test_commit_tests_the_index(self, hooked: Repo) -> None:
        hooked.stage({"shop/calc.py": WRONG})
        hooked.write({"shop/calc.py": CALC})
        hooked.git("commit", "-m", "x", code=1)
        assert (hooked.folder / "shop/calc.py").read_text() == CALC
        hooked.stage({"shop/calc.py": GOOD})
        hooked.write({"shop/calc.py": WRONG})
        hooked.git("commit", "-m", "x")
        assert (hooked.folder / "shop/calc.py").read_text() == WRONG

    def test_commit_all_tests_what_it_adds(self, hooked: Repo) -> None:
        hooked.write({"shop/calc.py": WRONG})
        assert "2 of 2 failed" in hooked.git("commit", "-a", "-m", "x", code=1)
        hooked.write({"shop/calc.py": GOOD})
        hooked.git("commit", "-a", "-m", "x")

    def test_commit_of_a_path_tests_that_path_alone(self, hooked: Repo) -> None:
        hooked.stage({"shop/calc.py": WRONG})
        hooked.write({"notes.txt": "1"})
        hooked.git("add", "-N", "notes.txt")
        hooked.git("commit", "-m", "x", "--", "notes.txt")
        assert "2 of 2 failed" in hooked.git("commit", "-m", "x", "shop/calc.py", code=1)

    def test_amend_tests_the_index(self, hooked: Repo) -> None:
        hooked.stage({"shop/calc.py": WRONG})
        assert "2 of 2 failed" in hooked.git("commit", "--amend", "-m", "x", code=1)
        hooked.stage({"shop/calc.py": GOOD})
        hooked.git("commit", "--amend", "-m", "x")

    def test_a_first_commit_is_tested(self, tmp_path: Path) -> None:
        first = Repo(tmp_path / "first")
        first.project(WRONG)
        assert first.hook("--install")[0] == 0
        first.env |= {"REFLEXFIX_NO_FIX": "1", "PYTHONPATH": str(ROOT)}
        assert "2 of 2 failed" in first.git("commit", "-m", "x", code=1)
        first.stage({"shop/calc.py": CALC})
        first.git("commit", "-m", "x")

    def test_a_merge_is_tested(self, hooked: Repo) -> None:
        hooked.git("checkout", "-q", "-b", "side")
        hooked.stage({"shop/calc.py": GOOD})
        hooked.git("commit", "-q", "-m", "x")
        hooked.git("checkout", "-q", "main")
        text = (hooked.folder / SUITE).read_text()
        new = "\n\ndef test_more():\n    import shop.calc as c\n    assert not hasattr(c, 'MORE')\n"
        hooked.stage({SUITE: text + new})
        hooked.git("commit", "-q", "-m", "y")
        hooked.git("merge", "--no-commit", "side")
        assert "test_more" in hooked.git("commit", "-m", "x", code=1)

    def test_a_worktree_is_tested(self, hooked: Repo, tmp_path: Path) -> None:
        other = tmp_path / "other tree"
        hooked.git("worktree", "add", "-q", str(other), "-b", "other")
        (other / "shop/calc.py").write_text(WRONG)
        hooked.git("-C", str(other), "add", "-u")
        said = hooked.git("-C", str(other), "commit", "-m", "x", code=1)
        assert "2 of 2 failed" in said
        (other / "shop/calc.py").write_text(GOOD)
        hooked.git("-C", str(other), "commit", "-a", "-m", "x")

    def test_links_modes_submodules_and_odd_names_are_there_for_the_tests(
        self, hooked: Repo, tmp_path: Path
    ) -> None:
        other = Repo(tmp_path / "other")
        other.stage({"lib.py": "ONE = 1\n"})
        other.git("commit", "-q", "-m", "x")
        hooked.git("-c", "protocol.file.allow=always", "submodule", "add", "-q",
                   str(other.folder), "sub")  # fmt: skip
        hooked.write({"run me.sh": "#!/bin/sh\necho ran\n", "größe.txt": "1"})
        (hooked.folder / "run me.sh").chmod(0o755)
        (hooked.folder / "link.txt").symlink_to("größe.txt")
        text = (
            "import pathlib, subprocess\nfrom sub.lib import ONE\n\n\ndef test_all():\n"
            "    assert ONE == 1\n    assert pathlib.Path('link.txt').is_symlink()\n"
            "    assert pathlib.Path('link.txt').read_text() == '1'\n"
            "    assert subprocess.check_output(['./run me.sh']) == b'ran\\n'\n"
            "    assert not pathlib.Path('.git').exists()\n"
        )
        hooked.write({"tests/test_files.py": text})
        hooked.git("add", "-A")
        hooked.git("commit", "-m", "x")


# ---------------------------------------------------------------- the hook's own file


def test_a_hook_that_is_there_is_not_overwritten(repo: Repo) -> None:
    repo.committed()
    path = repo.folder / ".git/hooks/pre-commit"
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\nexit 0\n")
    code, said = repo.hook("--install")
    assert code == 2 and "There is a hook already" in said
    assert path.read_text() == "#!/bin/sh\nexit 0\n"


def test_a_folder_for_hooks_that_the_user_chose_is_respected(repo: Repo) -> None:
    from reflexfix.hook import install

    repo.committed()
    repo.git("config", "core.hooksPath", "my hooks")
    found = git.find(repo.folder)
    assert found is not None
    assert install.install(found) == repo.folder / "my hooks/pre-commit"
    assert install.install(found).stat().st_mode & 0o111
