"""The group that all commands belong to."""

from __future__ import annotations

import click

from reflexfix import __version__

ORDER = ("solve", "batch", "compare", "repair", "hook", "apply", "show", "undo", "doctor", "clean",
         "sandbox", "model")  # fmt: skip


class Commands(click.Group):
    """Lists commands in the order in which a user meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.commands, key=ORDER.index)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="reflexfix")
@click.option("--debug", is_flag=True, help="Show the traceback of an error; goes anywhere.")
def cli(debug: bool) -> None:
    """Write or repair one function: a model writes it, tests judge it in a sandbox,
    a failure becomes a lesson, and the next try knows it."""
