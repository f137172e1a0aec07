"""DeviceClass.

Source: pkg/apis/resource/validation,
pkg/registry/resource/deviceclass/strategy.go, pkg/printers/internalversion/printers.go.
"""

from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.kinds.resource.common import validate_selector
from kcm_cli.sandbox.apiserver.kinds.resource.device_claims import LIST_MAX, validate_configuration, validate_items
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Layout, named
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata, quantities


def validate_class(doc: Tree) -> Errors:
    spec = doc.get("spec") or {}
    yield from metadata.validate_meta(doc["metadata"], False, metadata.subdomain)
    yield from validate_items(spec.get("selectors") or [], LIST_MAX, validate_selector, "spec.selectors")
    yield from validate_items(spec.get("config") or [], LIST_MAX, validate_configuration, "spec.config")
    name = spec.get("extendedResourceName")
    if name is not None and not quantities.is_extended(name):
        yield errors.invalid("spec.extendedResourceName", name, "must be a valid extended resource name")


def validate_class_update(new: Tree, old: Tree) -> Errors:
    return [*validate_class(new), *metadata.validate_meta_update(new["metadata"], old["metadata"])]


KIND = Kind(
    "resource.k8s.io",
    "deviceclasses",
    strategy=Strategy(
        namespaced=False,
        on_create=parts.first_generation,
        on_update=parts.bump_if_spec_changed,
        returns_object_on_delete=True,
        check_create=validate_class,
        check_update=validate_class_update,
    ),
    table=Layout((NAME, AGE), named),
)
