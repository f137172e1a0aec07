"""A controller as the manager sees it before it is started: its names, gates and options.

Light, so that help and completion need no controller's code.
"""

from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

from kcm_cli.component.options import Group

if TYPE_CHECKING:
    from kcm_cli.engine.context import ControllerContext, Runnable
    from kcm_cli.engine.controller import Controller


class StartError(Exception):
    """A controller cannot run under this configuration; the message names the flag and the way out."""


class Descriptor(msgspec.Struct, frozen=True, kw_only=True):
    """One controller.

    name, alias: what --controllers understands. client: the client's name and, with
    --use-service-account-credentials, the service account; source: what its Events name as their source (both: its
    name, if empty). module: where its ``CONTROLLER`` is, if not in ``kcm_cli.controllers``. gates: all have
    to be on. requires: API resources (group/version/plural), one of which has to be served. options: a group of
    ``component.options``; its SECTION is its place in the help, if not the controller's name. key: where they stand
    in the configuration file, if not under the name in camel case. cloud_only: never run, as in
    kube-controller-manager, which has no cloud left.
    """

    name: str
    alias: str = ""
    client: str = ""
    source: str = ""
    module: str = ""
    gates: tuple[str, ...] = ()
    options: type[Group] | None = None
    key: str = ""
    default_enabled: bool = True
    cloud_only: bool = False
    starts_first: bool = False
    requires: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """Its name as a name in Python."""
        return self.name.removesuffix("-controller").replace("-", "_")

    @property
    def location(self) -> str:
        """The name of the module that declares it."""
        return self.module or f"kcm_cli.controllers.{self.folder}.controller"

    @property
    def section(self) -> str:
        """Where its flags stand in the help."""
        return str(getattr(self.options, "SECTION", self.name.capitalize()))

    @property
    def config_key(self) -> str:
        """Where its options stand in the configuration file."""
        return self.key or "".join(word.capitalize() for word in self.name.split("-"))

    def load(self) -> "Controller":
        """Import its declaration. Raises StartError."""
        try:
            declared: Controller = import_module(self.location).CONTROLLER
        except (ModuleNotFoundError, AttributeError) as error:
            raise StartError(f"{self.name}: cannot import {self.location}: {error}") from error
        return declared

    def build(self, context: "ControllerContext") -> "Runnable | None":
        """Import and make it; None where it has nothing to do. Raises StartError."""
        return self.load().build(context)
