"""HumanEval-X and HumanEvalPack: HumanEval in Rust with solutions, and with a bug in each."""

from __future__ import annotations

from reflexfix.benchmarks import rust_text
from reflexfix.benchmarks.problem import Problem, Program, Wishes
from reflexfix.benchmarks.python_text import called, last_function, parsed, stub_of
from reflexfix.benchmarks.rows import NoProblem, Row


def problem(row: Row, wishes: Wishes) -> Problem:
    """Read a row of HumanEval-X (Apache-2.0, THUDM), Python or Rust."""
    if language_of(row) == "python":
        return _python(row, wishes)
    declaration, body = row.text("declaration"), row.text("canonical_solution")
    code, tests = declaration + body, rust_text.laid_open(row.text("test"))
    function = rust_text.tested(code, tests)
    found = rust_text.named(code, function)
    assert found is not None
    text = row.text("prompt").strip().removeprefix("/*").removesuffix("*/")
    stub = rust_text.documented(rust_text.hollowed(code, found), function, text)
    return _rust(row, stub, function, code, tests)


def pack(row: Row, wishes: Wishes) -> Problem:
    """Read a row of HumanEvalPack (MIT, OctoPack), to be written or with its bug to be repaired.

    Some Rust rows give an entry point that no function has: there, the tests tell it.
    """
    if language_of(row) == "python":
        return _python(row, wishes)
    prompt, function = row.text("prompt"), row.text("entry_point")
    tests = rust_text.laid_open(row.text("test"))
    end = row.text("buggy_solution") if wishes.repair else rust_text.STUB
    if rust_text.named(prompt + end, function) is None:
        function = rust_text.tested(prompt + end, tests)
    stub = rust_text.documented(prompt + end, function)
    return _rust(row, stub, function, prompt + row.text("canonical_solution"), tests)


def language_of(row: Row) -> str:
    """Tell the language by the id: Rust/12. Raises NoProblem for one that is not known here."""
    language = row.text("task_id").split("/")[0].lower()
    if language not in ("python", "rust"):
        raise NoProblem(f"the language {language} is not known here")
    return language


def _rust(row: Row, stub: str, function: str, solution: str, tests: str) -> Problem:
    needed = rust_text.crates_in(tests, stub)
    every = tuple(dict.fromkeys([*needed, *rust_text.crates_in(solution)]))
    return Problem(
        id=row.text("task_id"),
        language="rust",
        source=rust_text.cleaned(stub, needed),
        function=function,
        hidden=Program(tests),
        solution=rust_text.cleaned(solution, every),
        packages=needed,
        notes=tuple(f"needs crate {crate}" for crate in every),
    )


def _python(row: Row, wishes: Wishes) -> Problem:
    prompt = row.text("prompt")
    function = row.text("entry_point", "") or _declared(row.text("declaration"))
    stub, notes = stub_of(prompt, function)
    buggy = row.text("buggy_solution", "") if wishes.repair else ""
    return Problem(
        id=row.text("task_id"),
        language="python",
        source=prompt + buggy if buggy else stub,
        function=function,
        hidden=Program(called(row.text("test"), function)),
        solution=prompt + row.text("canonical_solution"),
        notes=() if buggy else notes,
    )


def _declared(declaration: str) -> str:
    """Name the function that a declaration ends with."""
    tree = parsed(declaration.rstrip() + "\n    ...\n", "the declaration")
    node = tree.body[-1]
    name = str(getattr(node, "name", ""))
    if last_function(tree, name) is None:
        raise NoProblem("the declaration ends with no function")
    return name
