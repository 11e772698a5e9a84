"""Record and replay: each answer of a model is kept by what was asked, and need be asked once."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from reflexfix.errors import ModelTrouble, UsageProblem
from reflexfix.model import Answer, Model, Request


class Kept(Protocol):
    """Whatever answers are kept in."""

    def find(self, model: str, request: Request) -> Answer | None: ...
    def keep(self, model: str, request: Request, answer: Answer) -> None: ...


class Recording:
    """A folder of answers, a file each, named by the hash of model, parameters and messages.

    Several threads may write at once. A file is whole or not there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, model: str, request: Request) -> Answer | None:
        """Give the answer that was kept. Raises UsageProblem for a file that is none of ours."""
        path = self._path(key_of(model, request))
        try:
            kept = json.loads(path.read_text("utf-8"))
            return Answer(**kept["answer"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, LookupError) as error:
            raise UsageProblem(f"{path} is no recorded answer: {error}") from None

    def keep(self, model: str, request: Request, answer: Answer) -> None:
        """Keep an answer. Raises UsageProblem when the disk is full."""
        path = self._path(key_of(model, request))
        data = {"model": model, "request": asdict(request), "answer": asdict(answer)}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", dir=path.parent, delete=False, encoding="utf-8"
            ) as file:
                json.dump(data, file, ensure_ascii=True)
            os.replace(file.name, path)
        except OSError as error:
            raise UsageProblem(f"{path} cannot be written: {error.strerror}.") from None

    def models(self) -> list[str]:
        """Name the models whose answers are kept here, in order."""
        return sorted({str(json.loads(path.read_text())["model"]) for path in self.files()})

    def files(self) -> Iterator[Path]:
        return self.folder.glob("??/*.json")

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"


def key_of(model: str, request: Request) -> str:
    """Hash what an answer depends on: the model, its parameters and the messages."""
    asked = {"model": model, **asdict(request)}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode("ascii")).hexdigest()


class RecordedModel:
    """Looks an answer up before it asks for it, and keeps what it asked for.

    Without a `model` it only looks up. An answer that was cut shorter than asked for, by a
    budget that ran out, is not kept.
    """

    def __init__(self, recording: Kept, name: str, model: Model | None = None) -> None:
        self.recording = recording
        self.name = name
        self.model = model

    def complete(self, request: Request) -> Answer:
        """Answer. Raises ModelTrouble for a request that was never recorded, without a model."""
        known = self.recording.find(self.name, request)
        if known is not None:
            return known
        if self.model is None:
            raise UnknownRequest(self.name, request)
        answer = self.model.complete(request)
        if not is_curtailed(answer, request):
            self.recording.keep(self.name, request, answer)
        return answer


class UnknownRequest(ModelTrouble):
    """A replay came to a question that was never recorded."""

    def __init__(self, model: str, request: Request) -> None:
        tail = " ".join(request.prompt.split())[:80]
        super().__init__(
            f"No answer of {model} is recorded for this request to {request.question} "
            f"({key_of(model, request)[:12]}, temperature {request.temperature:g}, "
            f"seed {request.seed}): {tail}...",
            hint="--replay-or-ask asks for what is missing",
        )


def is_curtailed(answer: Answer, request: Request) -> bool:
    """Whether an answer ended for want of budget rather than of its own length."""
    return answer.cut_off and answer.answer_tokens < request.answer_tokens


def opened(folder: Path) -> Recording:
    """Open a recording that has to be there. Raises UsageProblem."""
    recording = Recording(folder)
    if next(recording.files(), None) is None:
        raise UsageProblem(
            f"{folder} holds no recorded answers.", hint="a batch keeps its answers in OUT/answers"
        )
    return recording
