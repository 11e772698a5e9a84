"""What is fetched or built ahead: the sandbox's image, the embedded model."""

from __future__ import annotations

import click

from reflexfix.cli.group import cli
from reflexfix.cli.options import option, table_of


@cli.group()
def sandbox() -> None:
    """The container image in which tests run."""


@sandbox.command("build")
@option("--with", "with_", multiple=True, metavar="PACKAGE", help="Package that files import.")
@click.pass_context
def sandbox_build(ctx: click.Context, with_: tuple[str, ...]) -> None:
    """Build the image, or say that it is there."""
    from reflexfix import assemble, config

    packages = tuple(dict.fromkeys([*config.packages(table_of(ctx)), *with_]))
    image = assemble.ready_image(
        assemble.engine(), packages, lambda line: click.echo(line, err=True)
    )
    click.echo(image)


@cli.group()
def model() -> None:
    """The embedded model."""


@model.command("pull")
def model_pull() -> None:
    """Fetch the embedded model once, checked by its sha256."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from reflexfix import local

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=Console(stderr=True, soft_wrap=True)) as bar:
        task = bar.add_task(local.MODEL_NAME, total=local.MODEL_BYTES)
        for step in local.pull():
            bar.update(task, completed=step.done_bytes)
            if step.what:
                bar.console.print(step.what, highlight=False, markup=False)
    click.echo(local.model_path())
