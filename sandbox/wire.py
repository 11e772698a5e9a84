"""Plain values and frames as they cross between processes that do not trust each other.

A value is turned into JSON with its exact type kept: what comes out has the type that went
in, never one that merely looks like it, and nothing is ever unpickled. Carried are: None,
bool, int, float (nan, infinities and -0.0 too), complex, str (lone surrogates too), bytes,
bytearray, list, tuple, set, frozenset, dict, and of the standard library Decimal, Fraction,
date, time, datetime (naive or UTC), timedelta, deque, Counter, OrderedDict and defaultdict
(which loses its factory). Subclasses, instances of other classes, functions, iterators and
ranges are refused, and so are cycles, nesting below DEPTH, fractions above FRACTION_BITS (the
other side has to reduce them), values of more than ITEMS items and frames above FRAME_BYTES.

No code of the value's own class or metaclass runs on either side: types are told by identity.
Decoding takes time in proportion to the frame, except that keys chosen to collide make dicts
and sets slow; whoever decodes for a test is under that test's clock.

Encoded form: JSON scalars stand for None, bool, int of up to 64 bits, float and str without
surrogates; everything else is a list that begins with a tag:

    ["l", item, ...]   list       ["t", ...] tuple   ["s", ...] set     ["z", ...] frozenset
    ["L", [scalar, ...]]          a list of untagged scalars, in bulk
    ["d", [key, value], ...]      dict; "D" OrderedDict, "C" Counter, "F" defaultdict
    ["q", maxlen, item, ...]      deque
    ["b", hex] bytes   ["a", hex] bytearray   ["i", hex] int   ["c", re, im] complex
    ["u", [code point, ...]]      str with surrogates
    ["x", name, argument, ...]    Decimal, Fraction, date, time, datetime, timedelta
    ["r", n]                      the n-th mutable container of this message once more

A frame is four bytes of length, most significant first, then that many bytes of JSON, which
holds at most ITEMS commas and opening brackets (so that a frame cannot grow a hundredfold in
memory). A frame of length zero is a heartbeat and reads as None.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import json
from collections.abc import Callable
from typing import Any, Protocol

DEPTH = 200
ITEMS = 2**21
FRACTION_BITS = 2**14
FRAME_BYTES = 32 * 2**20
_SMALL = 2**63


class Refused(ValueError):
    """A value that the wire does not carry; the message names its type."""


class TooMuch(Refused):
    """A value of a type that the wire carries, but too deep or too large."""


class Malformed(ValueError):
    """Bytes that no encoder of ours can have written."""


class Closed(EOFError):
    """The other side is gone."""


class Channel(Protocol):
    """What frames are read from and written to: a connected socket will do."""

    def recv(self, size: int, /) -> bytes: ...
    def sendall(self, data: bytes, /) -> None: ...


# ---------------------------------------------------------------- values


def encode(value: object) -> Any:
    """Give the JSON form of a plain value. Raises Refused with the type that cannot cross."""
    try:
        return _Encoder().encode(value, 0)
    except RecursionError:
        raise TooMuch("unsupported type: nested deeper than the stack allows") from None


def decode(data: Any) -> Any:
    """Give back the value that `encode` was given. Raises Malformed on anything else."""
    try:
        return _Decoder().decode(data, 0)
    except Malformed:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError, RecursionError) as error:
        raise Malformed(f"{type(error).__name__}: {error}") from None


def _is_scalar(value: object) -> bool:
    kind = type(value)
    if kind is int:
        return -_SMALL <= value < _SMALL  # type: ignore[operator]
    if kind is str:
        return value.isascii() or not _has_surrogate(value)  # type: ignore[attr-defined,arg-type]
    return value is None or kind is bool or kind is float


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


_BULK = frozenset(map(id, (int, float, bool, str, type(None))))
_NEVER_LARGE = frozenset(map(id, (float, bool, type(None))))


def _all_scalars(items: list[Any]) -> bool:
    """Say whether a whole list can cross in bulk, looking at each type once."""
    kinds = set(map(id, map(type, items)))  # a foreign metaclass may have a __hash__ of its own
    if not kinds <= _BULK:
        return False
    if kinds <= _NEVER_LARGE:
        return True
    if kinds == {id(int)}:
        return bool(min(items) >= -_SMALL and max(items) < _SMALL)
    return all(map(_is_scalar, items))


class _Encoder:
    def __init__(self) -> None:
        self.seen: dict[int, int] = {}
        self.open: set[int] = set()
        self.items = 0

    def encode(self, value: Any, depth: int) -> Any:
        if _is_scalar(value):
            return value
        kind = type(value)
        write = _WRITERS.get(id(kind))
        if write is None:
            raise Refused(f"unsupported type: {_type_name(kind)}")
        if depth >= DEPTH:
            raise TooMuch(f"unsupported type: {_type_name(kind)} nested deeper than {DEPTH}")
        if id(kind) not in _MUTABLE:
            return write(self, value, depth + 1)
        key = id(value)
        if key in self.seen:
            return self._once_more(key, kind)
        self.seen[key] = len(self.seen)
        self.open.add(key)
        data = write(self, value, depth + 1)
        self.open.discard(key)
        return data

    def _once_more(self, key: int, kind: type) -> list[Any]:
        """Refer to a container that was written before, so that it stays shared."""
        if key in self.open:
            raise Refused(f"unsupported type: {_type_name(kind)} that contains itself")
        return ["r", self.seen[key]]

    def many(self, items: Any, depth: int, *head: Any) -> list[Any]:
        self._count(len(items))
        data = list(head)
        for item in items:
            data.append(self.encode(item, depth))
        return data

    def sequence(self, value: list[Any], depth: int) -> list[Any]:
        if not _all_scalars(value):
            return self.many(value, depth, "l")
        self._count(len(value))
        return ["L", value]

    def pairs(self, tag: str, value: dict[Any, Any], depth: int) -> list[Any]:
        self._count(2 * len(value))
        data: list[Any] = [tag]
        for key, item in value.items():
            data.append([self.encode(key, depth), self.encode(item, depth)])
        return data

    def _count(self, more: int) -> None:
        """Tuples are written wherever they are met, and few of them can make very many."""
        self.items += more
        if self.items > ITEMS:
            raise TooMuch(f"unsupported type: value of more than {ITEMS} items")


def _type_name(kind: type) -> str:
    """Give the name of a type without running anything of its metaclass."""
    return str.__str__(type.__dict__["__qualname__"].__get__(kind))[:80]


def _write_time(kind: str) -> Callable[[_Encoder, Any, int], Any]:
    def write(_encoder: _Encoder, value: Any, _depth: int) -> Any:
        if not (value.tzinfo is None or value.tzinfo is datetime.UTC):
            raise Refused(f"unsupported type: {kind} with a time zone")
        return ["x", kind, value.isoformat(), value.fold]

    return write


def _write_timedelta(_encoder: _Encoder, value: Any, _depth: int) -> Any:
    return ["x", "timedelta", value.days, value.seconds, value.microseconds]


def _write_fraction(encoder: _Encoder, value: Any, depth: int) -> Any:
    parts = (value.numerator, value.denominator)
    if not all(type(part) is int for part in parts):
        raise Refused("unsupported type: Fraction of other things")
    if max(part.bit_length() for part in parts) > FRACTION_BITS:
        raise TooMuch(f"unsupported type: Fraction of more than {FRACTION_BITS} bits")
    return ["x", "Fraction", *(encoder.encode(part, depth) for part in parts)]


_WRITERS_BY_TYPE: dict[type, Callable[[_Encoder, Any, int], Any]] = {
    int: lambda e, v, d: ["i", format(v, "x")],
    str: lambda e, v, d: ["u", list(map(ord, v))],
    bytes: lambda e, v, d: ["b", v.hex()],
    bytearray: lambda e, v, d: ["a", v.hex()],
    complex: lambda e, v, d: ["c", v.real, v.imag],
    list: _Encoder.sequence,
    tuple: lambda e, v, d: e.many(v, d, "t"),
    set: lambda e, v, d: e.many(v, d, "s"),
    frozenset: lambda e, v, d: e.many(v, d, "z"),
    dict: lambda e, v, d: e.pairs("d", v, d),
    collections.OrderedDict: lambda e, v, d: e.pairs("D", v, d),
    collections.Counter: lambda e, v, d: e.pairs("C", v, d),
    collections.defaultdict: lambda e, v, d: e.pairs("F", v, d),
    collections.deque: lambda e, v, d: e.many(v, d, "q", v.maxlen),
    decimal.Decimal: lambda e, v, d: ["x", "Decimal", str(v)],
    fractions.Fraction: _write_fraction,
    datetime.date: lambda e, v, d: ["x", "date", v.isoformat()],
    datetime.time: _write_time("time"),
    datetime.datetime: _write_time("datetime"),
    datetime.timedelta: _write_timedelta,
}
_WRITERS = {id(kind): write for kind, write in _WRITERS_BY_TYPE.items()}
"""By identity: to look a type up by its value would run the `__hash__` of its metaclass."""
_MUTABLE = frozenset(
    map(
        id,
        (
            list,
            set,
            dict,
            bytearray,
            collections.deque,
            collections.Counter,
            collections.OrderedDict,
            collections.defaultdict,
        ),
    )
)
_PAIRED: dict[str, Callable[[], Any]] = {
    "d": dict,
    "D": collections.OrderedDict,
    "C": collections.Counter,
    "F": collections.defaultdict,
}
_UNPAIRED: dict[str, Callable[[list[Any]], Any]] = {"t": tuple, "z": frozenset}
_OPEN = object()
"""Stands for a container that is still being read: nothing may refer to it yet."""


class _Decoder:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def decode(self, data: Any, depth: int) -> Any:
        if type(data) is not list:
            return data if _is_scalar(data) else _malformed("a bare value that needs a tag")
        if depth > DEPTH or not data or type(data[0]) is not str:
            raise Malformed("no tag, or nested too deep")
        tag, depth = data[0], depth + 1
        if tag in _UNPAIRED:
            return _UNPAIRED[tag](self._items(data[1:], depth))
        if tag in _PAIRED:
            return self._paired(_PAIRED[tag](), data[1:], depth)
        if tag in ("l", "s", "q"):
            return self._filled(tag, data[1:], depth)
        return self._leaf(tag, data[1:], depth)

    def _items(self, data: list[Any], depth: int) -> list[Any]:
        items = []
        for item in data:
            items.append(self.decode(item, depth))
        return items

    def _paired(self, target: Any, rest: list[Any], depth: int) -> Any:
        place = self._place()
        for pair in rest:
            key, value = _plain(list, pair)
            target[self.decode(key, depth)] = self.decode(value, depth)
        self.seen[place] = target
        return target

    def _filled(self, tag: str, rest: list[Any], depth: int) -> Any:
        place = self._place()
        most = rest.pop(0) if tag == "q" else None
        items = self._items(rest, depth)
        if most is not None and len(items) > _plain(int, most):
            raise Malformed("a deque of more than it holds")
        target: Any = set(items) if tag == "s" else items
        if tag == "q":
            target = collections.deque(items, most)
        self.seen[place] = target
        return target

    def _place(self) -> int:
        """Take the number by which a mutable container may be referred to once it is read."""
        self.seen.append(_OPEN)
        return len(self.seen) - 1

    def _referred(self, number: Any) -> Any:
        if _plain(int, number) < 0 or self.seen[number] is _OPEN:
            raise Malformed("a reference to nothing")
        return self.seen[number]

    def _known(self, target: Any) -> Any:
        self.seen.append(target)
        return target

    def _leaf(self, tag: str, rest: list[Any], depth: int) -> Any:
        if tag == "L":
            return self._known(_bulk(rest[0]))
        if tag == "r":
            return self._referred(rest[0])
        if tag == "b":
            return bytes.fromhex(_plain(str, rest[0]))
        if tag == "a":
            return self._known(bytearray.fromhex(_plain(str, rest[0])))
        if tag == "i":
            return int(_plain(str, rest[0]), 16)
        if tag == "c":
            return complex(_plain(float, rest[0]), _plain(float, rest[1]))
        if tag == "u":
            return "".join(map(chr, _plain(list, rest[0])))
        if tag == "x":
            return _READERS[_plain(str, rest[0])](*self._items(rest[1:], depth))
        raise Malformed(f"unknown tag {tag[:20]!r}")


def _malformed(what: str) -> Any:
    raise Malformed(what)


def _plain(kind: type, value: Any) -> Any:
    return value if type(value) is kind else _malformed(f"{kind.__name__} expected")


def _bulk(items: Any) -> Any:
    if type(items) is not list or not _all_scalars(items):
        raise Malformed("a bulk list of other things")
    return items


def _read_fraction(*parts: Any) -> fractions.Fraction:
    above, below = (_plain(int, part) for part in parts)
    if max(above.bit_length(), below.bit_length()) > FRACTION_BITS:
        raise Malformed("a large fraction")
    return fractions.Fraction(above, below)


def _read_time(kind: Any) -> Callable[[Any, Any], Any]:
    def read(text: Any, fold: Any) -> Any:
        value = kind.fromisoformat(_plain(str, text)).replace(fold=_plain(int, fold))
        return value if value.tzinfo in (None, datetime.UTC) else _malformed("a time zone")

    return read


_READERS: dict[str, Callable[..., Any]] = {
    "Decimal": lambda text: decimal.Decimal(_plain(str, text)),
    "Fraction": _read_fraction,
    "date": lambda text: datetime.date.fromisoformat(_plain(str, text)),
    "time": _read_time(datetime.time),
    "datetime": _read_time(datetime.datetime),
    "timedelta": lambda d, s, u: datetime.timedelta(_plain(int, d), _plain(int, s), _plain(int, u)),
}


# ---------------------------------------------------------------- frames


def pack(message: object) -> bytes:
    """Give the bytes of one frame. Raises Refused above FRAME_BYTES or ITEMS."""
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(body) > FRAME_BYTES:
        raise TooMuch(f"unsupported type: value of more than {FRAME_BYTES} bytes")
    if items_in(body) > ITEMS:
        raise TooMuch(f"unsupported type: value of more than {ITEMS} items")
    return len(body).to_bytes(4, "big") + body


def items_in(body: bytes) -> int:
    """Count, from above, the values that JSON text would become."""
    return sum(map(body.count, (b",", b"[", b"{")))


_JSON = json.JSONDecoder(parse_constant=float)
"""Makes each nan an object of its own: two keys (nan,) are one where their nan is the same."""


def unpack(body: bytes) -> Any:
    """Read the JSON of one frame. Raises Malformed."""
    if items_in(body) > ITEMS:
        raise Malformed(f"a frame of more than {ITEMS} items")
    try:
        return _JSON.decode(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Malformed(f"{type(error).__name__}: {error}") from None


def send(channel: Channel, message: object) -> None:
    """Write one frame. Raises Refused if it is too large, OSError if nobody reads."""
    channel.sendall(pack(message))


def receive(channel: Channel) -> Any:
    """Read one frame. Raises Closed at the end of the stream, Malformed on nonsense."""
    size = int.from_bytes(_exactly(channel, 4), "big")
    if size > FRAME_BYTES:
        raise Malformed(f"a frame of {size} bytes")
    return None if size == 0 else unpack(_exactly(channel, size))


def _exactly(channel: Channel, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = channel.recv(min(size - len(parts), 2**20))
        if not part:
            raise Closed("end of stream")
        parts += part
    return bytes(parts)
