"""A controller as the manager sees it: one descriptor each, in one literal table."""

from collections.abc import Callable
from dataclasses import dataclass

from kcm_cli.engine.context import ControllerContext, Runnable

Build = Callable[[ControllerContext], Runnable | None]
"""Makes the controller: registers its listeners and returns what to run. None: nothing to do under this
configuration (upstream skips it silently too)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """One controller.

    ``name`` and ``alias`` are what --controllers understands, ``client`` the client's name and, with
    --use-service-account-credentials, the service account. ``build`` is None for a controller that is not built
    yet: asking for it is an error that says so.
    """

    name: str
    alias: str
    client: str = ""
    build: Build | None = None
    gates: tuple[str, ...] = ()
    default_enabled: bool = True
    cloud_only: bool = False
    starts_first: bool = False
    requires: tuple[str, ...] = ()
