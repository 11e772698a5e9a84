"""Plain values and frames as they cross between processes that do not trust each other.

A value is turned into JSON with its exact type kept: what comes out has the type that went
in, never one that merely looks like it, and nothing is ever unpickled. Carried are: None,
bool, int, float (nan, infinities and -0.0 too), complex, str (lone surrogates too), bytes,
bytearray, list, tuple, set, frozenset, dict, and of the standard library Decimal, Fraction,
date, time, datetime (naive or UTC), timedelta, deque, Counter, OrderedDict and defaultdict
(which loses its factory). Subclasses, instances of other classes, functions, iterators and
ranges are refused, and so are cycles, nesting below DEPTH and frames above FRAME_BYTES.

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

A frame is four bytes of length, most significant first, then that many bytes of JSON. A
frame of length zero is a heartbeat and reads as None.
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
FRAME_BYTES = 32 * 2**20
_SMALL = 2**63


class Refused(ValueError):
    """A value that the wire does not carry; the message names its type."""


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
    return _Encoder().encode(value, 0)


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


def _all_scalars(items: list[Any]) -> bool:
    """Say whether a whole list can cross in bulk, looking at each type once."""
    kinds = set(map(type, items))
    if not kinds <= {int, float, bool, str, type(None)}:
        return False
    if kinds <= {float, bool, type(None)}:
        return True
    if kinds == {int}:
        return bool(min(items) >= -_SMALL and max(items) < _SMALL)
    return all(map(_is_scalar, items))


class _Encoder:
    def __init__(self) -> None:
        self.seen: dict[int, int] = {}
        self.open: set[int] = set()

    def encode(self, value: Any, depth: int) -> Any:
        if _is_scalar(value):
            return value
        kind = type(value)
        if kind not in _WRITERS:
            raise Refused(f"unsupported type: {_type_name(kind)}")
        if depth >= DEPTH:
            raise Refused(f"unsupported type: {_type_name(kind)} nested deeper than {DEPTH}")
        if kind not in _MUTABLE:
            return _WRITERS[kind](self, value, depth + 1)
        return self._shared(value, depth)

    def _shared(self, value: Any, depth: int) -> Any:
        """Write a mutable container once; later meetings become a reference to it."""
        key = id(value)
        if key in self.open:
            raise Refused(f"unsupported type: {_type_name(type(value))} that contains itself")
        if key in self.seen:
            return ["r", self.seen[key]]
        self.seen[key] = len(self.seen)
        self.open.add(key)
        data = _WRITERS[type(value)](self, value, depth + 1)
        self.open.discard(key)
        return data

    def many(self, tag: str, items: Any, depth: int) -> list[Any]:
        return [tag, *(self.encode(item, depth) for item in items)]

    def sequence(self, value: list[Any], depth: int) -> list[Any]:
        return ["L", value] if _all_scalars(value) else self.many("l", value, depth)

    def pairs(self, tag: str, value: dict[Any, Any], depth: int) -> list[Any]:
        both = ([self.encode(k, depth), self.encode(v, depth)] for k, v in value.items())
        return [tag, *both]


def _type_name(kind: type) -> str:
    try:
        return str(kind.__qualname__)[:80]
    except Exception:  # a metaclass can make even this raise, and the candidate wrote it
        return "?"


def _utc_only(value: Any) -> None:
    if value.tzinfo not in (None, datetime.UTC):
        raise Refused(f"unsupported type: {_type_name(type(value))} with a time zone")


def _write_time(kind: str) -> Callable[[_Encoder, Any, int], Any]:
    def write(_encoder: _Encoder, value: Any, _depth: int) -> Any:
        _utc_only(value)
        return ["x", kind, value.isoformat(), value.fold]

    return write


def _write_timedelta(_encoder: _Encoder, value: Any, _depth: int) -> Any:
    return ["x", "timedelta", value.days, value.seconds, value.microseconds]


def _write_fraction(encoder: _Encoder, value: Any, depth: int) -> Any:
    parts = (encoder.encode(value.numerator, depth), encoder.encode(value.denominator, depth))
    return ["x", "Fraction", *parts]


_WRITERS: dict[type, Callable[[_Encoder, Any, int], Any]] = {
    int: lambda e, v, d: ["i", format(v, "x")],
    str: lambda e, v, d: ["u", list(map(ord, v))],
    bytes: lambda e, v, d: ["b", v.hex()],
    bytearray: lambda e, v, d: ["a", v.hex()],
    complex: lambda e, v, d: ["c", v.real, v.imag],
    list: lambda e, v, d: e.sequence(v, d),
    tuple: lambda e, v, d: e.many("t", v, d),
    set: lambda e, v, d: e.many("s", v, d),
    frozenset: lambda e, v, d: e.many("z", v, d),
    dict: lambda e, v, d: e.pairs("d", v, d),
    collections.OrderedDict: lambda e, v, d: e.pairs("D", v, d),
    collections.Counter: lambda e, v, d: e.pairs("C", v, d),
    collections.defaultdict: lambda e, v, d: e.pairs("F", v, d),
    collections.deque: lambda e, v, d: ["q", v.maxlen, *(e.encode(i, d) for i in v)],
    decimal.Decimal: lambda e, v, d: ["x", "Decimal", str(v)],
    fractions.Fraction: _write_fraction,
    datetime.date: lambda e, v, d: ["x", "date", v.isoformat()],
    datetime.time: _write_time("time"),
    datetime.datetime: _write_time("datetime"),
    datetime.timedelta: _write_timedelta,
}
_MUTABLE = frozenset(
    {
        list,
        set,
        dict,
        bytearray,
        collections.deque,
        collections.Counter,
        collections.OrderedDict,
        collections.defaultdict,
    }
)
_PAIRED: dict[str, Callable[[], Any]] = {
    "d": dict,
    "D": collections.OrderedDict,
    "C": collections.Counter,
    "F": collections.defaultdict,
}
_UNPAIRED: dict[str, Callable[[list[Any]], Any]] = {"t": tuple, "z": frozenset}


class _Decoder:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def decode(self, data: Any, depth: int) -> Any:
        if type(data) is not list:
            if not _is_scalar(data):
                raise Malformed("a bare value that needs a tag")
            return data
        if depth > DEPTH or not data or type(data[0]) is not str:
            raise Malformed("no tag, or nested too deep")
        return self._tagged(data[0], data[1:], depth + 1)

    def _tagged(self, tag: str, rest: list[Any], depth: int) -> Any:
        if tag in _UNPAIRED:
            return _UNPAIRED[tag]([self.decode(item, depth) for item in rest])
        if tag in _PAIRED:
            return self._paired(_PAIRED[tag](), rest, depth)
        if tag in ("l", "L", "s", "q", "a"):
            return self._mutable(tag, rest, depth)
        if tag == "r":
            return self.seen[_plain(int, rest[0])] if rest[0] >= 0 else _malformed("reference")
        return self._leaf(tag, rest, depth)

    def _paired(self, target: Any, rest: list[Any], depth: int) -> Any:
        self.seen.append(target)
        for pair in rest:
            key, value = pair
            target[self.decode(key, depth)] = self.decode(value, depth)
        return target

    def _mutable(self, tag: str, rest: list[Any], depth: int) -> Any:
        if tag == "L":
            (items,) = rest
            if type(items) is not list or not _all_scalars(items):
                raise Malformed("a bulk list of other things")
            self.seen.append(items)
            return items
        target: Any = {"l": list, "s": set, "a": bytearray, "q": list}[tag]()
        if tag == "q":
            target = collections.deque(maxlen=None if rest[0] is None else _plain(int, rest[0]))
            rest = rest[1:]
        self.seen.append(target)
        if tag == "a":
            target.extend(bytes.fromhex(_plain(str, rest[0])))
        else:
            add = target.add if tag == "s" else target.append
            for item in rest:
                add(self.decode(item, depth))
        return target

    def _leaf(self, tag: str, rest: list[Any], depth: int) -> Any:
        if tag == "b":
            return bytes.fromhex(_plain(str, rest[0]))
        if tag == "i":
            return int(_plain(str, rest[0]), 16)
        if tag == "c":
            return complex(_plain(float, rest[0]), _plain(float, rest[1]))
        if tag == "u":
            return "".join(map(chr, _plain(list, rest[0])))
        if tag == "x":
            return _READERS[_plain(str, rest[0])](*(self.decode(item, depth) for item in rest[1:]))
        raise Malformed(f"unknown tag {tag[:20]!r}")


def _malformed(what: str) -> Any:
    raise Malformed(what)


def _plain(kind: type, value: Any) -> Any:
    return value if type(value) is kind else _malformed(f"{kind.__name__} expected")


def _read_time(kind: Any) -> Callable[[Any, Any], Any]:
    return lambda text, fold: kind.fromisoformat(_plain(str, text)).replace(fold=_plain(int, fold))


_READERS: dict[str, Callable[..., Any]] = {
    "Decimal": lambda text: decimal.Decimal(_plain(str, text)),
    "Fraction": lambda n, d: fractions.Fraction(_plain(int, n), _plain(int, d)),
    "date": lambda text: datetime.date.fromisoformat(_plain(str, text)),
    "time": _read_time(datetime.time),
    "datetime": _read_time(datetime.datetime),
    "timedelta": lambda d, s, u: datetime.timedelta(_plain(int, d), _plain(int, s), _plain(int, u)),
}


# ---------------------------------------------------------------- frames


def pack(message: object) -> bytes:
    """Give the bytes of one frame. Raises Refused above FRAME_BYTES."""
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(body) > FRAME_BYTES:
        raise Refused(f"unsupported type: value of more than {FRAME_BYTES} bytes")
    return len(body).to_bytes(4, "big") + body


def unpack(body: bytes) -> Any:
    """Read the JSON of one frame. Raises Malformed."""
    try:
        return json.loads(body)
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
