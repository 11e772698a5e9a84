"""What can go wrong that is nobody's failed test: each kind has its exit code and a remedy."""

from __future__ import annotations

import click


class ReflexfixError(click.ClickException):
    """Trouble that ends a command with one clear line; `hint` says what to do about it."""

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class UsageProblem(ReflexfixError):
    """The command, the file or the disk is not as it has to be (exit code 2)."""


class ModelTrouble(ReflexfixError):
    """The model does not answer, or refuses to (exit code 3)."""

    exit_code = 3


class BudgetSpent(ModelTrouble):
    """The tokens or seconds that the run may use are used up."""


class SandboxTrouble(ReflexfixError):
    """The engine, the image or a container does not do its part (exit code 4)."""

    exit_code = 4
