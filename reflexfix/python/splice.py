"""Put a body into its function and leave every other byte of the file as it was."""

from __future__ import annotations

import ast
import io
import tokenize
from dataclasses import dataclass

from reflexfix.errors import UsageProblem
from reflexfix.python.target import Found, Function, docstring_node
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
    edits = [body_edit(source, found.node, code.body)]
    if code.helpers:
        edits.append(helpers_edit(source, found, code.helpers))
    if code.imports:
        edits.append(imports_edit(source, tree, code.imports))
    text = source.text
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        text = text[: edit.start] + source.with_newlines(edit.text) + text[edit.end :]
    return source.encode(text)


# ---------------------------------------------------------------- the body


def body_edit(source: Source, node: Function, body: str) -> Edit:
    """Say what text takes the place of the old body."""
    first, last = body_span(source, node)
    if is_on_header_line(source, node):
        return one_line_edit(source, node, body)
    indent = body_indent(source, node)
    new = indented(body, indent)
    if first > last:  # there is only a docstring: the body goes below it, on lines of its own
        at = source.after_line(last)
        lead = "" if source.text[:at].endswith(("\n", "\r")) else "\n"
        tail = "\n" if not lead else ""
        return Edit(at, at, f"{lead}{new}{tail}")
    doc = docstring_node(node)
    start = source.starts[first - 1]
    lead = ""
    if doc is not None and doc.end_lineno == first:  # """doc"""; pass
        start = source.offset(first, doc.end_col_offset or 0)
        lead = "\n"
    end = source.starts[last - 1] + len(source.line(last))
    return Edit(start, end, lead + new)


def body_span(source: Source, node: Function) -> tuple[int, int]:
    """Give the first and the last line of what is replaced; first > last when there is none.

    Comments above the old body stay, unless they say TODO or FIXME.
    """
    doc = docstring_node(node)
    statements = node.body[1:] if doc is not None else node.body
    if not statements:
        return _below_docstring(source, node)
    first = first_line(statements[0])
    floor = (doc.end_lineno or 0) if doc is not None else header_end(source, node)
    while first - 1 > floor and _is_todo(source.line(first - 1)):
        first -= 1
    return first, node.end_lineno or first


def _below_docstring(source: Source, node: Function) -> tuple[int, int]:
    """Skip the comments that follow a lone docstring at the body's depth."""
    last = node.end_lineno or node.lineno
    indent = body_indent(source, node)
    while last < len(source.starts) and source.line(last + 1).startswith(indent + "#"):
        last += 1
    return last + 1, last


def _is_todo(line: str) -> bool:
    text = line.strip()
    return text.startswith("#") and ("TODO" in text or "FIXME" in text)


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
    return node.body[0].lineno == header_end(source, node)


def one_line_edit(source: Source, node: Function, body: str) -> Edit:
    """Break `def f(): ...` into lines; a comment behind it stays on the header's line."""
    indent = body_indent(source, node)
    _, start = colon(source, node)
    last = node.end_lineno or node.lineno
    stop = source.offset(last, node.end_col_offset or 0)
    end = source.starts[last - 1] + len(source.line(last))
    comment = source.text[stop:end].strip(" \t;")
    doc = docstring_node(node)
    kept = ""
    if doc is not None:
        at = source.offset(doc.lineno, doc.col_offset)
        kept = (
            indent + source.text[at : source.offset(doc.end_lineno or 0, doc.end_col_offset or 0)]
        )
        kept += "\n"
    gap = "  " if comment else ""
    return Edit(start, end, f"{gap}{comment}\n{kept}{indented(body, indent)}")


def body_indent(source: Source, node: Function) -> str:
    """Give the white space in front of the body's statements, or what it would be."""
    own = leading(source.line(node.lineno))
    first = source.line(node.body[0].lineno)
    if not is_on_header_line(source, node):
        return leading(first)
    return own + ("\t" if own.endswith("\t") or uses_tabs(source) else "    ")


def leading(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t\f"))].replace("\f", "")


def uses_tabs(source: Source) -> bool:
    lines = [source.line(n + 1) for n in range(min(len(source.starts), 2000))]
    return sum(x.startswith("\t") for x in lines) > sum(x.startswith("  ") for x in lines)


def indented(body: str, indent: str) -> str:
    """Indent a body, leaving the inside of long strings alone."""
    unit = "\t" if indent.endswith("\t") else "    "
    inside = lines_inside_strings(body)
    lines = body.split("\n")
    return "\n".join(
        line if number in inside else _reindented(line, indent, unit)
        for number, line in enumerate(lines, 1)
    )


def _reindented(line: str, indent: str, unit: str) -> str:
    text = line.lstrip(" ")
    if not text:
        return ""
    levels, rest = divmod(len(line) - len(text), 4)
    return indent + unit * levels + " " * rest + text


def lines_inside_strings(code: str) -> set[int]:
    """List the lines, from 1, whose beginning lies inside a string that began further up."""
    inside: set[int] = set()
    starts: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            name = tokenize.tok_name[token.type]
            if name == "FSTRING_START":
                starts.append(token.start[0])
            elif name == "FSTRING_END":
                inside.update(range(starts.pop() + 1, token.end[0] + 1))
            elif token.type == tokenize.STRING:
                inside.update(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        return inside
    return inside


# ---------------------------------------------------------------- helpers and imports


def helpers_edit(source: Source, found: Found, helpers: tuple[str, ...]) -> Edit:
    """Put helpers above the outermost item that holds the target, above what belongs to it."""
    at = source.starts[above(source, first_line(found.outermost)) - 1]
    return Edit(at, at, "".join(helper + "\n\n\n" for helper in helpers))


def first_line(node: ast.stmt) -> int:
    """Give the line on which a statement begins, its decorators counted in."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def above(source: Source, line: int) -> int:
    """Step above the comments that belong to a line; those that open the file stay on top."""
    first = line
    while first > 1 and source.line(first - 1).startswith("#"):
        first -= 1
    opens_file = not any(source.line(n).strip() for n in range(1, first))
    return line if opens_file else first


def imports_edit(source: Source, tree: ast.Module, imports: tuple[str, ...]) -> Edit:
    """Put imports behind those that the file begins with, or where they would be."""
    text = "".join(line + "\n" for line in imports)
    anchor = last_import(tree)
    if anchor is not None:
        at = source.after_line(_last_line_of_row(tree, anchor))
        lead = "" if source.text[:at].endswith(("\n", "\r")) else "\n"
        return Edit(at, at, lead + text)
    first = tree.body[0]
    if isinstance(first, ast.Expr) and ast.get_docstring(tree, clean=False) is not None:
        at = source.after_line(_last_line_of_row(tree, first))
        lead = "" if source.text[:at].endswith(("\n", "\r")) else "\n"
        return Edit(at, at, f"{lead}\n{text}")
    at = source.starts[above(source, first_line(first)) - 1]
    return Edit(at, at, text + "\n\n")


def last_import(tree: ast.Module) -> ast.stmt | None:
    """Find the last import of the block that the file begins with."""
    found: ast.stmt | None = None
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found = node
        elif not (node is tree.body[0] and isinstance(node, ast.Expr)):
            break
    return found


def _last_line_of_row(tree: ast.Module, node: ast.stmt) -> int:
    """Give the last line of all statements that share a line with this one."""
    last = node.end_lineno or node.lineno
    for other in tree.body:
        if other.lineno <= last:
            last = max(last, other.end_lineno or last)
    return last
