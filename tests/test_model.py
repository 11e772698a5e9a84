"""The client against a real endpoint on loopback."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from email.utils import formatdate
from typing import Any

import pytest
from endpoint import Answers, Endpoint, Reply, serving

from reflexfix.errors import BudgetSpent, ModelTrouble, UsageProblem
from reflexfix.model import (
    Budget,
    OpenAIModel,
    Request,
    ScriptedModel,
    asked_seconds,
    only_model,
    without_thinking,
)

ASK = Request("implement", "system", "prompt", temperature=0.3, seed=7, answer_tokens=50)


@contextmanager
def asking(answers: Answers, key: str = "k", **more: Any) -> Iterator[tuple[OpenAIModel, Endpoint]]:
    with serving(answers) as endpoint:
        model = OpenAIModel(endpoint.url, key, "scripted", **more)
        try:
            yield model, endpoint
        finally:
            model.client.close()


def in_turn(*replies: Reply) -> Answers:
    left = list(replies)
    return lambda _question, _body: left.pop(0) if len(left) > 1 else left[0]


def test_an_answer_comes_with_its_tokens_and_its_role_in_a_header() -> None:
    with asking(in_turn(Reply("one two three"))) as (model, endpoint):
        answer = model.complete(ASK)
        question, body, _ = endpoint.asked[0]
    assert (answer.text, answer.answer_tokens, answer.prompt_tokens) == ("one two three", 3, 2)
    assert question == "implement"
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.3, 7, 50)
    assert model.received > 0


def test_a_length_limit_is_noticed() -> None:
    with asking(in_turn(Reply("x", finish="length"))) as (model, _):
        assert model.complete(ASK).cut_off


@pytest.mark.parametrize("status", [429, 500, 503])
def test_passing_trouble_is_tried_again(status: int) -> None:
    trouble = Reply(status=status, error="busy", headers={"Retry-After-Ms": "10"})
    with asking(in_turn(trouble, trouble, Reply("fine"))) as (model, endpoint):
        assert model.complete(ASK).text == "fine"
        assert len(endpoint.asked) == 3


@pytest.mark.parametrize("status", [429, 503])
def test_one_answer_that_asks_for_patience_holds_back_all_threads(status: int) -> None:
    arrived: list[float] = []

    def busy_once(_question: str, _body: dict[str, Any]) -> Reply:
        arrived.append(time.monotonic())
        if len(arrived) == 1:
            return Reply(status=status, error="busy", headers={"Retry-After": "1"})
        return Reply("fine")

    with asking(busy_once) as (model, _), ThreadPoolExecutor(4) as pool:
        told = pool.submit(model.complete, ASK)
        while not model.gate.opens:
            time.sleep(0.01)
        others = [pool.submit(model.complete, ASK) for _ in range(3)]
        assert [one.result().text for one in (told, *others)] == ["fine"] * 4
    assert len(arrived) == 5
    assert min(arrived[1:]) - arrived[0] >= 1.0


def test_a_retry_for_another_reason_is_held_back_too() -> None:
    arrived: list[float] = []
    first, second = threading.Event(), threading.Event()

    def broken_then_busy(_question: str, _body: dict[str, Any]) -> Reply:
        arrived.append(time.monotonic())
        if len(arrived) == 1:
            first.set()
            second.wait(5)
            return Reply(status=500, error="broken", headers={"Retry-After-Ms": "1"})
        if len(arrived) == 2:
            return Reply(status=429, error="busy", headers={"Retry-After": "1"})
        return Reply("fine")

    with asking(broken_then_busy) as (model, _), ThreadPoolExecutor(2) as pool:
        broken = pool.submit(model.complete, ASK)
        first.wait(5)
        busy = pool.submit(model.complete, ASK)
        while not model.gate.opens:
            time.sleep(0.01)
        second.set()
        assert broken.result().text == busy.result().text == "fine"
    assert min(arrived[2:]) - arrived[1] >= 1.0


@pytest.mark.parametrize(
    ("seconds", "kind", "said"),
    [(30.0, BudgetSpent, "the budget of 30 seconds ends before"), (None, ModelTrouble, "to wait")],
)
def test_a_wait_that_is_too_long_is_not_begun(
    seconds: float | None, kind: type[ModelTrouble], said: str
) -> None:
    busy = in_turn(Reply(status=429, error="busy", headers={"Retry-After": "3000"}))
    started = time.monotonic()
    with asking(busy, budget=Budget(seconds=seconds)) as (model, endpoint):
        for _ in range(2):
            with pytest.raises(kind, match=said):
                model.complete(ASK)
        assert len(endpoint.asked) == 1
    assert time.monotonic() - started < 2


def test_a_retry_that_would_have_to_wait_too_long_is_given_up() -> None:
    def broken(_question: str, _body: dict[str, Any]) -> Reply:
        model.gate.opens = time.monotonic() + 3000
        return Reply(status=500, error="broken", headers={"Retry-After-Ms": "1"})

    with asking(broken, budget=Budget(seconds=30)) as (model, endpoint):
        with pytest.raises(BudgetSpent):
            model.complete(ASK)
        assert len(endpoint.asked) == 1


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry-after": "7"}, 7, 7),
        ({"retry-after": "0.5"}, 0.5, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25, 0.25),
        ({"retry-after": "soon"}, 0, 0),
        ({"retry-after": "Mon, 99 Foo"}, 0, 0),
        ({}, 0, 0),
    ],
)
def test_every_form_of_retry_after_is_read(
    headers: dict[str, str], least: float, most: float
) -> None:
    assert least <= asked_seconds(headers) <= most


def test_a_retry_after_may_be_a_date() -> None:
    in_an_hour = formatdate(time.time() + 3600, usegmt=True)
    assert 3500 <= asked_seconds({"retry-after": in_an_hour}) <= 3600


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (401, "bad key", "refuses the key"),
        (403, "not yours", "refuses the key"),
        (404, "no such model", "knows no model scripted"),
        (400, "maximum context length is 10 tokens", "too long"),
    ],
)
def test_what_will_not_pass_is_not_tried_again_and_is_one_line(
    status: int, error: str, said: str
) -> None:
    with asking(in_turn(Reply(status=status, error=error))) as (model, endpoint):
        with pytest.raises(ModelTrouble, match=said) as caught:
            model.complete(ASK)
        assert len(endpoint.asked) == 1
        assert "127.0.0.1" in str(caught.value) or status == 400
    assert caught.value.hint
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("name", ["max_tokens", "temperature", "seed", "stream_options"])
def test_a_parameter_that_is_refused_is_left_out_and_that_is_remembered(name: str) -> None:
    def picky(_question: str, body: dict[str, Any]) -> Reply:
        if name in body:
            return Reply(status=400, error=f"Unsupported parameter: '{name}'")
        return Reply("fine")

    with asking(picky) as (model, endpoint):
        assert model.complete(ASK).text == "fine"
        assert model.complete(ASK).text == "fine"
        assert len(endpoint.asked) == 3
        last = endpoint.asked[-1][1]
    assert name not in last
    if name == "max_tokens":
        assert last["max_completion_tokens"] == 50


def test_an_endpoint_on_this_machine_is_asked_past_any_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with asking(in_turn(Reply("fine"))) as (model, endpoint):
        assert model.complete(ASK).text == "fine"
        assert only_model(endpoint.url, "k") == "scripted"


def test_a_missing_v1_is_said() -> None:
    with serving(in_turn(Reply("x"))) as endpoint:
        model = OpenAIModel(endpoint.url.removesuffix("/v1"), "k", "m")
        with pytest.raises(ModelTrouble) as caught:
            model.complete(ASK)
        model.client.close()
        with pytest.raises(ModelTrouble) as listed:
            only_model(endpoint.url.removesuffix("/v1"), "k")
    assert "/v1" in caught.value.hint and "/v1" in listed.value.hint


def test_nobody_there_is_one_line_that_names_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    model = OpenAIModel(url, "k", "m")
    model.client = model.client.with_options(max_retries=0)
    with pytest.raises(ModelTrouble, match="cannot be reached") as caught:
        model.complete(ASK)
    model.client.close()
    assert url in caught.value.message


def test_thinking_is_dropped_before_reading() -> None:
    reply = Reply("<think>def wrong(): ...</think>right", reasoning="hm")
    with asking(in_turn(reply)) as (model, _):
        assert model.complete(ASK).text == "right"


@pytest.mark.parametrize(
    ("text", "left"),
    [("a<think>b", "a"), ("b</think>c", "c"), ("a<think>b</think>c<think>d</think>e", "ace")],
)
def test_thinking_without_a_beginning_or_an_end_is_dropped(text: str, left: str) -> None:
    assert without_thinking(text) == left


def test_the_only_model_of_an_endpoint_is_taken_and_several_are_listed() -> None:
    with serving(in_turn(Reply("x")), models=["one"]) as endpoint:
        assert only_model(endpoint.url, "k") == "one"
    listed = pytest.raises(UsageProblem, match="2 models: a, b")
    with serving(in_turn(Reply("x")), models=["b", "a"]) as endpoint, listed:
        only_model(endpoint.url, "k")


def test_a_budget_of_tokens_caps_an_answer_and_then_refuses() -> None:
    budget = Budget(tokens=10)
    with asking(in_turn(Reply("one two three four five six seven eight")), budget=budget) as (m, e):
        m.complete(ASK)
        assert e.asked[0][1]["max_tokens"] == 10
        with pytest.raises(BudgetSpent, match="10 tokens"):
            m.complete(ASK)


def test_a_budget_of_seconds_ends_a_slow_answer() -> None:
    def slow(_question: str, _body: dict[str, Any]) -> Reply:
        time.sleep(3)
        return Reply("late")

    started = time.monotonic()
    with asking(slow, budget=Budget(seconds=0.5)) as (model, _):
        model.client = model.client.with_options(max_retries=0)
        with pytest.raises(ModelTrouble):
            model.complete(ASK)
    assert time.monotonic() - started < 5


def test_a_script_answers_by_question_and_keeps_what_was_asked() -> None:
    model = ScriptedModel({"implement": ["a", "b"], "reflect": ["c"]})
    assert model.complete(ASK).text == "a"
    assert model.asked == [ASK]
    assert ScriptedModel(["x"]).complete(ASK).text == "x"
    with pytest.raises(ModelTrouble, match="no answer left"):
        ScriptedModel([]).complete(ASK)
