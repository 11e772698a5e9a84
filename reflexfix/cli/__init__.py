"""The commands. Only this room and `display` print; heavy imports wait until they are used."""

from __future__ import annotations

from reflexfix.cli import after, batch, hook, setup, solve
from reflexfix.cli.boundary import main
from reflexfix.cli.group import cli

__all__ = ["after", "batch", "cli", "hook", "main", "setup", "solve"]
