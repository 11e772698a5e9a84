"""A short form of the conformance suite, to be run on a user's own engine.

Each program tries to break one promise of the sandbox; what must come back is known. The whole
suite is in the project's tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reflexfix.attempt import Candidate, Case, Sandbox, Status, Suite

PRIVATE = "reflexfix-conformance"
STUB = b"def f(x):\n    ...\n"
SUITE = Suite(
    cases=(Case("sample", "assert f(1) == 2", "assert f(1) == 2", "own"),),
    control=Case("control", f"assert f(1) == {PRIVATE!r}", "", "own"),
    control_value=PRIVATE,
)


@dataclass(frozen=True)
class Program:
    """What a candidate does, and the statuses that are right for it."""

    claim: str
    body: str
    right: tuple[Status, ...]


@dataclass(frozen=True)
class Held:
    """Whether one promise was kept."""

    claim: str
    kept: bool
    said: str


PROGRAMS = (
    Program("a right answer passes", "return x + 1", ("passed",)),
    Program("a wrong answer fails", "return x", ("failed",)),
    Program("leaving the process is no pass", "import os; os._exit(0)", ("error",)),
    Program("leaving the interpreter is no pass", "raise SystemExit(0)", ("error",)),
    Program(
        "an object that equals everything is refused",
        "return type('Any', (int,), {'__eq__': lambda *_: True})(2)",
        ("error",),
    ),
    Program(
        "killing every process is no pass",
        "import os, contextlib\n"
        "    for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "        with contextlib.suppress(OSError): os.kill(int(pid), 9)",
        ("error", "no-verdict"),
    ),
    Program(
        "the verdict's pipe cannot be written to",
        "import os, contextlib\n"
        "    for n in range(3, 256):\n"
        "        with contextlib.suppress(OSError): os.write(n, b'{\"status\": \"passed\"}')\n"
        "    return 0",
        ("failed", "error"),
    ),
    Program("an endless loop ends in time", "while True: pass", ("timeout",)),
    Program(
        "memory is limited",
        "return [bytearray(b'x') * 10**7 for _ in range(80)] and 0",  # nothing may stop it
        ("memory", "error"),
    ),
    Program(
        "output is limited", "while True: print('x' * 10000)", ("output", "timeout")
    ),
    Program(
        "there is no network",
        "import socket\n    socket.create_connection(('192.0.2.1', 80), 2)",
        ("error",),
    ),
    Program("the system cannot be written", "open('/usr/x', 'w')", ("error",)),
    Program("there is no account", "return open('/etc/shadow').read()", ("error",)),
    Program("the first process is closed", "return open('/proc/1/environ').read()", ("error",)),
)  # fmt: skip


def check(sandbox: Sandbox) -> Iterator[Held]:
    """Run every program in a container of its own. Raises SandboxTrouble."""
    for program in PROGRAMS:
        file = f"def f(x):\n    {program.body}\n".encode()
        candidate = Candidate({"m.py": file}, "m", "f", stub_files={"m.py": STUB})
        verdict = sandbox.run(candidate, SUITE)
        status = verdict.judged[0].result.status
        kept = status in program.right and not verdict.forged
        yield Held(program.claim, kept, "forged" if verdict.forged else status)
