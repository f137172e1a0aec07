"""A controller before it is started: its names, feature gates and options.

Help and completion read descriptors only, and import no controller.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import msgspec

from kcm_cli.component.options import Group

if TYPE_CHECKING:
    from kcm_cli.engine.controller import Controller


class StartError(Exception):
    """A controller cannot run under this configuration; the message names the flag and the way out."""


class Descriptor(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a controller before it starts.

    name, alias: the names in --controllers. client: the name of its client and, with --use-service-account-credentials,
    of its service account; by default the controller's name. source: the source of its Events; by default its name.
    controller: its declaration; by default CONTROLLER in the module ``controller`` of its folder, which is imported
    when the controller starts. gates: feature gates that must all be on. requires: API resources
    (group/version/plural), one of which must be served. options: a group of ``component.options``; its SECTION is the
    heading in the help, by default the controller's name. problems: the errors in these options beside other groups, by
    type; asked if the controller runs. key: the field of the options in the configuration file, by default the name in
    camel case. help_after, file_after: the section and the key that they follow, where these are not in the order of
    their keys. cloud_only: listed, but never run: kube-controller-manager has no cloud provider left. running_as: the
    label in ``running_managed_controllers``, for one that a cloud controller manager may run, too. starts_first: the
    others wait until it was started. node_ranges: it allocates pod CIDRs to nodes, with --allocate-node-cidrs. regular:
    its writes follow from the clock or from usage, under any manager. ends_jobs: it ends pods of Jobs by intention.
    """

    name: str
    alias: str = ""
    client: str = ""
    source: str = ""
    controller: Any = None  # a Controller, whose module need not be imported here
    gates: tuple[str, ...] = ()
    options: type[Group] | None = None
    problems: Callable[[Mapping[type, Any]], Iterable[str]] | None = None
    key: str = ""
    help_after: str = ""
    file_after: str = ""
    default_enabled: bool = True
    cloud_only: bool = False
    running_as: str = ""
    starts_first: bool = False
    node_ranges: bool = False
    regular: bool = False
    ends_jobs: bool = False
    requires: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """The controller's name as a Python identifier."""
        return self.name.removesuffix("-controller").replace("-", "_")

    @property
    def called(self) -> str:
        """The name of its client."""
        return self.client or self.name

    @property
    def section(self) -> str:
        """The heading of its flags in the help."""
        return str(getattr(self.options, "SECTION", self.name.capitalize()))

    @property
    def config_key(self) -> str:
        """The field of its options in the configuration file."""
        return self.key or "".join(word.capitalize() for word in self.name.split("-"))

    def load(self) -> "Controller":
        """Its declaration, imported if need be. Raises StartError."""
        module, declared = f"kcm_cli.controllers.{self.folder}.controller", self.controller
        try:
            return cast("Controller", import_module(module).CONTROLLER if declared is None else declared)
        except (ModuleNotFoundError, AttributeError) as error:
            raise StartError(f"{self.name}: cannot import {module}: {error}") from error
