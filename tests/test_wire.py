"""What crosses the wire comes out as it went in, and nothing else comes out at all."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import json
import math
import socket
import threading
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox import wire


def across(value: object) -> Any:
    """Send a value through everything that a real one passes."""
    return wire.decode(wire.unpack(wire.pack(wire.encode(value))[4:]))


def same(left: Any, right: Any) -> bool:
    """Say whether two values are equal down to types, order, signs and nan."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return left.hex() == right.hex()
    if isinstance(left, complex):
        return same(left.real, right.real) and same(left.imag, right.imag)
    if isinstance(left, decimal.Decimal):
        return left.as_tuple() == right.as_tuple()
    if isinstance(left, dict):
        return len(left) == len(right) and same(list(left.items()), list(right.items()))
    if isinstance(left, collections.deque):
        return left.maxlen == right.maxlen and same(list(left), list(right))
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, set | frozenset):
        return sorted(map(described, left)) == sorted(map(described, right))
    if isinstance(left, datetime.datetime | datetime.time):
        return left == right and (left.fold, left.tzinfo) == (right.fold, right.tzinfo)
    return bool(left == right)


def described(value: Any) -> str:
    """Give a text in which members of sets come in an order of their own."""
    if isinstance(value, tuple | set | frozenset):
        inner = list(map(described, value))
        return f"{type(value).__name__} {inner if isinstance(value, tuple) else sorted(inner)}"
    return f"{type(value).__name__} {value!r}"


# ---------------------------------------------------------------- there and back

any_text = st.text(st.characters(categories=None), max_size=8) | st.lists(
    st.sampled_from(["\ud83d", "\ude00", "\ud800", "a", "\U0001f600"]), max_size=4
).map("".join)
numbers = (
    st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.complex_numbers()
    | st.decimals()
    | st.fractions()
)
times = (
    st.dates()
    | st.times()
    | st.datetimes()
    | st.datetimes(timezones=st.just(datetime.UTC))
    | st.timedeltas()
)
leaves = st.none() | st.booleans() | numbers | any_text | st.binary(max_size=8) | times
keys = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, max_size=4)
    pairs = st.lists(st.tuples(keys, inner), max_size=4)
    return (
        lists
        | lists.map(tuple)
        | st.builds(collections.deque, lists, st.none() | st.integers(0, 5))
        | pairs.map(dict)
        | pairs.map(collections.OrderedDict)
        | pairs.map(lambda items: collections.Counter(dict(items)))
        | pairs.map(lambda items: collections.defaultdict(None, items))
        | st.sets(keys, max_size=4)
        | st.frozensets(keys, max_size=4)
        | st.binary(max_size=4).map(bytearray)
    )


values = st.recursive(leaves, containers, max_leaves=12)


@settings(max_examples=250, deadline=None)
@given(values)
def test_a_plain_value_comes_out_with_its_types_signs_and_order(value: object) -> None:
    assert same(across(value), value)


@pytest.mark.parametrize(
    "value",
    [
        True,
        1,
        1.0,
        [True, 1, 1.0],
        -0.0,
        [0.0, -0.0],
        math.inf,
        [math.nan],
        dict.fromkeys([(float("nan"), True), (float("nan"), True)]),
        complex(-0.0, math.nan),
        2**63 - 1,
        2**63,
        -(2**63),
        -(2**63) - 1,
        2**5000,
        [2**5000, 1],
        "\ud83d\ude00",
        {"\ud83d\ude00": "\U0001f600"},
        ["\ud800", "plain"],
        b"",
        "",
        [],
        (),
        {},
        set(),
        frozenset(),
        collections.deque(),
        collections.deque(maxlen=0),
        collections.Counter("abba"),
        {1: "a", (2, (3,)): [b"x"]},
        {frozenset({1, (2,)})},
        {True: 1},
        datetime.datetime(2024, 10, 27, 2, 30, fold=1),
        datetime.time(23, 59, 59, 999999, tzinfo=datetime.UTC),
        datetime.timedelta.max,
        datetime.timedelta.min,
        decimal.Decimal("-0E+7"),
        decimal.Decimal("NaN123"),
        [[1, 2], [1.5, None], ["l", 3], ["r", 0]],
    ],
    ids=described,
)
def test_an_odd_value_comes_out_as_it_went_in(value: object) -> None:
    assert same(across(value), value)


def test_shared_containers_stay_shared() -> None:
    row: list[int] = [0]
    table = {"a": row, "b": [row, {1: row}], "c": bytearray(b"x")}
    table["d"] = table["c"]
    back = across(table)
    assert back["a"] is back["b"][0] is back["b"][1][1]
    assert back["c"] is back["d"]


def test_equal_containers_are_not_merged() -> None:
    back = across([[], [], {}, {}])
    assert back[0] is not back[1]
    assert back[2] is not back[3]


@pytest.mark.parametrize("around", [list, tuple, collections.deque], ids=lambda k: k.__name__)
def test_nesting_crosses_up_to_the_cap_and_not_below_it(around: Any) -> None:
    def nested(depth: int) -> Any:
        value = around()
        for _ in range(depth - 1):
            value = around([value])
        return value

    back = across(nested(wire.DEPTH))
    for _ in range(wire.DEPTH - 1):
        (back,) = back
    assert back == around()
    with pytest.raises(wire.Refused, match="nested deeper"):
        wire.encode(nested(wire.DEPTH + 1))


def test_dicts_nest_to_the_cap_too() -> None:
    value: Any = {}
    for _ in range(wire.DEPTH - 1):
        value = {"k": value}
    assert across(value) == value


# ---------------------------------------------------------------- what is refused


class Same:
    """Says that it is equal to everything, and that it is a list."""

    __class__ = list  # type: ignore[assignment]

    def __eq__(self, _other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(1)

    def __iter__(self) -> Any:
        raise AssertionError("looked into")


class Meta(type):
    """A metaclass all of whose own code says so when it runs."""

    def __getattribute__(cls, _name: str) -> Any:
        raise KeyboardInterrupt

    def __hash__(cls) -> int:
        raise KeyboardInterrupt

    def __eq__(cls, _other: object) -> bool:
        raise KeyboardInterrupt

    def __instancecheck__(cls, _instance: object) -> bool:
        raise KeyboardInterrupt


def hostile() -> Any:
    """Make the class where pytest, which looks at all that a test file has, does not see it."""
    return Meta("Hostile", (), {})


class Zone(datetime.tzinfo):
    def __eq__(self, _other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def utcoffset(self, _when: object) -> datetime.timedelta:
        raise AssertionError("asked")


class Colour(enum.IntEnum):
    RED = 1


def of(kind: type, *arguments: Any) -> Any:
    """Make an instance of a subclass that adds nothing."""
    return type("Sub", (kind,), {})(*arguments)


def broken_fraction() -> fractions.Fraction:
    value = fractions.Fraction(1, 2)
    value._numerator = "1"  # type: ignore[attr-defined]
    return value


REFUSED = {
    "an instance": Same(),
    "an instance of a hostile metaclass": hostile()(),
    "a hostile class": hostile(),
    "an int subclass": of(int, 1),
    "an enum": Colour.RED,
    "a str subclass": of(str, "a"),
    "a list subclass": of(list),
    "a dict subclass": of(dict),
    "a tuple subclass": of(tuple),
    "a namedtuple": collections.namedtuple("P", "x")(1),
    "a Decimal subclass": of(decimal.Decimal, 1),
    "a date subclass": of(datetime.date, 2024, 1, 1),
    "a Counter subclass": of(collections.Counter),
    "a function": across,
    "a builtin": len,
    "a range": range(3),
    "a generator": (x for x in ""),
    "an iterator": iter([]),
    "a view": {}.keys(),
    "a type": int,
    "a module": math,
    "NotImplemented": NotImplemented,
    "Ellipsis": ...,
    "a memoryview": memoryview(b""),
    "an exception": ValueError(),
    "a zone": datetime.datetime(2024, 1, 1, tzinfo=Zone()),
    "a zone of hours": datetime.time(tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
    "a zone with a name": datetime.time(tzinfo=datetime.timezone(datetime.timedelta(0), "X")),
    "a broken fraction": broken_fraction(),
    "a huge fraction": fractions.Fraction(1, 3**20000),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize(
    "around", [lambda v: v, lambda v: [v], lambda v: [1, v], lambda v: (1, {"k": v})]
)
def test_anything_else_is_refused_without_running_its_code(name: str, around: Any) -> None:
    value = REFUSED[name]
    with pytest.raises(wire.Refused, match="unsupported type"):
        wire.encode(around(value))


def test_the_refusal_names_the_type() -> None:
    with pytest.raises(wire.Refused, match="range"):
        wire.encode([range(3)])


def test_cycles_are_refused() -> None:
    loop: list[Any] = []
    loop.append((1, {"again": loop}))
    with pytest.raises(wire.Refused, match="contains itself"):
        wire.encode(loop)


def test_a_few_tuples_that_make_very_many_are_refused_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "ITEMS", 2**16)
    value: Any = ()
    for _ in range(100):
        value = (value, value)
    started = time.monotonic()
    with pytest.raises(wire.Refused):
        wire.encode(value)
    assert time.monotonic() - started < 10


def test_a_value_above_the_frame_is_refused() -> None:
    with pytest.raises(wire.Refused, match="bytes"):
        wire.pack(wire.encode(b"x" * (wire.FRAME_BYTES // 2 + 1)))


# ---------------------------------------------------------------- what no encoder wrote

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=15,
)
TAGS = ["l", "L", "t", "s", "z", "d", "D", "C", "F", "q", "b", "a", "i", "c", "u", "x", "r"]
NAMES = ["Decimal", "Fraction", "date", "time", "datetime", "timedelta"]
nearly_encoded = st.recursive(
    st.none() | st.integers(-3, 3) | st.floats() | st.sampled_from([*TAGS, *NAMES, "0", "ff"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(st.sampled_from(TAGS), inner, inner).map(list)
        | st.tuples(st.just("x"), st.sampled_from(NAMES), inner).map(list)
        | st.tuples(st.just("x"), st.sampled_from(NAMES), inner, inner, inner).map(list)
    ),
    max_leaves=20,
)


@settings(max_examples=400, deadline=None)
@given(json_values | nearly_encoded)
def test_decoding_arbitrary_json_gives_a_plain_value_or_says_malformed(data: object) -> None:
    try:
        value = wire.decode(data)
    except wire.Malformed:
        return
    assert same(across(value), value)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60) | json_values.map(lambda v: json.dumps(v).encode()))
def test_unpacking_arbitrary_bytes_gives_json_or_says_malformed(body: bytes) -> None:
    try:
        json.dumps(wire.unpack(body))
    except wire.Malformed:
        return


MALFORMED: dict[str, Any] = {
    "a fraction over zero": ["x", "Fraction", 1, 0],
    "a fraction of huge parts": ["x", "Fraction", ["i", "f" * 10**6], ["i", "e" * 10**6]],
    "a key that cannot be one": ["d", [["l"], 1]],
    "a member that cannot be one": ["s", ["L", []]],
    "a time delta beyond all": ["x", "timedelta", 10**9, 0, 0],
    "a reference to nothing": ["r", 0],
    "a reference below nothing": ["l", ["L", []], ["r", -1]],
    "a list that contains itself": ["l", ["r", 0]],
    "a dict that contains itself": ["d", [1, ["r", 0]]],
    "a deque of more than it holds": ["q", 1, 1, 2],
    "a deque of a negative size": ["q", -1],
    "a large bare int": 2**64,
    "a bare surrogate": "\ud800",
    "a bulk list of lists": ["L", [[1]]],
    "a bool for a number": ["r", True],
    "a text for a pair": ["d", "ab"],
    "no tag": [],
    "a number for a tag": [0],
    "an unknown tag": ["exec", "1"],
    "an object": {"x": 1},
    "a code point beyond all": ["u", [0x110000]],
    "a zone": ["x", "datetime", "2024-01-01T00:00:00+05:00", 0],
    "a decimal of words": ["x", "Decimal", "one"],
    "a name that nobody reads": ["x", "Popen", "true"],
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_what_no_encoder_writes_is_malformed(data: object) -> None:
    started = time.monotonic()
    with pytest.raises(wire.Malformed):
        wire.decode(data)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    "body",
    [
        b"1" * 10**6,
        b"[" * 10**6,
        b'{"a":' * 10**6,
        b"[" + b"[]," * (8 * 2**20) + b"1]",
        b"[" + b"1," * (12 * 2**20) + b"1]",
        b"\xff\xfe[\x001\x00]\x00",
        b"",
    ],
    ids=["digits", "brackets", "objects", "many lists", "many numbers", "utf-16", "nothing"],
)
def test_a_frame_that_would_eat_time_or_memory_is_malformed_soon(body: bytes) -> None:
    started = time.monotonic()
    with pytest.raises(wire.Malformed):
        wire.unpack(body)
    assert time.monotonic() - started < 2


def test_a_nested_value_of_any_depth_is_malformed_not_a_crash() -> None:
    data: Any = ["l"]
    for _ in range(5000):
        data = ["t", data]
    with pytest.raises(wire.Malformed):
        wire.decode(data)


def test_a_number_with_a_monstrous_exponent_can_be_compared_at_once() -> None:
    started = time.monotonic()
    value = across(decimal.Decimal("1e999999999"))
    assert value != 1 and value != 1.5 and value != fractions.Fraction(1, 3)
    assert {value: 1}[value] == 1
    assert time.monotonic() - started < 1


# ---------------------------------------------------------------- frames


def test_frames_cross_a_socket_whole_and_heartbeats_are_none() -> None:
    ours, theirs = socket.socketpair()
    message = {"say": "x" * 300_000, "lone": "\ud800"}
    writer = threading.Thread(target=lambda: (ours.sendall(bytes(4)), wire.send(ours, message)))
    writer.start()
    assert wire.receive(theirs) is None
    assert wire.receive(theirs) == message
    writer.join()
    ours.sendall(b"\x00\x00\x00\x09[1,")
    ours.close()
    with pytest.raises(wire.Closed):
        wire.receive(theirs)
    theirs.close()


def test_a_frame_that_says_it_is_too_long_is_malformed_before_it_is_read() -> None:
    ours, theirs = socket.socketpair()
    ours.sendall(b"\xff\xff\xff\xff")
    with pytest.raises(wire.Malformed, match="bytes"):
        wire.receive(theirs)
    ours.close()
    theirs.close()


def test_a_hundred_thousand_numbers_cross_in_a_blink() -> None:
    numbers = list(range(100_000))

    def way_there() -> bytes:
        return wire.pack(wire.encode(numbers))

    there = min(timed(way_there) for _ in range(3))
    body = way_there()[4:]
    back = min(timed(lambda: wire.decode(wire.unpack(body))) for _ in range(3))
    print(f"100 000 ints: {there * 1000:.1f} ms there, {back * 1000:.1f} ms back")
    assert there < 0.15 and back < 0.15


def timed(work: Any) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started
