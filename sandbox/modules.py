"""Import the user's files from memory, so that nobody can change them on disk meanwhile."""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import InspectLoader, MetaPathFinder

    class Importer(MetaPathFinder, InspectLoader): ...

else:  # the real ones bring 40 modules with them, and every fork pays for each
    Importer = object

FOLDER = "/work"
"""Where the files would be: what `__file__` and tracebacks say.

Nothing can be there, since only /tmp can be written: whatever a candidate leaves on disk is in no
package's search path on the test's side.
"""

CALL = "__reflexfix_call__"


class Files(Importer):
    """Finds and loads the modules that the user's files make up.

    `stub` names the module and the top-level function whose body is replaced by a call of
    CALL: that is the module as the test sees it.
    """

    def __init__(self, files: dict[str, bytes], stub: tuple[str, str] | None = None) -> None:
        self.files = files
        self.stub = stub

    def _path(self, name: str) -> str | None:
        stem = name.replace(".", "/")
        return next((p for p in (f"{stem}.py", f"{stem}/__init__.py") if p in self.files), None)

    def _is_namespace(self, name: str) -> bool:
        prefix = name.replace(".", "/") + "/"
        return any(path.startswith(prefix) for path in self.files)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        found = self._path(fullname)
        if found is None:
            if not self._is_namespace(fullname):
                return None
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [f"{FOLDER}/{fullname.replace('.', '/')}"]
            return spec
        return importlib.util.spec_from_file_location(
            fullname,
            f"{FOLDER}/{found}",
            loader=self,
            submodule_search_locations=[f"{FOLDER}/{found.rpartition('/')[0]}"]
            if found.endswith("/__init__.py")
            else None,
        )

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Let the import system make the module."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        exec(self.get_code(module.__spec__.name), module.__dict__)

    def is_package(self, fullname: str) -> bool:
        return (self._path(fullname) or "").endswith("__init__.py")

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self._bytes(fullname))

    def _bytes(self, fullname: str) -> bytes:
        path = self._path(fullname)
        if path is None:
            raise ImportError(f"no module named {fullname!r}", name=fullname)
        return self.files[path]

    def get_code(self, fullname: str) -> CodeType:
        source, path = self._bytes(fullname), f"{FOLDER}/{self._path(fullname)}"
        if self.stub is None or self.stub[0] != fullname:
            return compile(source, path, "exec", dont_inherit=True)
        return compile(with_stub(source, self.stub[1]), path, "exec", dont_inherit=True)


def with_stub(source: bytes, name: str) -> ast.Module:
    """Give the module with the last top-level function of this name turned into a call.

    Decorators go too: they are applied once, where the real function lives.
    """
    tree = ast.parse(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    targets = [n for n in functions if n.name == name and n.col_offset == 0]
    for node in targets[-1:]:
        call = ast.parse(f"return {CALL}(args, kwargs)").body
        node.args = ast.parse("lambda *args, **kwargs: 0", mode="eval").body.args  # type: ignore[attr-defined]
        doc = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
        node.body, node.decorator_list, node.returns = [*doc, *call], [], None
    return ast.fix_missing_locations(tree)


def source_line(path: str, number: int) -> str:
    """Give a line of the user's files as a traceback shows it; "" where there is none."""
    for finder in sys.meta_path:
        if isinstance(finder, Files):
            source = finder.files.get(path.removeprefix(FOLDER + "/"), b"")
            lines = source.decode("utf-8", "replace").splitlines()
            return lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return ""


def install(files: dict[str, bytes], stub: tuple[str, str] | None = None) -> None:
    """Put the user's files before everything else that can be imported."""
    sys.meta_path.insert(0, Files(files, stub))
    sys.modules["__main__"] = ModuleType("__main__")  # it was the supervisor
    for name in [n for n in sys.modules if n.split(".")[0] == "sandbox"]:
        del sys.modules[name]  # the user may have a module of that name
    tops = {path.split("/")[0].removesuffix(".py") for path in files}
    for name in [n for n in sys.modules if n.split(".")[0] in tops]:
        del sys.modules[name]  # a file of the user's wins over a warmed module, as beside a script


def load(name: str) -> ModuleType:
    """Import the user's module under its real dotted name."""
    return importlib.import_module(name)
