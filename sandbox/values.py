"""Run a reference solution for the values that it gives; nothing is judged here."""

from __future__ import annotations

import os
import socket
import time
from typing import Any, NoReturn

from sandbox import modules, process, results, tester, tracebacks, wire
from sandbox.job import Host, Inbox, Job, TooMuchOutput

TEXT = "__reflexfix_text__"
"""The name in which the program leaves its text."""
TEXT_BYTES = 12 * 2**20
"""The longest text that is handed out."""


def give_values(host: Host, order: dict[str, Any]) -> None:
    """Run the program and say the text that it leaves, or why there is none."""
    job, started = Job(host, order), time.monotonic()
    ours, theirs = socket.socketpair()
    pid = job.fork()
    if pid == 0:
        be_the_program(job, theirs)
    theirs.close()
    text, problem = heard(job, Inbox(ours.fileno(), TEXT_BYTES + 2**10), pid)
    job.end_all_but(set())
    seconds = round(time.monotonic() - started, 4)
    host.say(say="values", nonce=order["nonce"], text=text, problem=problem, seconds=seconds)


def heard(job: Job, inbox: Inbox, pid: int) -> tuple[str, str]:
    """Wait for the text; give it, or what went wrong."""
    found: list[Any] = []

    def answered() -> bool:
        found.extend(inbox.frames())
        return bool(found)

    try:
        in_time = job.wait(inbox, job.until(), answered, pid)
    except TooMuchOutput:
        return "", "printed too much"
    except wire.Malformed:
        return "", "gave more than is taken"
    if not in_time:
        return "", job.which_limit()
    told = found[0] if found and isinstance(found[0], dict) else {}
    text, problem = told.get("text"), told.get("problem")
    if isinstance(text, str):
        return text, ""
    return "", results.text(problem) or f"the process {job.how_ended(pid, 0.1)}"


def be_the_program(job: Job, channel: socket.socket) -> NoReturn:
    """Be the process that loads the solution and runs the program."""
    try:
        process.take_descriptors({channel.fileno()}, job.output.write_end)
        process.offer_to_the_kernel(1000)
        wire.send(channel, told(job.order, job.files))
        os._exit(0)
    finally:
        os._exit(process.LOST)


def told(order: dict[str, Any], files: dict[str, bytes]) -> dict[str, Any]:
    """Load the module, run the program in its names, and give its text."""
    modules.install(files)
    try:
        namespace = tester.namespace_of(order["module"], None)
        exec(compile(order["source"], "<values>", "exec"), namespace)
        text = namespace[TEXT]
    except BaseException as error:  # whatever the solution raises is a fact about the row
        return {"problem": tracebacks.problem(error)["message"]}
    if not isinstance(text, str) or len(text) > TEXT_BYTES:
        return {"problem": "gave no text, or more than is taken"}
    return {"text": text}
