"""The shapes of all kinds, and what is made of a body: see ``Schemas``."""

from kcm_cli.sandbox.apiserver.schema.bodies import Target, target_of
from kcm_cli.sandbox.apiserver.schema.schemas import Schemas

__all__ = ["Schemas", "Target", "target_of"]
