"""A container that is started while the project is still being read: what is long, first."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from reflexfix.background import in_background

if TYPE_CHECKING:
    from reflexfix.attempt import Limits
    from reflexfix.hook.environment import Need
    from reflexfix.hook.runner import ProjectSandbox
    from reflexfix.hook.tree import Tree
    from reflexfix.hook.work import Project


class Early:
    """Connects and starts a container while the project is still being read. Use it in a `with`.

    `look` gives as much of the tree as says what the tests need.
    """

    def __init__(self, look: Callable[[], Tree]) -> None:
        self.look = look
        self.held = contextlib.ExitStack()
        self.need: Need | None = None

    def __enter__(self) -> Early:
        self.future = in_background(self._start)
        return self

    def __exit__(self, *_: object) -> None:
        self.future.exception()
        self.held.close()

    def _start(self) -> ProjectSandbox | None:
        from reflexfix.hook import environment
        from reflexfix.hook import settings as setting

        tree = self.look()
        settings, limits = setting.of_tree(tree)
        if settings.dockerfile and tree.read(settings.dockerfile) is None:
            return None  # what is read first does not have it
        self.need = environment.need(tree, settings)
        return self._open(self.need, limits)

    def _open(self, need: Need, limits: Limits) -> ProjectSandbox:
        from reflexfix.hook import environment, runner
        from reflexfix.hook import settings as setting

        engine = self.held.enter_context(environment.connected())
        image = environment.ready(engine, need)
        roomy = setting.roomy(limits, need.is_rust)
        sandbox = self.held.enter_context(runner.ProjectSandbox(engine, image, roomy, pool=0))
        sandbox.start_ahead()
        return sandbox

    def sandbox(self, project: Project) -> ProjectSandbox:
        """Give the sandbox for a project.

        Raises SandboxTrouble; NotPrepared when an image would have to be built first.
        """
        sandbox = self.future.result()
        if sandbox is not None and self.need == project.need:
            return sandbox
        return self._open(project.need, project.limits)  # what was read first was not all
