"""A controller as the manager sees it: one descriptor each, in one literal table."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.controller import Controller

Build = Callable[[ControllerContext], Runnable | None]
"""Makes the controller: registers its listeners and returns what to run. None: nothing to do under this
configuration (upstream skips it silently too)."""


class StartError(Exception):
    """A controller cannot run under this configuration; the message names the flag and the way out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """One controller.

    name, alias: what --controllers understands. client: the client's name and, with
    --use-service-account-credentials, the service account. source: what its Events name as their source (its
    name, if empty). module: where ``build(context)`` is, if not in ``kcm_cli.controllers``. gates: all have
    to be on. requires: API resources (group/version/plural), one of which has to be served. cloud_only: never run,
    as in the original, which has no cloud left.
    """

    name: str
    alias: str = ""
    client: str = ""
    source: str = ""
    module: str = ""
    gates: tuple[str, ...] = ()
    default_enabled: bool = True
    cloud_only: bool = False
    starts_first: bool = False
    requires: tuple[str, ...] = ()

    @property
    def location(self) -> str:
        """The name of the module that makes it."""
        folder = self.name.removesuffix("-controller").replace("-", "_")
        return self.module or f"kcm_cli.controllers.{folder}.controller"

    def build(self, context: ControllerContext) -> Runnable | None:
        """Import and make the controller. Raises StartError."""
        try:
            module = import_module(self.location)
        except ModuleNotFoundError as error:
            raise StartError(f"{self.name}: cannot import {self.location}: {error}") from error
        if hasattr(module, "build"):
            return cast(Build, module.build)(context)
        return cast(Controller, module.CONTROLLER).build(context)
