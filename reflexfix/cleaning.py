"""Say what this tool keeps on the machine, and remove what is named."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from reflexfix import assemble, local, runlog
from reflexfix.containers import image as engine_images
from reflexfix.errors import SandboxTrouble


def clean(folder: Path, *, images: bool, model: bool, runs: bool) -> Iterator[str]:
    """Remove images, model or runs, saying how much each was; without a name, only say it."""
    yield from _images(images)
    yield from _model(model)
    yield from _runs(folder, runs)
    if not (images or model or runs):
        yield "nothing was removed; name it with --images, --model or --runs"


def _images(remove: bool) -> Iterator[str]:
    try:
        engine = assemble.engine()
    except SandboxTrouble as error:
        yield f"images: unknown ({error.message})"
        return
    found = engine_images.images(engine)
    size = sum(int(image.attrs.get("Size", 0)) for image in found)
    if remove:
        engine_images.remove_images(engine)
    yield f"images: {len(found)}, {size / 1e6:.0f} MB{_done(remove)}"


def _model(remove: bool) -> Iterator[str]:
    path = local.model_path()
    parts = [p for p in (path, path.with_suffix(".part")) if p.exists()]
    size = sum(part.stat().st_size for part in parts)
    if remove:
        for part in parts:
            part.unlink()
    yield f"model: {size / 1e6:.0f} MB in {path.parent}{_done(remove)}"


def _runs(folder: Path, remove: bool) -> Iterator[str]:
    home = runlog.home_of(folder / "x")
    kept = runlog.runs(home)
    size = sum(file.stat().st_size for run in kept for file in run.rglob("*") if file.is_file())
    if remove:
        for run in kept:
            shutil.rmtree(run)
    yield f"runs: {len(kept)}, {size / 1e6:.1f} MB in {home}{_done(remove)}"


def _done(remove: bool) -> str:
    return ", removed" if remove else ""
