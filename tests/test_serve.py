"""The warm server: found by its file, held by the runs that use it, gone when nobody does."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Command

from reflexfix import assemble, local, warm
from reflexfix.errors import ModelTrouble, UsageProblem
from reflexfix.model import Budget

DOUBLE = """
import http.server, json, os, threading, time
class Anything:
    def __getattr__(self, name):
        self.__dict__[name] = Anything()
        return self.__dict__[name]
CommonParams = Anything
class Server:
    def __init__(self, params):
        if "dies" in params.model.path:
            raise SystemExit("the double does not like this model")
        if "slow" in params.model.path:
            time.sleep(1.5)
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                right = self.headers["Authorization"] == "Bearer " + params.api_keys[0]
                self.send_response(200 if right else 401)
                self.send_header("Content-Length", "0")
                self.end_headers()
            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.listening_address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        with open(os.environ["LOADED"], "a") as loaded:
            loaded.write(f"{os.getpid()}\\n")
"""


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "tiny.gguf")


def write_gguf(path: Path) -> Path:
    path.write_bytes(b"GGUF" + bytes(60))
    return path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder of the test's own, and a double in the place of llama.cpp."""
    (tmp_path / "double").mkdir()
    (tmp_path / "double" / "xllamacpp.py").write_text(DOUBLE)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'double'}{os.pathsep}{ROOT}")
    monkeypatch.setenv("LOADED", str(tmp_path / "loaded"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield warm.folder()
    warm.stop()


@pytest.fixture
def serve(command: Command, gguf: Path) -> Callable[..., None]:
    """Start a server as a user does."""

    def start(path: Path = gguf, minutes: float = 30) -> None:
        ran = run(command, "serve", "--model", path, "--idle-minutes", str(minutes))
        assert ran.code == 0, ran.err

    return start


def run(command: Command, *arguments: str | Path) -> Any:
    return command("model", *arguments, **{n: os.environ[n] for n in ("PYTHONPATH", "LOADED")})


def loaded() -> list[int]:
    """The processes that loaded a model, in order."""
    path = Path(os.environ["LOADED"])
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def first_line(path: Path) -> str:
    """What the first line of a run says of its model."""
    with assemble.models(assemble.ModelChoice(model=str(path)), Budget(), print) as models:
        models.actor.client.close()
        return models.where


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def wait_until(claim: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not claim() and time.monotonic() < deadline:
        time.sleep(0.05)
    return claim()


def rewrite(**changes: Any) -> None:
    """Put another record in the place of the server's, as only its user can."""
    path = warm.folder() / "server.json"
    record = warm.record()
    assert record
    path.write_text(json.dumps(asdict(replace(record, **changes))))


# Being found


def test_a_run_finds_the_server_and_loads_nothing(serve: Callable[..., None], gguf: Path) -> None:
    serve()
    assert first_line(gguf) == first_line(gguf) == "tiny (embedded, kept warm)"
    assert len(loaded()) == 1


def test_without_a_server_a_run_loads_its_own(gguf: Path) -> None:
    assert first_line(gguf) == "tiny (embedded)"
    assert len(loaded()) == 1


def test_another_model_is_not_answered_by_it(serve: Callable[..., None], tmp_path: Path) -> None:
    serve()
    assert first_line(write_gguf(tmp_path / "other.gguf")) == "other (embedded)"


def test_a_model_file_that_changed_since_is_loaded_anew(
    serve: Callable[..., None], gguf: Path
) -> None:
    serve()
    gguf.write_bytes(b"GGUF" + bytes(61))
    assert first_line(gguf) == "tiny (embedded)"


def test_another_version_is_passed_over(
    serve: Callable[..., None], gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve()
    monkeypatch.setattr(warm, "__version__", "0.0.1")
    assert first_line(gguf) == "tiny (embedded)"


def test_a_wrong_key_is_passed_over(serve: Callable[..., None], gguf: Path) -> None:
    serve()
    rewrite(api_key="wrong")
    assert first_line(gguf) == "tiny (embedded)"


def test_an_address_where_nobody_answers_is_passed_over(
    serve: Callable[..., None], gguf: Path
) -> None:
    serve()
    rewrite(base_url="http://127.0.0.1:9/v1")
    assert first_line(gguf) == "tiny (embedded)"


def test_a_file_that_others_can_read_is_not_trusted(serve: Callable[..., None], gguf: Path) -> None:
    serve()
    (warm.folder() / "server.json").chmod(0o644)
    assert first_line(gguf) == "tiny (embedded)"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_a_file_of_another_user_is_not_trusted(serve: Callable[..., None], gguf: Path) -> None:
    serve()
    os.chown(warm.folder() / "server.json", 65534, 65534)
    assert first_line(gguf) == "tiny (embedded)"


def test_a_link_is_not_followed(serve: Callable[..., None], gguf: Path, tmp_path: Path) -> None:
    serve()
    (warm.folder() / "server.json").rename(tmp_path / "elsewhere")
    (warm.folder() / "server.json").symlink_to(tmp_path / "elsewhere")
    assert first_line(gguf) == "tiny (embedded)"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", "null", '{"identity": 3}', '{"identity": {}, "pid": 1}', "\udcff"],
)
def test_a_file_that_is_no_record_is_passed_over(gguf: Path, home: Path, text: str) -> None:
    home.mkdir(parents=True)
    (home / "server.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    (home / "server.json").chmod(0o600)
    with warm.kept(gguf) as endpoint:
        assert endpoint is None
    assert warm.record() is None and not warm.in_use()


def test_a_record_of_a_dead_server_is_never_asked(
    serve: Callable[..., None], gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user may listen at its address by now."""
    serve()
    killed(warm.running())
    asked: list[local.Endpoint] = []
    monkeypatch.setattr(warm, "_answers", asked.append)
    with warm.kept(gguf) as endpoint:
        assert endpoint is None
    assert asked == []


# Beginning and ending


def killed(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not warm.running())


def test_serve_returns_when_it_answers_and_stop_ends_it(
    serve: Callable[..., None], command: Command, gguf: Path
) -> None:
    serve()
    pid, [llama] = warm.running(), loaded()
    assert "tiny is kept warm" in run(command, "status").out.decode()
    assert run(command, "stop").out == b"stopped\n"
    assert not warm.running()
    assert wait_until(lambda: not lives(pid) and not lives(llama))
    assert not (warm.folder() / "server.json").exists()
    assert run(command, "stop").out == b"no server runs\n"
    assert b"no server runs" in run(command, "status").out


def test_it_is_in_a_session_of_its_own(serve: Callable[..., None]) -> None:
    serve()
    assert os.getsid(warm.running()) == warm.running() != os.getsid(0)


def test_a_second_one_says_that_one_runs(
    serve: Callable[..., None], command: Command, gguf: Path
) -> None:
    serve()
    pid = warm.running()
    for more in ([], ["--foreground"]):
        ran = run(command, "serve", "--model", gguf, *more)
        assert "runs already" in ran.out.decode() + ran.err
        assert ran.code == (2 if more else 0)
    assert warm.running() == pid
    assert len(loaded()) == 1


def test_two_started_in_the_same_moment_are_one(command: Command, tmp_path: Path) -> None:
    slow = write_gguf(tmp_path / "slow.gguf")
    with ThreadPoolExecutor(3) as pool:
        ran = list(pool.map(lambda _: run(command, "serve", "--model", slow), range(3)))
    assert [one.code for one in ran] == [0, 0, 0], [one.err for one in ran]
    assert sum(b"runs already" in one.out for one in ran) == 2
    assert len(loaded()) == 1


def test_one_for_another_model_is_said_with_the_remedy(
    serve: Callable[..., None], command: Command, tmp_path: Path
) -> None:
    serve()
    ran = run(command, "serve", "--model", write_gguf(tmp_path / "other.gguf"))
    assert ran.code == 2
    assert "tiny.gguf" in ran.err and "`reflexfix model stop`" in ran.err


@pytest.mark.parametrize("who", ["server", "llama"])
def test_a_crash_leaves_nothing_that_breaks_the_next(
    who: str, serve: Callable[..., None], gguf: Path
) -> None:
    serve()
    [llama] = loaded()
    killed(warm.running() if who == "server" else llama)
    assert wait_until(lambda: not lives(llama))
    assert first_line(gguf) == "tiny (embedded)"
    serve()
    assert first_line(gguf) == "tiny (embedded, kept warm)"


def test_a_new_file_that_a_crash_left_half_written_is_replaced(
    serve: Callable[..., None], home: Path
) -> None:
    home.mkdir(parents=True)
    (home / "server.json.new").write_text('{"api_key": "of a dead server"')
    serve()
    assert sorted(p.name for p in home.iterdir()) == ["lock", "log", "server.json"]


def test_a_model_that_does_not_load_is_one_clear_error_and_leaves_nothing(
    command: Command, tmp_path: Path
) -> None:
    ran = run(command, "serve", "--model", write_gguf(tmp_path / "dies.gguf"))
    assert ran.code == 3
    assert "did not start: llama.cpp cannot serve" in ran.err
    assert "the double does not like this model" in ran.err and "Traceback" not in ran.err
    assert not warm.running()


def test_what_is_no_model_is_refused_before_anything_starts(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "page.gguf").write_text("<html>")
    ran = run(command, "serve", "--model", tmp_path / "page.gguf")
    assert ran.code == 3 and "is not a GGUF file" in ran.err
    assert not warm.folder().exists()


def test_a_state_folder_that_cannot_be_made_is_one_clear_error(
    command: Command, gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(UsageProblem, match="cannot be used: Not a directory"):
        warm.start(gguf, 1)
    assert first_line(gguf) == "tiny (embedded)"


def test_ctrl_c_while_it_loads_leaves_no_server(command: Command, tmp_path: Path) -> None:
    slow = write_gguf(tmp_path / "slow.gguf")
    process = subprocess.Popen(
        [sys.executable, "-m", "reflexfix", "model", "serve", "--model", slow],
        env=dict(os.environ),
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert wait_until(lambda: warm.running() != 0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err.strip()) == (130, b"reflexfix: interrupted")
    assert not warm.running()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_in_the_foreground_stays_until_it_is_told_to_end(
    number: signal.Signals, gguf: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "reflexfix", "model", "serve", "--foreground", "--model", gguf],
        env=dict(os.environ),
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stderr and "tiny is kept warm" in process.stderr.readline()
    assert first_line(gguf) == "tiny (embedded, kept warm)"
    process.send_signal(number)
    _, rest = process.communicate(timeout=20)
    assert process.returncode == 128 + number and "Traceback" not in rest
    assert not (warm.folder() / "server.json").exists()


# Being idle

SHORT = 4 / 60
"""Minutes: longer than a busy machine needs from `serve` to the first use."""


def test_it_ends_by_itself_when_nobody_uses_it(serve: Callable[..., None]) -> None:
    serve(minutes=SHORT)
    [llama] = loaded()
    assert wait_until(lambda: not warm.running() and not lives(llama))
    assert not (warm.folder() / "server.json").exists()
    assert "nobody used it" in (warm.folder() / "log").read_text()


def test_a_run_keeps_it_for_as_long_as_it_lasts(serve: Callable[..., None], gguf: Path) -> None:
    serve(minutes=SHORT)
    with warm.kept(gguf) as first, warm.kept(gguf) as second:
        assert first == second is not None
        assert warm.in_use()
        assert not wait_until(lambda: not warm.running(), seconds=6)
    assert wait_until(lambda: not warm.running())


def test_a_run_that_was_killed_does_not_keep_it(serve: Callable[..., None], gguf: Path) -> None:
    serve(minutes=SHORT)
    code = (
        "import sys, time, pathlib; from reflexfix import warm\n"
        "with warm.kept(pathlib.Path(sys.argv[1])) as endpoint:\n"
        "    print(endpoint is not None, flush=True); time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, gguf]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
        with warm.kept(gguf):
            assert client.stdout and client.stdout.readline() == b"True\n"
        assert not wait_until(lambda: not warm.running(), seconds=6)
        client.kill()
    assert wait_until(lambda: not warm.running())


def test_a_run_that_does_not_use_it_does_not_keep_it(
    serve: Callable[..., None], tmp_path: Path
) -> None:
    serve()
    with warm.kept(write_gguf(tmp_path / "other.gguf")) as endpoint:
        assert endpoint is None
        assert not warm.in_use()


def test_one_whose_file_was_removed_ends(serve: Callable[..., None]) -> None:
    serve()
    (warm.folder() / "server.json").unlink()
    assert wait_until(lambda: not warm.running())


def test_stop_waits_for_one_that_still_loads(command: Command, tmp_path: Path) -> None:
    slow = write_gguf(tmp_path / "slow.gguf")
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(run, command, "serve", "--model", slow)
        assert wait_until(lambda: warm.running() != 0)
        assert b"loads the model" in run(command, "status").out
        assert warm.stop()
        starting.result()
    assert not warm.running()


# Who can see what


def test_the_folder_and_its_files_are_the_users_alone(serve: Callable[..., None]) -> None:
    os.umask(os.umask(0))
    serve()
    for path in (warm.folder(), *warm.folder().iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
        assert path.stat().st_uid == os.geteuid()


def test_the_key_is_in_the_file_and_nowhere_else(
    serve: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-that-it-does-not-need")
    serve()
    record = warm.record()
    assert record and record.api_key not in repr(record)
    assert record.api_key not in (warm.folder() / "log").read_text()
    for pid in (record.pid, *loaded()):
        for name in ("cmdline", "environ"):
            seen = Path(f"/proc/{pid}/{name}").read_bytes().decode()
            assert record.api_key not in seen and "a-key-that" not in seen


def test_the_record_says_all_that_a_run_compares(gguf: Path) -> None:
    about = warm.identity(gguf)
    assert "reflexfix" in about.versions and "xllamacpp" in about.versions
    assert about.model == str(gguf) and about.bytes == 64


def test_a_server_that_heeds_nothing_is_named(
    serve: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    serve()
    pid = warm.running()
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(warm, "END_SECONDS", 0.3)
    with pytest.raises(ModelTrouble) as caught:
        warm.stop()
    assert f"kill -9 {pid}" in caught.value.hint
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not warm.running())


# With llama.cpp


@pytest.mark.model
def test_the_real_model_answers_two_runs_and_is_loaded_once(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    if not local.is_pulled():
        pytest.skip(f"the model is not at {local.model_path()}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    ran = run(command, "serve")
    assert ran.code == 0, ran.err
    for _ in range(2):
        started = time.monotonic()
        with assemble.models(assemble.ModelChoice(), Budget(), print) as models:
            from reflexfix.model import Request

            asked = Request("implement", "Be brief.", "Say the word yes.", answer_tokens=3)
            assert "(embedded, kept warm)" in models.where
            found = time.monotonic() - started
            assert models.actor.complete(asked).text
            models.actor.client.close()
        assert found < 2
    assert "yes" not in (warm.folder() / "log").read_text()
