"""Converts objects to the API versions of their field managers."""

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.crd.resources import CustomResources
from kcm_cli.sandbox.apiserver.registry import conversion
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.schema import Schemas, target_of
from kcm_cli.sandbox.apiserver.schema.model import Node
from kcm_cli.sandbox.apiserver.types import ResourceInfo


class KindVersions:
    """Implements ``apply.tracking.Versions``."""

    def __init__(self, catalog: Catalog, schemas: Schemas, custom: CustomResources) -> None:
        self._catalog = catalog
        self._schemas = schemas
        self._custom = custom

    def convert(self, resource: ResourceInfo, doc: Doc, version: str, *, stored: bool) -> tuple[Node, Doc] | None:
        """See ``apply.tracking.Versions``."""
        group, _, name = version.rpartition("/")
        wanted = self._catalog.find(group, name, resource.gvr.plural)
        own = self._catalog.by_gvr(resource.gvr)
        node = None if wanted is None else self._schemas.node(target_of(wanted.info))
        if wanted is None or own is None or node is None:
            return None
        given = doc if "metadata" in doc else {**doc, "metadata": {}}
        if resource.custom:
            return node, self._custom.kind(wanted.info).versioned(given, stored=stored)
        return node, conversion.from_storage(wanted, conversion.to_storage(own, given))
