"""A file's bytes are decoded so that they can be written back, or refused in one sentence."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexfix.errors import UsageProblem
from reflexfix.source import MAX_BYTES, Source, read_python, refuse_size

ENCODED = {
    "plain": b"x = 1\n",
    "no newline at the end": b"x = 1",
    "empty": b"",
    "utf-8": "x = 'é'\n".encode(),
    "BOM": b"\xef\xbb\xbfx = 1\n",
    "BOM and a coding line": b"\xef\xbb\xbf# coding: utf-8\nx = 1\n",
    "latin-1": "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"),
    "coding on the second line": b"#!/usr/bin/python\n# vim: fileencoding=cp1252 :\nx = '\x80'\n",
    "coding and CRLF": "# coding: latin-1\r\nx = 'é'\r\n".encode("latin-1"),
    "coding and lone CR": "# coding: latin-1\rx = 'é'\r".encode("latin-1"),
    "shift_jis": "# coding: shift_jis\nx = '表'\n".encode("shift_jis"),
    "utf-8 by its other name": b"# coding: utf-8-sig\nx = 1\n",
    "mixed endings": b"a\r\nb\nc\rd\r\n\n\r",
    "form feeds and odd breaks": "x = 1\n\f\n# \x0b\x1c\x85\u2028\n".encode(),
}


@pytest.mark.parametrize("data", ENCODED.values(), ids=ENCODED)
def test_what_is_read_is_written_back_to_the_same_bytes(data: bytes) -> None:
    source = read_python(data, "m.py")
    assert source.encode(source.text) == data


REFUSED = {
    "utf-16 with its mark": "x = 1\n".encode("utf-16"),
    "utf-16 without": "x = 1\n".encode("utf-16-le"),
    "utf-16 that says so": b"# coding: utf-16\nx = 1\n",
    "utf-32": "x = 1\n".encode("utf-32"),
    "latin-1 that does not say so": b"x = '\xe9'\n",
    "an unknown encoding": b"# coding: klingon\nx = 1\n",
    "an encoding that is none": b"# coding: rot13\nx = 1\n",
    "base64": b"# coding: base64\nx = 1\n",
    "idna": b"# coding: idna\nx = '\xe9'\n",
    "punycode": b"# coding: punycode\nx = '-\xe9-'\n",
    "escapes": b"# coding: unicode_escape\nx = '\\d\\n'\n",
    "undefined": b"# coding: undefined\n",
    "a BOM and another coding line": b"\xef\xbb\xbf# coding: latin-1\n",
    "NUL": b"x = 1\0\n",
    "a compiled file": b"\xa7\r\r\n\0\0\0\0",
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_what_would_not_survive_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(UsageProblem, match=r"m\.py cannot be decoded"):
        read_python(data, "m.py")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=40).map(lambda t: f"# coding: {t}\n".encode()))
def test_arbitrary_bytes_survive_or_are_refused(data: bytes) -> None:
    try:
        source = read_python(data, "m.py")
    except UsageProblem:
        return
    assert source.encode(source.text) == data


def test_a_file_above_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(UsageProblem, match="2,000,001 bytes"):
        refuse_size(MAX_BYTES + 1, "m.py")
    with pytest.raises(UsageProblem, match="at most"):
        read_python(b" " * (MAX_BYTES + 1), "m.py")


LINES = "é = 1\r\n  b\rc\n\nd"


def test_lines_end_where_python_ends_them() -> None:
    source = Source(LINES)
    assert [source.line(n + 1) for n in range(len(source.starts))] == ["é = 1", "  b", "c", "", "d"]
    assert source.text[source.after_line(2) :] == "c\n\nd"
    assert source.after_line(5) == len(LINES)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(["x = 'é'", "\ty", "", "\f", "'\u2028'", "'\x1c'"]), max_size=6),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_offsets_find_what_the_tree_names(lines: list[str], ending: str) -> None:
    source = Source(ending.join(["if 1:", *(" " + line.strip() for line in lines), "  ", " z = é"]))
    tree = ast.parse(source.text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            start = source.offset(node.lineno, node.col_offset)
            assert source.text[start:].startswith(node.id)


@pytest.mark.parametrize(
    ("text", "newline"),
    [("", "\n"), ("a", "\n"), ("a\r\nb", "\r\n"), ("a\nb\r\nc\r\n", "\r\n"), ("a\rb\nc", "\r")],
)
def test_new_text_gets_the_ending_that_the_file_uses_most(text: str, newline: str) -> None:
    assert Source(text).with_newlines("1\n2\r\n3") == f"1{newline}2{newline}3"


def test_a_character_that_the_encoding_lacks_is_named() -> None:
    with pytest.raises(UsageProblem, match="'€', which latin-1 cannot write"):
        Source("", "latin-1").encode("a€")
