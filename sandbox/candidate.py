"""The candidate's side: import the module once, then answer calls in a fresh fork a test."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from sandbox import modules, process, tracebacks, watching, wire


def run(
    job: dict[str, Any], files: dict[str, bytes], control: socket.socket, output: int
) -> NoReturn:
    """Be the process C: never returns to the supervisor's code, never sees a test."""
    try:
        process.take_descriptors({control.fileno()}, output)
        process.offer_to_the_kernel(FIRST)
        modules.install(files)
        module = imported(job, control)
        if module is not None:
            process.offer_to_the_kernel(NOT_FIRST)
            wire.send(control, {"import": None})
            target = job["target"]

            def serve_one(data: bytes, channels: list[socket.socket]) -> None:
                serve(module, target, channels[0], is_watched=data == WATCHED)

            fork_for_each_test(serve_one, control)
        os._exit(0)
    finally:
        os._exit(process.LOST)


WATCHED = b"w"
"""What C is sent for a test whose call is to be looked at from within."""
FIRST, NOT_FIRST = 1000, 0
"""How gladly the kernel kills C: while it imports and while it answers, before all others; while
it waits as the parent of the next one, no more gladly than a test that uses up the memory."""


def imported(job: dict[str, Any], control: socket.socket) -> ModuleType | None:
    """Import the module, or say what it raised."""
    try:
        module = modules.load(job["module"])
        function_of(module, job["target"])
    except BaseException as error:  # whatever the user's module raises is a fact about it
        wire.send(control, {"import": tracebacks.problem(error)})
        return None
    finally:
        flush()
    return module


def function_of(module: ModuleType, target: dict[str, Any]) -> Any:
    """Find the target in its module; a dotted name is looked up step by step."""
    found: Any = module
    for part in target["name"].split("."):
        found = getattr(found, part)
    return found


Serve = Callable[[bytes, list[socket.socket]], object]
"""What a fork does with what it was sent: a few bytes, and its channels."""


def fork_for_each_test(serve: Serve, control: socket.socket, score: int | None = FIRST) -> None:
    """Serve one test after the other, each in a fork that knows nothing of the others.

    `score` is how gladly the kernel kills the fork; None leaves it as it is.
    """
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 16, 2)
        if not descriptors:
            return
        try:
            pid = os.fork()
        except OSError:
            how = "left no room for another process"
        else:
            if pid == 0:
                be_the_fork(serve, control, data, descriptors, score)
            while descriptors:
                os.close(descriptors.pop())
            how = wait_for(pid)
        for left in descriptors:
            os.close(left)
        wire.send(control, {"ended": how})


def be_the_fork(
    serve: Serve, control: socket.socket, data: bytes, descriptors: list[int], score: int | None
) -> NoReturn:
    """Serve one test, and never return to the loop that serves the next."""
    try:
        if score is not None:
            process.offer_to_the_kernel(score)
        control.close()
        serve(data, [socket.socket(fileno=number) for number in descriptors])
        os._exit(0)
    finally:
        os._exit(process.LOST)


def wait_for(pid: int) -> str:
    try:
        return process.describe(os.waitpid(pid, 0)[1])
    except ChildProcessError:  # the module asked that its children be forgotten
        return "ended unseen"


def serve(
    module: ModuleType, target: dict[str, Any], channel: socket.socket, is_watched: bool
) -> None:
    """Answer calls until the test hangs up."""
    while True:
        try:
            request = wire.receive(channel)
        except wire.Closed:
            return
        watch = watch_of(module, target) if is_watched else None
        reply = answer(module, target, request, watch)
        flush()
        if watch is not None:
            watch.tell()
        try:
            wire.send(channel, reply)
        except wire.Refused as error:
            wire.send(channel, {"refused": str(error)})


def watch_of(module: ModuleType, target: dict[str, Any]) -> Any:
    """Make what looks at the target; only a test that has failed once needs it."""
    return watching.Watch(watching.code_of(function_of(module, target)))


def answer(
    module: ModuleType, target: dict[str, Any], request: dict[str, Any], watch: Any = None
) -> dict[str, Any]:
    """Make one call and say what came of it: a value, an exception, or a refusal."""
    args, kwargs = wire.decode(request["call"])

    def call() -> Any:
        value = function_of(module, target)(*args, **kwargs)
        if target["is_async"] and hasattr(type(value), "__await__"):
            import asyncio

            value = asyncio.run(_await(value))
        return value

    try:
        value = call() if watch is None else watch.call(call)
    except BaseException as error:  # SystemExit and KeyboardInterrupt are answers as well
        return raised(error, args, kwargs)
    return carried("value", value, args, kwargs)


async def _await(value: Any) -> Any:
    return await value


def carried(kind: str, value: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Encode a result together with the arguments, which the call may have changed."""
    try:
        return {kind: wire.encode((value, args, kwargs))}
    except wire.Refused as error:
        return {"refused": str(error)}


def raised(error: BaseException, args: Any, kwargs: Any) -> dict[str, Any]:
    """Describe an exception so that the test's side can raise one of the same class."""
    try:
        fields = fields_of(error)
    except BaseException:  # its class can make any look at it raise
        fields = UNSPEAKABLE
    reply = carried("raised", fields, args, kwargs)
    if "refused" in reply:
        reply = carried("raised", fields, (), {})
    return reply | tracebacks.problem(error)


UNSPEAKABLE: Any = ([("builtins", "Exception")], ("an exception that cannot be looked at",), {})


def fields_of(error: BaseException) -> tuple[list[Any], tuple[Any, ...], dict[str, Any]]:
    """Give its classes by name, its arguments and its attributes; what cannot cross, in words."""
    bases = [(str(kind.__module__), tracebacks.name_of(kind)) for kind in type(error).__mro__]
    args = [arg if carries(arg) else tracebacks.show(arg) for arg in error.args]
    attributes = {str(k): v for k, v in dict(vars(error)).items() if carries(v)}
    return list(bases), tuple(args), attributes


def carries(value: Any) -> bool:
    try:
        wire.encode(value)
    except wire.Refused:
        return False
    return True


def flush() -> None:
    """Hand over what was printed before anything else can go wrong."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the candidate may have put anything there
            continue
