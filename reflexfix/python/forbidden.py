"""What a test of one function has no business with: the network, the machine, other processes."""

from __future__ import annotations

import ast
import re

from reflexfix.python.target import last_name

MODULES = {
    "socket": "the network",
    "urllib": "the network",
    "http": "the network",
    "requests": "the network",
    "httpx": "the network",
    "aiohttp": "the network",
    "ftplib": "the network",
    "smtplib": "the network",
    "ssl": "the network",
    "subprocess": "other processes",
    "multiprocessing": "other processes",
    "pty": "other processes",
    "ctypes": "native code",
}
_OS_USES = {"environ": "the environment", "getenv": "the environment", "putenv": "the environment"}
_OS_USES |= dict.fromkeys(
    ("system", "popen", "fork", "kill", "execv", "execve", "spawnv", "_exit"), "other processes"
)
_PATH_CALLS = {
    "open", "Path", "listdir", "remove", "unlink", "stat", "mkdir", "makedirs", "rmdir", "rename",
    "chdir", "scandir", "rmtree", "copy", "copyfile", "move", "exists", "isfile", "isdir",
}  # fmt: skip
_ABSOLUTE = re.compile(r"^(/|~|[A-Za-z]:[\\/])")


def forbidden_use(nodes: list[ast.stmt], target: str) -> str:
    """Say what a test uses that it may not; "" when there is nothing."""
    for node in nodes:
        for child in ast.walk(node):
            if use := _forbidden(child, target):
                return f"uses {use}"
    return ""


def _forbidden(node: ast.AST, target: str) -> str:
    if isinstance(node, ast.Import):
        return next((MODULES[t] for a in node.names if (t := _top(a.name)) in MODULES), "")
    if isinstance(node, ast.ImportFrom):
        return MODULES.get(_top(node.module or ""), "")
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if node.value.id in MODULES:
            return MODULES[node.value.id]
        if node.value.id == "os":
            return _OS_USES.get(node.attr, "")
    if isinstance(node, ast.Call) and last_name(node.func) in _PATH_CALLS - {target}:
        return _absolute_path(node)
    return ""


def _absolute_path(call: ast.Call) -> str:
    """A call that opens or changes a file may not name one outside of its own folder."""
    first = call.args[0] if call.args else None
    text = first.value if isinstance(first, ast.Constant) else None
    return "an absolute path" if isinstance(text, str) and _ABSOLUTE.match(text) else ""


def _top(name: str) -> str:
    return name.split(".")[0]
