"""What every verb works with."""

import random
from dataclasses import dataclass, field

from kcm_cli.component.clock import Clock
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.registry.parts import Parts
from kcm_cli.sandbox.apiserver.store import Store


@dataclass(frozen=True, slots=True)
class Core:
    """The store and the parts that the verbs share."""

    store: Store
    catalog: Catalog
    clock: Clock
    random: random.Random
    parts: Parts = field(default_factory=Parts)
