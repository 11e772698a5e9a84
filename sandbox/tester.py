"""The test's side: load the module, run one test, say the verdict on a pipe of its own."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import io
import os
import socket
import sys
from collections.abc import Callable
from types import CoroutineType, ModuleType
from typing import Any, NoReturn

from sandbox import candidate, checks, modules, process, tracebacks, wire


class Trouble(BaseException):
    """A call that has no answer: no test can catch it by asking for an Exception."""


class Died(Trouble):
    """The candidate's process ended before it answered."""


class TooEarly(Trouble):
    """The user's file calls the target while it is loaded, and nobody answers yet."""


class Refusal(Trouble):
    """A value that the wire does not carry."""


class Remote:
    """The target as the test sees it: arguments go over, a value or an exception comes back."""

    def __init__(self, channel: socket.socket | None) -> None:
        self.channel = channel
        self.calls = 0
        self.trouble: Trouble | None = None
        """The first call without an answer; a test that swallowed it has not passed."""
        self.argument_refused = False
        """Whether the test, not the candidate, asks for more than the wire carries."""
        self.unseen: BaseException | None = None
        """The last exception that was raised here and that loops and tasks swallow unseen."""
        self.problems: dict[int, dict[str, Any]] = {}
        """Where the candidate raised, by the id of the exception that was raised here."""

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.calls += 1
        if self.channel is None:
            raise TooEarly
        raised, value = self._exchange(self.channel, args, kwargs)
        if raised:
            raise value
        return value

    def _exchange(
        self, channel: socket.socket, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[bool, Any]:
        """Give whether the candidate raised, and what it raised or returned."""
        try:
            self._send(channel, args, kwargs)
            return self._read(wire.receive(channel), args, kwargs)
        except (wire.Closed, OSError):
            self._fail(Died("the candidate's process ended during the call"))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            self._fail(Trouble(f"the candidate's process answered nonsense: {error}"))

    def _fail(self, trouble: Trouble) -> NoReturn:
        self.trouble = self.trouble or trouble
        raise trouble from None

    def _send(self, channel: socket.socket, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            wire.send(channel, {"call": wire.encode((args, kwargs))})
        except wire.Refused as error:
            # a candidate can answer with a value that is just too much to be handed on
            self.argument_refused = self.calls == 1 or not isinstance(error, wire.TooMuch)
            self._fail(Refusal(f"argument of {error}"))

    def _read(
        self, reply: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[bool, Any]:
        if "refused" in reply:
            self._fail(Refusal(str(reply["refused"])[:200]))
        kind = "value" if "value" in reply else "raised"
        value, new_args, new_kwargs = wire.decode(reply[kind])
        known = {id(new): old for new, old in zip(new_args, args, strict=False)}
        for old, new in zip(args, new_args, strict=False):
            take_over(old, new)
        for name, new in new_kwargs.items():
            take_over(kwargs.get(name), new)
        if kind == "raised":
            return True, self._rebuilt(value, reply)
        return False, known.get(id(value), value)

    def _rebuilt(self, fields: Any, reply: dict[str, Any]) -> BaseException:
        bases, args, attributes = fields
        kind = exception_class(bases)
        try:
            error = kind(*args) if kind.__module__ == "builtins" else kind.__new__(kind, *args)
        except (TypeError, ValueError):  # an ExceptionGroup, say, of what cannot cross
            error = Exception(*args)
        error.args = tuple(args)
        for name, value in attributes.items():
            object.__setattr__(error, str(name), value)
        frames = [str(frame)[:500] for frame in list(reply["frames"])[:5]]
        message = tracebacks.short(str(reply["message"]))
        self.problems[id(error)] = {"message": message, "frames": frames, "kept": error}
        if UNSEEN & {kind.__name__ for kind in type(error).__mro__}:
            self.unseen = error
        return error


UNSEEN = {"StopIteration", "StopAsyncIteration", "GeneratorExit", "CancelledError"}
"""What ends `all(map(f, xs))` or a task as if all were well."""


def exception_class(bases: Any) -> type[BaseException]:
    """Find the nearest class of the raised exception that this side knows too."""
    for module_name, name in bases:
        found: Any = sys.modules.get(str(module_name))
        for part in str(name).split("."):
            found = vars(found).get(part) if isinstance(found, ModuleType | type) else None
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
    return Exception


def take_over(old: Any, new: Any) -> None:
    """Make a changed argument show its change here, keeping the objects that the test holds."""
    if type(old) is not type(new):
        return
    if isinstance(old, list):
        merged = [kept(a, b) for a, b in zip(old, new, strict=False)] + new[len(old) :]
        old[:] = merged
    elif isinstance(old, dict):
        merged_items = [(k, kept(old[k], v) if k in old else v) for k, v in new.items()]
        old.clear()
        old.update(merged_items)
    elif isinstance(old, set):
        old.clear()
        old.update(new)
    elif isinstance(old, bytearray):
        old[:] = new
    elif type(old).__name__ == "deque":
        old.clear()
        old.extend(new)
    elif isinstance(old, tuple):
        for a, b in zip(old, new, strict=False):
            take_over(a, b)


def kept(old: Any, new: Any) -> Any:
    """Prefer the object that was there, brought up to date, over an equal new one."""
    if type(old) is type(new) and isinstance(old, list | dict | set | bytearray | tuple):
        if isinstance(old, tuple) and len(old) != len(new):
            return new
        take_over(old, new)
        return old if old == new or not isinstance(old, tuple) else new
    return new


# ---------------------------------------------------------------- running one test


class Captured:
    """The `capsys` of a test: what was printed since the last look."""

    def __init__(self) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        sys.stdout, sys.stderr = self.out, self.err

    def readouterr(self) -> Any:
        result = _Output((self.out.getvalue(), self.err.getvalue()))
        self.out.truncate(self.out.seek(0))
        self.err.truncate(self.err.seek(0))
        return result


class _Output(tuple[str, str]):
    @property
    def out(self) -> str:
        return self[0]

    @property
    def err(self) -> str:
        return self[1]


def temporary_folder() -> Any:
    """The `tmp_path` of a test."""
    import pathlib
    import tempfile

    return pathlib.Path(tempfile.mkdtemp())


_FIXTURES: dict[str, Callable[[], Any]] = {
    "tmp_path": temporary_folder,
    "capsys": Captured,
}


def execute(test: dict[str, Any], namespace: dict[str, Any]) -> None:
    """Run the test's source, then its entry if it names one."""
    code = compile(checks.rewritten(test["source"], test["target"]), "<test>", "exec")
    exec(code, namespace)
    if test["entry"]:
        finish(call_entry(namespace, test["entry"], test["fixtures"]))


def call_entry(namespace: dict[str, Any], entry: str, fixtures: list[str]) -> Any:
    """Call a test function, or a method of a test class made for it alone."""
    owner, _, method = entry.rpartition(".")
    given = {name: _FIXTURES[name]() for name in fixtures}
    if not owner:
        return namespace[method](**given)
    kind = namespace[owner]
    if not hasattr(kind, "doCleanups"):  # no unittest.TestCase
        return getattr(kind(), method)(**given)
    case = kind(method)
    try:
        case.setUp()
        return getattr(case, method)(**given)
    finally:
        case.tearDown()
        case.doCleanups()


def finish(result: Any) -> None:
    """Run a test that is a coroutine to its end."""
    if isinstance(result, CoroutineType):
        import asyncio

        asyncio.run(result)


def judged(
    test: dict[str, Any], namespace: dict[str, Any], remote: Remote | None
) -> dict[str, Any]:
    """Run one test and describe what came of it."""
    try:
        execute(test, namespace)
    except BaseException as error:  # a test may raise anything, and anything is a verdict
        return described(error, remote)
    if remote is not None and remote.trouble is not None:
        return described(remote.trouble, remote)
    if remote is not None and remote.calls == 0:
        return {"status": "no-verdict", "message": f"the test never called {test['target']}"}
    if remote is not None and remote.unseen is not None and not expects_errors(test["source"]):
        return described(remote.unseen, remote)
    return {"status": "passed"}


def expects_errors(source: str) -> bool:
    """Whether a test speaks of exceptions at all."""
    return any(word in source for word in ("raises", "Raises", "except", "suppress"))


def described(error: BaseException, remote: Remote | None) -> dict[str, Any]:
    """Tell a failed comparison from an error, and the candidate's errors from the test's."""
    if remote is not None and remote.trouble is not None:
        error = remote.trouble
    if isinstance(error, checks.Mismatch):
        seen = {"expected": error.expected, "actual": error.actual, "compared": True}
        return {"status": "failed", "message": tracebacks.short(str(error)), **seen}
    if remote is not None and id(error) in remote.problems:
        problem = remote.problems[id(error)]
        return {"status": "error", "message": problem["message"], "frames": problem["frames"]}
    if isinstance(error, Trouble):
        flags = {"refused": isinstance(error, Refusal), "died": isinstance(error, Died)}
        return {"status": "error", "message": str(error), **flags}
    asserted = isinstance(error, AssertionError) or type(error).__name__ == "Failed"
    return {"status": "failed" if asserted else "error", **tracebacks.problem(error)}


def namespace_of(module_name: str, remote: Remote | None) -> dict[str, Any]:
    """Load the module and give the names that a test finds without importing anything."""
    if remote is not None:
        setattr(builtins, modules.CALL, remote)
    module = modules.load(module_name)
    names = {k: v for k, v in vars(module).items() if not k.startswith("__")}
    names |= {checks.COMPARE: checks.compare, checks.TRUTH: checks.truth}
    return {**names, "__name__": "reflexfix_test", "__builtins__": builtins}


def run(
    test: dict[str, Any],
    job: dict[str, Any],
    files: dict[str, bytes],
    verdict: socket.socket,
    channel: socket.socket | None,
    output: int,
) -> NoReturn:
    """Be the process T, or in-process the candidate and its test in one."""
    try:
        keep = {verdict.fileno()} | ({channel.fileno()} if channel else set())
        process.take_descriptors(keep, output)
        remote = Remote(channel) if channel else None
        if remote is None:
            process.offer_to_the_kernel(1000)
        result = result_of(test, job, files, remote)
        flush()
        wire.send(verdict, {"end": result})
        os._exit(0)
    finally:
        os._exit(process.LOST)


def run_each(
    tests: list[dict[str, Any]],
    job: dict[str, Any],
    files: dict[str, bytes],
    control: socket.socket,
    output: int,
) -> NoReturn:
    """Be the process that loads the user's file with the stub once, and forks T for each test."""
    try:
        process.take_descriptors({control.fileno()}, output)
        modules.install(files, (job["module"], job["target"]["name"]))
        remote = Remote(None)
        namespace: Any = loaded(job["module"], remote)

        def be_one(data: bytes, channels: list[socket.socket]) -> None:
            test = tests[int(data)]
            tests.clear()  # nothing of the others stays in the process that runs this one
            verdict, remote.channel = channels
            ready = namespace or loaded(job["module"], remote)
            wire.send(verdict, {"end": told(test, ready, remote)})

        candidate.fork_for_each_test(be_one, control, score=None)
        os._exit(0)
    finally:
        os._exit(process.LOST)


def loaded(module: str, remote: Remote) -> Any:
    """Give the names that tests find, or what loading the user's file raised.

    None where loading calls the target, which needs a channel: each test has to load it then.
    """
    try:
        found: Any = namespace_of(module, remote)
    except BaseException as error:  # the user's file did not load: so says every test
        found = error
    if remote.channel is None and remote.calls:
        remote.calls = 0
        sys.modules.pop(module, None)
        return None
    return found


def told(test: dict[str, Any], namespace: Any, remote: Remote) -> dict[str, Any]:
    """Run a test in a namespace that is ready, or say why there is none."""
    if isinstance(namespace, BaseException):
        result = described(namespace, remote)
    else:
        result = judged(test, namespace, remote)
    flush()
    return {**result, "argument_refused": remote.argument_refused}


def result_of(
    test: dict[str, Any], job: dict[str, Any], files: dict[str, bytes], remote: Remote | None
) -> dict[str, Any]:
    """Load the module and run the test; with a remote, the target is only a stub."""
    modules.install(files, (job["module"], job["target"]["name"]) if remote else None)
    importlib.invalidate_caches()
    try:
        result = judged(test, namespace_of(job["module"], remote), remote)
    except BaseException as error:  # the module did not load: that, too, is a verdict
        result = described(error, remote)
    if remote is not None:
        result["argument_refused"] = remote.argument_refused
    return result


def flush() -> None:
    """Hand over what was printed, unless the test has closed the way."""
    for stream in (sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):
            stream.flush()  # type: ignore[union-attr]
