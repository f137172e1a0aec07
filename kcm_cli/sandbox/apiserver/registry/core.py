"""What every verb works with."""

import random
from dataclasses import dataclass
from typing import Protocol

from kcm_cli.component.clock import Clock
from kcm_cli.sandbox.apiserver.apply.patching import Patching
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.schema import Schemas
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.strategy.service_allocation import ServiceAllocator
from kcm_cli.sandbox.apiserver.types import Attributes


class Admission(Protocol):
    """Decides on writes, and may change them."""

    async def mutate(self, attrs: Attributes) -> None:
        """Raises ApiError."""

    async def validate(self, attrs: Attributes) -> None:
        """Raises ApiError."""


@dataclass(frozen=True, slots=True)
class Core:
    """The store and the parts that the verbs share."""

    store: Store
    catalog: Catalog
    clock: Clock
    random: random.Random
    schemas: Schemas
    patching: Patching
    admission: Admission
    authorizer: Authorizer
    services: ServiceAllocator
