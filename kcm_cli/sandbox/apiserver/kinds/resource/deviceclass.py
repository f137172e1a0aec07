"""DeviceClass.

upstream: pkg/apis/resource/validation,
pkg/registry/resource/deviceclass/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.kinds.resource.common import at_most_items, validate_selector
from kcm_cli.sandbox.apiserver.kinds.resource.device_claims import LIST_MAX, validate_configuration
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by_spec
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, layout
from kcm_cli.sandbox.apiserver.validation import quantities, rules

_SPEC = rules.fields(
    rules.optional("selectors", at_most_items(LIST_MAX, validate_selector)),
    rules.optional("config", at_most_items(LIST_MAX, validate_configuration)),
    rules.optional(
        "extendedResourceName", rules.must(quantities.is_extended, "must be a valid extended resource name")
    ),
)


KIND = Kind(
    "resource.k8s.io",
    "deviceclasses",
    strategy=Strategy(
        generation=True,
        returns_object_on_delete=True,
        check=by_spec(_SPEC),
        update_steps=("name", "rules", "metadata"),
    ),
    table=layout(NAME, AGE),
)
