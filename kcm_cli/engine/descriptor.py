"""A controller as the manager sees it: one descriptor each, in one literal table."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import cast

from kcm_cli.engine.context import ControllerContext, Runnable

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
    name, if empty). module: where ``build(context)`` is, if not in ``kcm_cli.controllers``; a module that does not
    exist is a controller that is not built yet. gates: all have to be on. requires: API resources
    (group/version/plural), one of which has to be served.
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

    @property
    def built(self) -> bool:
        try:
            return find_spec(self.location) is not None
        except ModuleNotFoundError:
            return False

    def build(self, context: ControllerContext) -> Runnable | None:
        """Import and make the controller. Raises StartError."""
        return cast(Build, import_module(self.location).build)(context)
