"""The child process of `local.serve`: one GGUF file behind llama.cpp, until standard input ends.

Run as a file (`python -P local_server.py`), it imports nothing of ours. The wire, one JSON
line each way:

    in   {"model": path, "alias": name, "key": secret, "parent": pid or 0, "params": {...}}
    out  {"url": "http://127.0.0.1:PORT"}    the model is loaded and answers
    out  {"missing": "xllamacpp"}            the package is not installed

Any other failure is the last words of llama.cpp on standard error and no line on standard
output. `params` are fields of llama.cpp's parameters, dotted where they nest; an enumeration
is given by the end of its member's name.
"""

from __future__ import annotations

import enum
import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

ERRORS_AND_WARNINGS = 2
"""llama.cpp's log level: enough to explain a failed start, silent for each request."""


def main() -> None:
    """Load the model, say where it answers, and stay until the parent lets go."""
    wire = _take_standard_output()
    settings = json.loads(sys.stdin.readline())
    _die_with(settings["parent"])
    try:
        xllamacpp = importlib.import_module("xllamacpp")  # untyped
    except ImportError:
        print(json.dumps({"missing": "xllamacpp"}), file=wire, flush=True)
        return
    # The loader may keep the interpreter's lock, so the watch is a process signal first
    # (`_die_with`) and this thread second: it covers every system that is not Linux.
    threading.Thread(target=_end_with_standard_input, daemon=True).start()
    server = xllamacpp.Server(_parameters(xllamacpp, settings))
    print(json.dumps({"url": server.listening_address}), file=wire, flush=True)
    threading.Event().wait()


def _take_standard_output() -> Any:
    """Keep standard output for the wire, and send what llama.cpp prints there to the log."""
    wire = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return wire


def _die_with(parent: int) -> None:
    """Have Linux kill this process when its parent's thread ends, even by SIGKILL."""
    if not parent or sys.platform != "linux":
        return
    import ctypes

    set_parent_death_signal = 1  # PR_SET_PDEATHSIG, prctl(2)
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the line above took effect
        os._exit(0)


def _end_with_standard_input() -> None:
    """End the process when the parent closes its end of the pipe, which its death does too."""
    while os.read(0, 1):  # not through sys.stdin, whose lock would break an end for other reasons
        pass
    os._exit(0)  # llama.cpp's own shutdown would wait for the answers in flight


def _parameters(xllamacpp: Any, settings: Mapping[str, Any]) -> Any:
    """llama.cpp's parameters: loopback, a port of the system's choice, and one key."""
    params = xllamacpp.CommonParams()
    params.model.path = settings["model"]
    params.model_alias = {settings["alias"]}
    params.api_keys = [settings["key"]]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.ui = False
    params.endpoint_slots = False  # it shows the prompts
    params.verbosity = ERRORS_AND_WARNINGS
    for name, value in settings["params"].items():
        *path, field = name.split(".")
        owner = params
        for step in path:
            owner = getattr(owner, step)
        setattr(owner, field, _like(getattr(owner, field), value))
    return params


def _like(default: Any, value: Any) -> Any:
    """The value, as a member of the default's enumeration where the default is one."""
    if isinstance(default, list):
        return [_like(default[0], item) if default else item for item in value]
    if not isinstance(default, enum.Enum):
        return value
    return next(m for m in type(default) if m.name.endswith(f"_{value}"))


if __name__ == "__main__":
    main()
