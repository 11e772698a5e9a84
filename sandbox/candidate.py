"""The candidate's side: import the module once, then answer calls in a fresh fork a test."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import sys
from types import ModuleType
from typing import Any

from sandbox import modules, process, tracebacks, wire


def run(job: dict[str, Any], files: dict[str, bytes], control: socket.socket, output: int) -> None:
    """Be the process C: never returns to the supervisor's code, never sees a test."""
    process.take_descriptors({control.fileno()}, output)
    process.ordinary_signals()
    process.be_killed_first()
    modules.install(files)
    try:
        module = modules.load(job["module"])
        function_of(module, job["target"])
    except BaseException as error:  # whatever the user's module raises is a fact about it
        wire.send(control, {"import": tracebacks.problem(error)})
    else:
        wire.send(control, {"import": None})
        fork_for_each_test(module, job["target"], control)
    flush()
    os._exit(0)


def function_of(module: ModuleType, target: dict[str, Any]) -> Any:
    """Find the target in its module; a dotted name is looked up step by step."""
    found: Any = module
    for part in target["name"].split("."):
        found = getattr(found, part)
    return found


def fork_for_each_test(module: ModuleType, target: dict[str, Any], control: socket.socket) -> None:
    """Serve one channel after the other, each in a fork that knows nothing of the others."""
    while True:
        _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not descriptors:
            return
        pid = os.fork()
        if pid == 0:
            control.close()
            serve(module, target, socket.socket(fileno=descriptors[0]))
            os._exit(0)
        os.close(descriptors[0])
        _, status = os.waitpid(pid, 0)
        wire.send(control, {"ended": process.describe(status)})


def serve(module: ModuleType, target: dict[str, Any], channel: socket.socket) -> None:
    """Answer calls until the test hangs up."""
    while True:
        try:
            request = wire.receive(channel)
        except wire.Closed:
            return
        reply = answer(module, target, request)
        flush()
        try:
            wire.send(channel, reply)
        except wire.Refused as error:
            wire.send(channel, {"refused": str(error)})


def answer(module: ModuleType, target: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """Make one call and say what came of it: a value, an exception, or a refusal."""
    args, kwargs = wire.decode(request["call"])
    try:
        value = function_of(module, target)(*args, **kwargs)
        if target["is_async"] and inspect.isawaitable(value):
            value = asyncio.run(_await(value))
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
    except RecursionError:
        return {"refused": "unsupported type: nested too deep"}


def raised(error: BaseException, args: Any, kwargs: Any) -> dict[str, Any]:
    """Describe an exception so that the test's side can raise one of the same class."""
    bases = [(kind.__module__, kind.__qualname__) for kind in type(error).__mro__]
    fields = (list(bases), plain(error.args), plain(getattr(error, "__dict__", {})))
    reply = carried("raised", fields, args, kwargs)
    if "refused" in reply:
        reply = carried("raised", fields, (), {})
    return reply | tracebacks.problem(error)


def plain(value: Any) -> Any:
    """Keep what the wire carries; say the rest in words."""
    if isinstance(value, tuple):
        return tuple(plain_item(item) for item in value)
    return {str(k): v for k, v in dict(value).items() if carries(v)}


def plain_item(value: Any) -> Any:
    return value if carries(value) else tracebacks.show(value)


def carries(value: Any) -> bool:
    try:
        wire.encode(value)
    except (wire.Refused, RecursionError):
        return False
    return True


def flush() -> None:
    """Hand over what was printed before anything else can go wrong."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the candidate may have put anything there
            continue
