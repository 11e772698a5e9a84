"""Put a body into its function and leave every other byte of the file as it was."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from reflexfix.errors import UsageProblem
from reflexfix.python.layout import comments_in, leading, reindented, usual_unit
from reflexfix.python.target import (
    Found,
    Function,
    body_without_docstring,
    docstring_node,
    first_line,
    is_placeholder,
    is_unfinished,
)
from reflexfix.source import Source


@dataclass(frozen=True)
class Code:
    """What was read from an answer: normal form, four spaces a level, `\\n` line endings."""

    body: str
    """Statements of the body, not indented."""
    imports: tuple[str, ...] = ()
    """One import statement each."""
    helpers: tuple[str, ...] = ()
    """Complete top-level definitions."""

    @property
    def text(self) -> str:
        """All of it as one text, to be shown and compared."""
        parts = ["\n".join(self.imports), *self.helpers, self.body]
        return "\n\n".join(part for part in parts if part)


@dataclass(frozen=True)
class Edit:
    """Text that takes the place of what lies between two character offsets."""

    start: int
    end: int
    text: str


def spliced(source: Source, tree: ast.Module, found: Found, code: Code) -> bytes:
    """Give the whole file with this code in the target's place."""
    unit = usual_unit(source, opened_blocks(tree))
    known = {ast.unparse(n) for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)}
    imports = [line for line in code.imports if line not in known]
    edits = body_edits(source, found, code.body, unit)
    if code.helpers:
        edits.append(helpers_edit(source, tree, found, code.helpers, unit))
    if imports:
        edits.append(imports_edit(source, tree, imports))
    text = source.text
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return source.encode(text)


def opened_blocks(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """List the lines that open a block, with the first line of it."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list) and isinstance(body[0], ast.stmt):
            yield node.lineno, body[0].lineno


# ---------------------------------------------------------------- the body


def body_edits(source: Source, found: Found, body: str, unit: str) -> list[Edit]:
    """Say what text takes the place of the old body.

    Of a stub, the comments stay, unless they say TODO or FIXME.
    """
    node = found.node
    if is_on_header_line(source, node):
        return [one_line_edit(source, node, body, unit)]
    indent = body_indent(source, node)
    doc, statements = docstring_node(node), body_without_docstring(node)
    comments = comment_lines(source, node)
    stub = is_unfinished(found, source)
    kept = [n for n in comments if stub and not is_todo(source.line(n))]
    gone = [n for n in comments if stub and n not in kept]
    removed = [Edit(source.starts[n - 1], source.after_line(n), "") for n in gone]
    body = without_repeated(body, [source.line(n).strip() for n in kept])
    new = reindented(body, indent, step_of(source, node, indent))
    if not statements:
        at = source.after_line(max([(doc.end_lineno or 0) if doc else 0, *kept]))
        return [*removed, _inserted(source, at, new, removed)]
    first = first_line(statements[0])
    while not stub and first - 1 in comments:  # what stands right above an old body belongs to it
        first -= 1
    return [*removed, _replaced(source, node, first, indent, new)]


def _inserted(source: Source, at: int, new: str, removed: list[Edit]) -> Edit:
    """Put a body below the docstring and the comments, on lines of its own."""
    is_end = not source.text[:at].endswith(("\n", "\r"))
    ends_without = is_end or any(
        edit.end == len(source.text) and not source.text.endswith(("\n", "\r")) for edit in removed
    )
    text = ("\n" if is_end else "") + new + ("" if ends_without else "\n")
    return Edit(at, at, source.with_newlines(text))


def _replaced(source: Source, node: Function, first: int, indent: str, new: str) -> Edit:
    """Put a body in the place of what lies between line `first` and the function's end."""
    doc, statements = docstring_node(node), body_without_docstring(node)
    last = node.end_lineno or node.lineno
    start, lead = source.starts[first - 1], ""
    if doc is not None and doc.end_lineno == first:  # """doc"""; pass
        start, lead = source.offset(first, doc.end_col_offset or 0), "\n"
    end = source.starts[last - 1] + len(source.line(last))
    if all(map(is_placeholder, statements)):
        comments = comments_in(source.text[start:end].lstrip("; \t"))
        lead += "".join(f"{indent}{c}\n" for c in comments if not is_todo(c))
    return Edit(start, end, source.with_newlines(lead + new))


def comment_lines(source: Source, node: Function) -> list[int]:
    """List the lines of comments between header or docstring and the first statement.

    Below a lone docstring they go on for as long as they are indented as the body is.
    """
    doc, statements = docstring_node(node), body_without_docstring(node)
    first = max(header_end(source, node), (doc.end_lineno or 0) if doc is not None else 0) + 1
    last = first_line(statements[0]) if statements else len(source.starts) + 1
    own = len(leading(source.line(node.lineno)))
    found = []
    for number in range(first, last):
        line = source.line(number)
        is_comment = line.lstrip(" \t\f").startswith("#")
        if not statements and line.strip() and not (is_comment and len(leading(line)) > own):
            break
        if is_comment:
            found.append(number)
    return found


def is_todo(text: str) -> bool:
    return "TODO" in text or "FIXME" in text


def without_repeated(body: str, kept: list[str]) -> str:
    """Leave out comments at the head of a body that the file has there anyway."""
    lines = body.split("\n")
    while kept and lines and lines[0].strip() in kept:
        lines.pop(0)
    return "\n".join(lines)


def header_end(source: Source, node: Function) -> int:
    """Give the line on which the header's colon stands."""
    return colon(source, node)[0]


def colon(source: Source, node: Function) -> tuple[int, int]:
    """Find the colon that ends the header: its line, and the character offset behind it."""
    begin = source.starts[node.lineno - 1]
    text = source.text[begin:].replace("\r\n", " \n").replace("\r", "\n")
    depth = lambdas = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.OP and token.string in "([{":
            depth += 1
        elif token.type == tokenize.OP and token.string in ")]}":
            depth -= 1
        elif token.type == tokenize.NAME and token.string == "lambda" and depth == 0:
            lambdas += 1
        elif token.string == ":" and token.type == tokenize.OP and depth == 0:
            if not lambdas:
                line = node.lineno + token.start[0] - 1
                return line, source.starts[line - 1] + token.end[1]
            lambdas -= 1
    raise UsageProblem(f"The header of {node.name} has no end.")


def is_on_header_line(source: Source, node: Function) -> bool:
    """Whether the body goes on where the header ends, if need be over a backslash."""
    _, start = colon(source, node)
    first = node.body[0]
    if isinstance(first, Function | ast.ClassDef):
        return False
    between = source.text[start : source.offset(first.lineno, first.col_offset)]
    return not between.replace("\\\r\n", "").replace("\\\n", "").replace("\\\r", "").strip(" \t\f")


def one_line_edit(source: Source, node: Function, body: str, unit: str) -> Edit:
    """Break `def f(): ...` into lines; a comment behind it stays on the header's line."""
    indent = leading(source.line(node.lineno)) + unit
    _, start = colon(source, node)
    last = node.end_lineno or node.lineno
    stop = source.offset(last, node.end_col_offset or 0)
    end = source.starts[last - 1] + len(source.line(last))
    comment = source.text[stop:end].strip(" \t;")
    comment = "" if is_todo(comment) else comment
    doc = docstring_node(node)
    kept = ""
    if doc is not None:
        at = source.offset(doc.lineno, doc.col_offset)
        doc_end = source.offset(doc.end_lineno or 0, doc.end_col_offset or 0)
        kept = source.newline + indent + source.text[at:doc_end]
    new = source.with_newlines("\n" + reindented(body, indent, unit))
    return Edit(start, end, ("  " if comment else "") + comment + kept + new)


def body_indent(source: Source, node: Function) -> str:
    """Give the white space in front of the body's statements."""
    return leading(source.line(first_line(node.body[0])))


def step_of(source: Source, node: Function, indent: str) -> str:
    """Give the step from the header's to the body's indentation."""
    own = leading(source.line(node.lineno))
    inner = indent.removeprefix(own) if indent.startswith(own) else ""
    return inner or ("\t" if indent.endswith("\t") else "    ")


# ---------------------------------------------------------------- helpers and imports


def helpers_edit(
    source: Source, tree: ast.Module, found: Found, helpers: tuple[str, ...], unit: str
) -> Edit:
    """Put helpers above the top-level item that holds the target, above what belongs to it."""
    at = source.starts[above(source, tree, found.top) - 1]
    text = "".join(reindented(helper, "", unit) + "\n\n\n" for helper in helpers)
    return Edit(at, at, source.with_newlines(text))


def above(source: Source, tree: ast.Module, node: ast.stmt) -> int:
    """Step above the comments that belong to an item; those that open the file stay on top."""
    line = first = first_line(node)
    floor = max((n.end_lineno or 0 for n in tree.body if n.lineno < node.lineno), default=0)
    while first - 1 > floor and source.line(first - 1).startswith("#"):
        first -= 1
    opens_file = not any(source.line(n).strip() for n in range(1, first))
    return line if opens_file else first


def imports_edit(source: Source, tree: ast.Module, imports: list[str]) -> Edit:
    """Put imports behind those that the file begins with, or where they would be."""
    text = "".join(line + "\n" for line in imports)
    anchor, first = last_import(tree), tree.body[0]
    if anchor is None and not _is_text(first):
        at = source.starts[above(source, tree, first) - 1]
        return Edit(at, at, source.with_newlines(text + "\n\n"))
    at = source.after_line(_last_line_of_row(tree, anchor or first))
    lead = "" if source.text[:at].endswith(("\n", "\r")) else "\n"
    lead += "" if anchor is not None else "\n"
    return Edit(at, at, source.with_newlines(lead + text))


def _is_text(node: ast.stmt) -> bool:
    """Whether a statement is a docstring."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def last_import(tree: ast.Module) -> ast.stmt | None:
    """Find the last import of the block that the file begins with."""
    found: ast.stmt | None = None
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found = node
        elif not (node is tree.body[0] and _is_text(node)):
            break
    return found


def _last_line_of_row(tree: ast.Module, node: ast.stmt) -> int:
    """Give the last line of all statements that share a line with this one."""
    last = node.end_lineno or node.lineno
    for other in tree.body:
        if other.lineno <= last:
            last = max(last, other.end_lineno or last)
    return last
