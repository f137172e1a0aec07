"""Converts objects to the API versions of their field managers."""

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.apply.tracking import Versioned
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Served
from kcm_cli.sandbox.apiserver.schema import Schemas, target_of
from kcm_cli.sandbox.apiserver.types import ResourceInfo


class KindVersions:
    """Implements ``apply.tracking.Versions``."""

    def __init__(self, catalog: Catalog, schemas: Schemas) -> None:
        self._catalog = catalog
        self._schemas = schemas

    def convert(self, resource: ResourceInfo, doc: Doc, versions: tuple[str, str], *, stored: bool) -> Versioned | None:
        """See ``apply.tracking.Versions``."""
        given, wanted = (self._served(resource, version) for version in versions)
        node = None if wanted is None else self._schemas.node(target_of(wanted.info))
        if given is None or wanted is None or node is None:
            return None
        made = given.to_storage(doc if "metadata" in doc else {**doc, "metadata": {}})
        if wanted.conversion is not None:
            made = wanted.conversion.versioned(made, stored=stored)
        return Versioned(versions[1], node, made)

    def _served(self, resource: ResourceInfo, version: str) -> Served | None:
        if version == resource.api_version:
            return self._catalog.by_gvr(resource.gvr)
        group, _, name = version.rpartition("/")
        return self._catalog.find(group, name, resource.gvr.plural)
