"""What the server keeps beside requests. Each part subscribes to the store, and writes by ``Core.own`` only."""

from collections.abc import Callable, Sequence
from functools import partial

from kcm_cli.sandbox.apiserver.controllers.api_services import CustomApiServices
from kcm_cli.sandbox.apiserver.controllers.event_expiry import EventExpiry
from kcm_cli.sandbox.apiserver.controllers.flow_schemas import FlowSchemaStatus
from kcm_cli.sandbox.apiserver.controllers.remote_apis import RemoteApis
from kcm_cli.sandbox.apiserver.controllers.service_ranges import DefaultRange
from kcm_cli.sandbox.apiserver.crd.controller import DefinitionController
from kcm_cli.sandbox.apiserver.crd.resources import CustomResources
from kcm_cli.sandbox.apiserver.registry.core import Core

__all__ = ["controllers"]


def controllers(custom: CustomResources) -> Sequence[Callable[[Core], object]]:
    """In the order in which they are made: what one writes, the next ones see."""
    return (
        partial(DefinitionController, custom),
        FlowSchemaStatus,
        DefaultRange,
        EventExpiry,
        CustomApiServices,
        RemoteApis,
    )
