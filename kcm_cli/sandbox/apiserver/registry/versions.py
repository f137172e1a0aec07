"""Converts objects to the API versions of their field managers."""

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.schema import Schemas, target_of
from kcm_cli.sandbox.apiserver.schema.model import Node
from kcm_cli.sandbox.apiserver.types import ResourceInfo


class KindVersions:
    """Implements ``apply.tracking.Versions``."""

    def __init__(self, catalog: Catalog, schemas: Schemas) -> None:
        self._catalog = catalog
        self._schemas = schemas

    def convert(self, resource: ResourceInfo, doc: Doc, version: str, *, stored: bool) -> tuple[Node, Doc] | None:
        """See ``apply.tracking.Versions``."""
        group, _, name = version.rpartition("/")
        wanted = self._catalog.find(group, name, resource.gvr.plural)
        own = self._catalog.by_gvr(resource.gvr)
        node = None if wanted is None else self._schemas.node(target_of(wanted.info))
        if wanted is None or own is None or node is None:
            return None
        given = doc if "metadata" in doc else {**doc, "metadata": {}}
        given = own.to_storage(given)
        return node, given if wanted.conversion is None else wanted.conversion.versioned(given, stored=stored)
