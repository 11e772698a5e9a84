"""The language model: one question in, one answer out, counted against a budget."""

from __future__ import annotations

import contextlib
import email.utils
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol
from urllib.parse import urlsplit

from reflexfix.errors import BudgetSpent, ModelTrouble, UsageProblem

if TYPE_CHECKING:
    import openai

Question = Literal["write_tests", "implement", "reflect", "improve"]
Role = Literal["actor", "tester", "reflector"]

RETRIES = 5
"""How often the client tries again on 429, 5xx, time-outs and lost connections, with backoff."""
REQUEST_SECONDS = 600.0
PATIENCE_SECONDS = 120.0
"""The longest wait that an endpoint may ask for; openai's client waits for no longer either."""


@dataclass(frozen=True)
class Request:
    """One question to a model."""

    question: Question
    system: str
    prompt: str
    temperature: float = 0.0
    seed: int = 0
    answer_tokens: int = 1024


@dataclass(frozen=True)
class Answer:
    """What came back. Tokens are as the endpoint counts them, 0 where it does not."""

    text: str
    finish: str = "stop"
    prompt_tokens: int = 0
    answer_tokens: int = 0
    seconds: float = 0.0
    model: str = ""

    @property
    def cut_off(self) -> bool:
        return self.finish == "length"


class Model(Protocol):
    """Whatever answers questions."""

    @property
    def name(self) -> str: ...

    def complete(self, request: Request) -> Answer:
        """Answer. Raises ModelTrouble; BudgetSpent when the run may not ask any more."""
        ...


@dataclass
class Budget:
    """What a whole run may use; shared by all its models."""

    tokens: int | None = None
    seconds: float | None = None
    started: float = field(default_factory=time.monotonic)
    spent_prompt: int = 0
    spent_answer: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def left(self, wanted: int) -> int:
        """Give how many answer tokens may be asked for. Raises BudgetSpent."""
        if self.seconds is not None and self.seconds_left() <= 0:
            raise BudgetSpent(f"The budget of {self.seconds:g} seconds is spent.")
        if self.tokens is None:
            return wanted
        left = self.tokens - self.spent_prompt - self.spent_answer
        if left <= 0:
            raise BudgetSpent(f"The budget of {self.tokens} tokens is spent.")
        return min(wanted, left)

    def seconds_left(self) -> float:
        if self.seconds is None:
            return REQUEST_SECONDS
        return self.seconds - (time.monotonic() - self.started)

    def count(self, answer: Answer) -> None:
        with self.lock:
            self.spent_prompt += answer.prompt_tokens
            self.spent_answer += answer.answer_tokens


class ScriptedModel:
    """Gives the answers of a list, in turn: for tests of whatever uses a model.

    Answers may be kept apart by question: {"implement": [...], "write_tests": [...]}. What was
    asked is kept in `asked`.
    """

    def __init__(self, answers: Iterable[str] | dict[str, list[str]], name: str = "script") -> None:
        self.answers = answers if isinstance(answers, dict) else {"": list(answers)}
        self.name = name
        self.asked: list[Request] = []
        self.lock = threading.Lock()

    def complete(self, request: Request) -> Answer:
        with self.lock:
            self.asked.append(request)
            left = self.answers.get(request.question, self.answers.get("", []))
            if not left:
                raise ModelTrouble(f"The script has no answer left to {request.question}.")
            text = left.pop(0)
        words = len(request.system.split()) + len(request.prompt.split())
        return Answer(text, "stop", words, len(text.split()), 0.0, self.name)


class Gate:
    """Holds back every request of a client while an answer to one of them asked for patience.

    What is on its way already is not called back.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.opens = 0.0
        """The monotonic time before which nothing is sent."""

    def wait(self) -> None:
        """Wait until it opens. Raises ModelTrouble, BudgetSpent when that would be too long."""
        while (seconds := self.opens - time.monotonic()) > 0:
            if trouble := self.trouble():
                raise trouble
            time.sleep(seconds)

    def trouble(self) -> ModelTrouble | None:
        """Give the reason not to wait, if there is one."""
        seconds, budget = self.opens - time.monotonic(), self.budget.seconds
        said = f"The endpoint asks to wait for {seconds:.0f} seconds"
        if budget is not None and seconds > self.budget.seconds_left():
            return BudgetSpent(f"{said}, and the budget of {budget:g} seconds ends before.")
        if seconds > PATIENCE_SECONDS:
            return ModelTrouble(f"{said}.", hint="try again then, or ask less often")
        return None

    def heed(self, response: Any) -> None:
        """Shut when an answer says 429 or 503 and Retry-After (hook of the client)."""
        if response.status_code in (429, 503):
            self.opens = max(self.opens, time.monotonic() + asked_seconds(response.headers))
            if self.trouble():
                response.headers["X-Should-Retry"] = "false"  # which openai's client obeys

    def hold(self, request: Any) -> None:
        """Wait before a request is sent, the client's own retries too (hook of the client)."""
        import openai

        try:
            self.wait()
        except ModelTrouble as trouble:
            raise openai.APIConnectionError(message=trouble.message, request=request) from trouble


def asked_seconds(headers: Mapping[str, str]) -> float:
    """Read how long an endpoint asks to wait: milliseconds, seconds or a date; else 0."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with contextlib.suppress(KeyError, ValueError):
            return float(headers[name]) * scale
    with contextlib.suppress(KeyError, ValueError):
        return email.utils.parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time()
    return 0.0


class OpenAIModel:
    """Asks an endpoint that speaks the OpenAI chat completions protocol."""

    def __init__(self, base_url: str, key: str, name: str, budget: Budget | None = None) -> None:
        import openai

        self.base_url = base_url
        self.name = name
        self.budget = budget or Budget()
        self.gate = Gate(self.budget)
        self.received = 0
        """Pieces of answers that have arrived so far: shows that a long answer is moving."""
        self.client = openai.OpenAI(
            api_key=key or "none",
            base_url=base_url or None,
            max_retries=RETRIES,
            timeout=REQUEST_SECONDS,
            http_client=client_for(base_url, self.gate),
        )
        self.refused: set[str] = set()
        """Parameters that this endpoint does not take."""

    def complete(self, request: Request) -> Answer:
        import openai

        started = time.monotonic()
        tokens = self.budget.left(request.answer_tokens)
        try:
            answer = self._answer(request, tokens)
        except openai.APITimeoutError:
            self.budget.left(1)
            raise ModelTrouble(
                f"{self.where} gave no answer in time.", hint="raise --max-seconds, or try again"
            ) from None
        except openai.APIError as error:
            if trouble := self.gate.trouble():
                raise trouble from None
            self._explain(error)
        answer = Answer(
            without_thinking(answer.text),
            answer.finish,
            answer.prompt_tokens,
            answer.answer_tokens,
            time.monotonic() - started,
            self.name,
        )
        self.budget.count(answer)
        return answer

    @property
    def where(self) -> str:
        return f"{self.client.base_url}chat/completions"

    def _answer(self, request: Request, tokens: int) -> Answer:
        """Ask; a parameter that the endpoint refuses is left out (or renamed) from then on."""
        import openai

        for _ in range(6):
            try:
                return self._stream(self._parameters(request, tokens), request)
            except openai.BadRequestError as error:
                name = refused_parameter(str(error), self._parameters(request, tokens))
                if name is None or name in self.refused:
                    raise
                self.refused.add(name)
        raise ModelTrouble(f"{self.where} refuses every form of the request.")

    def _parameters(self, request: Request, tokens: int) -> dict[str, Any]:
        wanted: dict[str, Any] = {
            "max_tokens": tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            "stream_options": {"include_usage": True},
        }
        if "max_tokens" in self.refused:
            wanted["max_completion_tokens"] = tokens
        return {name: value for name, value in wanted.items() if name not in self.refused}

    def _stream(self, parameters: dict[str, Any], request: Request) -> Answer:
        system, prompt = request.system, request.prompt
        self.gate.wait()
        stream = self.client.chat.completions.create(
            model=self.name,
            messages=[{"role": "system", "content": system}, {"role": "user", "content": prompt}],
            stream=True,
            extra_headers={"X-Reflexfix-Question": request.question},
            timeout=max(1.0, min(REQUEST_SECONDS, self.budget.seconds_left())),
            **parameters,
        )
        text, finish, used = [], "stop", None
        with stream:
            for chunk in stream:
                used = chunk.usage or used
                for choice in chunk.choices[:1]:
                    text.append(choice.delta.content or "")
                    finish = choice.finish_reason or finish
                    self.received += 1
                if self.budget.seconds is not None and self.budget.seconds_left() <= 0:
                    finish = "length"
                    break
        counted = (used.prompt_tokens, used.completion_tokens) if used else (0, 0)
        return Answer("".join(text), finish, *counted)

    def _explain(self, error: openai.APIError) -> NoReturn:
        """Turn what the client raised into one line that says what to do."""
        import openai

        said = first_line(error)
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            raise ModelTrouble(
                f"{self.where} refuses the key: {said}", hint="check OPENAI_API_KEY"
            ) from None
        if isinstance(error, openai.NotFoundError):
            missing_v1 = not self.base_url.rstrip("/").endswith("/v1")
            hint = f"try --base-url {self.base_url.rstrip('/')}/v1" if missing_v1 else ""
            raise ModelTrouble(
                f"{self.where} knows no model {self.name}: {said}",
                hint=hint or "check --model; `curl BASE_URL/models` lists them",
            ) from None
        if isinstance(error, openai.APIConnectionError):
            cause = first_line(error.__cause__ or error)
            raise ModelTrouble(
                f"{self.where} cannot be reached: {cause}",
                hint="check --base-url (OPENAI_BASE_URL) and that the server runs",
            ) from None
        if isinstance(error, openai.BadRequestError) and "context" in said.lower():
            raise ModelTrouble(
                f"The prompt is too long for {self.name}: {said}",
                hint="lower --context-tokens, or use a model with a longer context",
            ) from None
        raise ModelTrouble(f"{self.where} answers with an error: {said}") from None


def client_for(base_url: str, gate: Gate | None = None) -> openai.DefaultHttpxClient:
    """Give a client that minds the gate, and no proxy where the endpoint is on this machine."""
    import openai

    host = urlsplit(base_url).hostname or ""
    on_loopback = host == "localhost" or host.startswith("127.") or host == "::1"
    hooks: dict[str, list[Callable[..., Any]]] = {}
    if gate:
        hooks = {"request": [gate.hold], "response": [gate.heed]}
    return openai.DefaultHttpxClient(trust_env=not on_loopback, event_hooks=hooks)


def first_line(error: BaseException) -> str:
    text = str(getattr(error, "message", "") or error).strip()
    return text.splitlines()[0][:300] if text else type(error).__name__


_THINKING = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL)


def without_thinking(text: str) -> str:
    """Drop what a reasoning model thought aloud before it answered."""
    if "</think>" in text and "<think>" not in text:
        text = text.rpartition("</think>")[2]
    return _THINKING.sub("", text)


def refused_parameter(said: str, parameters: dict[str, Any]) -> str | None:
    """Find the parameter that an endpoint names when it refuses a request."""
    named = [name for name in parameters if re.search(rf"\b{name}\b", said)]
    return named[0] if named else None


def only_model(base_url: str, key: str) -> str:
    """Give the one model that an endpoint lists. Raises UsageProblem with the list."""
    import openai

    http = client_for(base_url)
    client = openai.OpenAI(
        api_key=key or "none", base_url=base_url, max_retries=1, timeout=15, http_client=http
    )
    try:
        names = sorted(model.id for model in client.models.list())
    except openai.NotFoundError:
        v1 = "" if base_url.rstrip("/").endswith("/v1") else f"; try {base_url.rstrip('/')}/v1"
        raise ModelTrouble(
            f"{client.base_url}models: not found.", hint=f"check --base-url{v1}"
        ) from None
    except openai.APIError as error:
        raise ModelTrouble(
            f"{client.base_url}models: {first_line(error.__cause__ or error)}",
            hint="check --base-url (OPENAI_BASE_URL) and that the server runs; or give --model",
        ) from None
    finally:
        client.close()
    if len(names) == 1:
        return names[0]
    raise UsageProblem(
        f"{base_url} has {len(names)} models: {', '.join(names[:12])}.", hint="choose with --model"
    )


Log = Callable[[Request, Answer], None]


class LoggedModel:
    """Hands every request and answer to a log on their way."""

    def __init__(self, model: Model, log: Log) -> None:
        self.model = model
        self.log = log

    @property
    def name(self) -> str:
        return self.model.name

    def complete(self, request: Request) -> Answer:
        answer = self.model.complete(request)
        self.log(request, answer)
        return answer
