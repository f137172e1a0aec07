"""The types of all kinds, and the decoding of request bodies: see ``Schemas``."""

from kcm_cli.sandbox.apiserver.schema.bodies import Target, target_of
from kcm_cli.sandbox.apiserver.schema.schemas import Schemas

__all__ = ["Schemas", "Target", "target_of"]
