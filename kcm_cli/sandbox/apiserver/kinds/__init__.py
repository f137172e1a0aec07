"""The built-in kinds: each module of this package with a ``KIND`` (see ``registry.core.Kind``) or ``KINDS``."""

import importlib
import pkgutil
from collections.abc import Iterator

from kcm_cli.sandbox.apiserver.registry.core import Kind, Kinds

__all__ = ["KINDS"]


def _found() -> Iterator[Kind]:
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        if not module.ispkg:
            loaded = importlib.import_module(module.name)
            yield from getattr(loaded, "KINDS", ())
            if (kind := getattr(loaded, "KIND", None)) is not None:
                yield kind


KINDS = Kinds(_found())
