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
    "expanduser", "read_text", "glob", "iglob", "walk", "copytree",
}  # fmt: skip
_ABSOLUTE = re.compile(r"^(/|~|[A-Za-z]:[\\/])")


def forbidden_use(nodes: list[ast.stmt], target: str) -> str:
    """Say what a test uses that it may not; "" when there is nothing."""
    inner = [child for node in nodes for child in ast.walk(node)]
    names = _other_names(inner)
    for child in inner:
        if use := _forbidden(child, target, names):
            return f"uses {use}"
    return ""


def _other_names(nodes: list[ast.AST]) -> dict[str, str]:
    """Tell what modules are called that were imported under another name."""
    aliases = [a for n in nodes if isinstance(n, ast.Import) for a in n.names]
    return {a.asname: _top(a.name) for a in aliases if a.asname}


def _forbidden(node: ast.AST, target: str, names: dict[str, str]) -> str:
    if isinstance(node, ast.Import):
        return next((MODULES[t] for a in node.names if (t := _top(a.name)) in MODULES), "")
    if isinstance(node, ast.ImportFrom):
        uses = _OS_USES if node.module == "os" else {}
        found = next((uses[a.name] for a in node.names if a.name in uses), "")
        return found or MODULES.get(_top(node.module or ""), "")
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        module = names.get(node.value.id, node.value.id)
        return MODULES.get(module, "") or (_OS_USES.get(node.attr, "") if module == "os" else "")
    if isinstance(node, ast.Call) and last_name(node.func) in _PATH_CALLS - {target}:
        return _absolute_path(node)
    if isinstance(node, ast.Call) and last_name(node.func) in ("__import__", "import_module"):
        return MODULES.get(_top(_text(node.args[0])), "") if node.args else ""
    return ""


def _absolute_path(call: ast.Call) -> str:
    """A call that opens or changes a file may not name one outside of its own folder."""
    given = [*call.args[:1], *(k.value for k in call.keywords if k.arg in ("file", "path"))]
    return "an absolute path" if any(_ABSOLUTE.match(_text(node)) for node in given) else ""


def _text(node: ast.expr) -> str:
    """Give what a text begins with, as far as it stands there."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _top(name: str) -> str:
    return name.split(".")[0]
