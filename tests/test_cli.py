"""The command line: help, settings, bad input, exit codes."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Command
from endpoint import scripted, serving

STUB = "def double(x):\n    ...\n"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom reflexfix import cli\ntry:\n    cli.main(['--help'])\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'docker', 'openai', 'rich', 'tree_sitter', 'httpx', 'pydantic', 'requests',"
        " 'asyncio', 'xllamacpp', 'platformdirs'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stderr.strip() == "[]"
    assert "Commands:" in done.stdout


def test_the_readme_shows_the_real_help() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reflexfix", "solve", "--help"],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip
    readme = (ROOT / "README.md").read_text()
    assert done.stdout.strip() in readme


@pytest.mark.parametrize("arguments", [["solve"], ["solve", "x.py", "--no-such"], ["nothing"]])
def test_a_wrong_command_line_ends_with_2(arguments: list[str], command: Command) -> None:
    ran = command(*arguments)
    assert ran.code == 2 and "Usage:" in ran.err and "Traceback" not in ran.err


def make(folder: Path, name: str, data: bytes | None) -> str:
    if data is not None:
        (folder / name).write_bytes(data)
    return name


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("missing.py", None, "does not exist"),
        ("empty.py", b"", "is empty"),
        ("blank.py", b"\n\n", "is empty"),
        ("notes.txt", b"x", "no ending that is known"),
        ("broken.py", b"def f(:\n    ...\n", "broken.py:1:"),
        ("large.py", b"#" * 10_000_000, "at most"),
        ("binary.py", b"\xff\xfe\x00\x01", "cannot be decoded"),
        ("nul.py", b"def f():\n    ...\n\0", "cannot be"),
        ("done.py", b"def f():\n    return 1\n", "no unfinished function"),
        ("none.py", b"x = 1\n", "no function at all"),
        ("two.py", b"def f(): ...\ndef g(): ...\n", "2 unfinished functions: f, g"),
    ],
)
def test_a_bad_file_is_one_clear_line_and_exit_code_2(
    name: str, data: bytes | None, said: str, command: Command, tmp_path: Path
) -> None:
    ran = command("solve", make(tmp_path, name, data))
    assert ran.code == 2, ran.err
    assert said in ran.err and "Traceback" not in ran.err
    assert ran.out == b""
    assert ran.err.startswith("reflexfix: ")


def test_a_folder_is_refused(command: Command, tmp_path: Path) -> None:
    ran = command("solve", tmp_path)
    assert ran.code == 2 and "one file is taken" in ran.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_refused(command: Command, tmp_path: Path) -> None:
    make(tmp_path, "secret.py", STUB.encode())
    (tmp_path / "secret.py").chmod(0)
    assert command("solve", "secret.py").code == 2


def test_a_function_that_is_not_there_lists_those_that_are(
    command: Command, tmp_path: Path
) -> None:
    make(tmp_path, "m.py", b"class A:\n    def f(self): ...\n\ndef g(): ...\n")
    ran = command("solve", "m.py", "--function", "h")
    assert ran.code == 2 and "A.f, g" in ran.err


@pytest.mark.parametrize(
    "pair",
    [
        ["--diff", "--json"],
        ["--no-tests", "--own-tests"],
        ["--no-tests", "--no-reflection"],
        ["--no-reflection", "--memory", "lesson"],
    ],
)
def test_options_that_exclude_each_other_are_refused(
    pair: list[str], command: Command, tmp_path: Path
) -> None:
    make(tmp_path, "m.py", STUB.encode())
    ran = command("solve", "m.py", *pair)
    assert ran.code == 2 and f"{pair[0]} and {pair[1]}" in ran.err


def test_no_engine_ends_with_4_and_says_what_to_do(command: Command, tmp_path: Path) -> None:
    make(tmp_path, "m.py", STUB.encode())
    ran = command("solve", "m.py", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert ran.code == 4
    assert "unix:///nowhere/docker.sock" in ran.err and "hint: " in ran.err


def test_debug_shows_where_an_error_came_from(command: Command) -> None:
    assert "Traceback" in command("solve", "missing.py", "--debug").err


@pytest.mark.container
def test_a_flag_beats_the_environment_and_that_beats_the_file(
    command: Command, tmp_path: Path
) -> None:
    make(tmp_path, "pyproject.toml", b"[tool.reflexfix]\ntemperature = 0.1\nseed = 1\ntrials = 1\n")
    make(tmp_path, "m.py", STUB.encode())
    with serving(scripted(implement=["no"], write_tests=["assert double(1) == 2"])) as endpoint:
        url = ["--base-url", endpoint.url]
        command("solve", "m.py", *url)
        command("solve", "m.py", *url, REFLEXFIX_TEMPERATURE="0.2", REFLEXFIX_SEED="2")
        command("solve", "m.py", *url, "--temperature", "0.3", REFLEXFIX_TEMPERATURE="0.2")
        asked = [(b["temperature"], b["seed"]) for q, b, _ in endpoint.asked if q == "implement"]
    assert asked == [(0.1, 1), (0.2, 2), (0.3, 1)]


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        (b"[tool.reflexfix]\ntrails = 3\n", "no setting trails"),
        (b"[tool.reflexfix\n", "cannot be read"),
        (b"[tool.reflexfix]\ntrials = 'many'\n", "many"),
        (b"[tool.reflexfix.sandbox]\npackages = 'numpy'\n", "list of names"),
    ],
)
def test_a_wrong_setting_is_named(toml: bytes, said: str, command: Command, tmp_path: Path) -> None:
    make(tmp_path, "pyproject.toml", toml)
    make(tmp_path, "m.py", STUB.encode())
    ran = command("solve", "m.py")
    assert ran.code == 2 and said in ran.err


@pytest.mark.container
def test_a_key_alone_asks_for_a_model(command: Command, tmp_path: Path) -> None:
    make(tmp_path, "m.py", STUB.encode())
    ran = command("solve", "m.py", OPENAI_API_KEY="k")
    assert ran.code == 2 and "--model" in ran.err


@pytest.mark.container
def test_an_endpoint_with_several_models_lists_them(command: Command, tmp_path: Path) -> None:
    make(tmp_path, "m.py", STUB.encode())
    with serving(scripted(), models=["big", "small"]) as endpoint:
        ran = command("solve", "m.py", "--base-url", endpoint.url)
    assert ran.code == 2 and "big, small" in ran.err


@pytest.mark.container
def test_a_dead_endpoint_ends_with_3(command: Command, tmp_path: Path) -> None:
    make(tmp_path, "m.py", STUB.encode())
    ran = command("solve", "m.py", "--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    assert ran.code == 3 and "http://127.0.0.1:9/v1" in ran.err


@pytest.mark.container
def test_an_unknown_terminal_locale_does_not_hurt(command: Command, tmp_path: Path) -> None:
    make(tmp_path, "m.py", "# größer\ndef double(x):\n    ...\n".encode())
    answer = "```python\ndef double(x):\n    return x * 2  # größer\n```"
    tests = "assert double(1) == 2\nassert double(2) == 4\nassert double(3) == 6"
    with serving(scripted(implement=[answer], write_tests=[tests])) as endpoint:
        ran = command("solve", "m.py", "--base-url", endpoint.url, LC_ALL="C", PYTHONUTF8="0")
    assert ran.code == 0, ran.err
    assert "größer" in ran.out.decode()


@pytest.mark.container
def test_nothing_of_a_program_drives_the_terminal(command: Command, tmp_path: Path) -> None:
    make(tmp_path, "m.py", STUB.encode())
    answer = "```python\ndef double(x):\n    return '\\x1b]0;owned\\x07\\x9b31m'\n```"
    lesson = "See \x1b[31mred."
    answers = scripted(implement=[answer], improve=[answer], reflect=[lesson],
                       write_tests=["assert double(1) == 2"])  # fmt: skip
    with serving(answers) as endpoint:
        ran = command("solve", "m.py", "--trials", "2", "--no-agreement",
                      "--base-url", endpoint.url)  # fmt: skip
    assert ran.code == 1
    assert "\x1b" not in ran.err and "\x9b" not in ran.err and "\x07" not in ran.err
    assert "\\x1b[31mred" in ran.err


@pytest.mark.container
def test_a_terminal_shows_that_an_answer_is_moving(command: Command, tmp_path: Path) -> None:
    make(tmp_path, "m.py", STUB.encode())
    tests = "assert double(1) == 2\nassert double(2) == 4\nassert double(3) == 6"
    answer = "```python\ndef double(x):\n    return x * 2\n```"
    with serving(scripted(implement=[answer], write_tests=[tests])) as endpoint:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "reflexfix", "solve", "m.py", "--base-url", endpoint.url],
            cwd=tmp_path, env={**command.env, "TERM": "xterm"}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=theirs,
        )  # fmt: skip
        out = process.communicate(timeout=60)[0]
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            seen += part
        os.close(ours)
    assert b"x * 2" in out
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode())
    assert "asking for a body and for tests" in text or "running the tests" in text
    assert "likely: " in text
