"""Keep what looks like a key out of questions to a model, and put it back into the answer."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from reflexfix.model import Answer, Model, Request

_KEYS = re.compile(
    r"""
    \b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)?[-_]?[A-Za-z0-9_-]{16,}   # API keys
  | \b(?:ghp|gho|ghu|ghs|ghr|github_pat|glpat|npm|pypi|hf|xox[abprs])[-_][A-Za-z0-9_-]{16,}
  | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b | \bAIza[A-Za-z0-9_-]{30,}
  | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*                # JSON web tokens
  | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[\s\S]*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
  | (?<=://)[^\s/:@'"]+:[^\s/@'"]+(?=@)                                      # user and password
  | \b(?=[A-Za-z0-9+/_-]*[0-9])(?=[A-Za-z0-9+/_-]*[A-Za-z])[A-Za-z0-9+/]{40,}={0,2}
    """,
    re.VERBOSE,
)
_NAMED = re.compile(
    r"""(?ix) [\w-]*(?:passw(?:or)?d|passphrase|secret|token|api_?-?key|access_?-?key|private_?-?key
    |credential)[\w-]* ["']? \s* (?::\s*\w+\s*)? [:=]{1,2} \s* [rbuf]*
    (?P<quote>["']) (?P<value>[^"'\n]{6,}) (?P=quote)"""
)


@dataclass
class Mask:
    """Remembers which word stands for which value."""

    values: dict[str, str] = field(default_factory=dict)

    def hide(self, text: str) -> str:
        """Put a word in the place of each value that looks like a key."""
        text = _NAMED.sub(self._hide_named, text)
        return _KEYS.sub(lambda found: self._word(found[0]), text)

    def show(self, text: str) -> str:
        """Put the values back."""
        for value, word in self.values.items():
            text = text.replace(word, value)
        return text

    def _hide_named(self, found: re.Match[str]) -> str:
        start = found.start("value") - found.start()
        end = found.end("value") - found.start()
        return found[0][:start] + self._word(found["value"]) + found[0][end:]

    def _word(self, value: str) -> str:
        if value in self.values.values():
            return value
        return self.values.setdefault(value, f"MASKED_VALUE_{len(self.values) + 1}")


@dataclass(frozen=True)
class MaskedModel:
    """A model that never sees what looks like a key."""

    model: Model
    mask: Mask

    @property
    def name(self) -> str:
        return self.model.name

    def complete(self, request: Request) -> Answer:
        hidden = replace(
            request, system=self.mask.hide(request.system), prompt=self.mask.hide(request.prompt)
        )
        answer = self.model.complete(hidden)
        return replace(answer, text=self.mask.show(answer.text))
