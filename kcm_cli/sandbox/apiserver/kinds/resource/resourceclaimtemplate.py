"""ResourceClaimTemplate.

upstream: pkg/apis/resource/v1/defaults.go, pkg/apis/resource/validation,
pkg/registry/resource/resourceclaimtemplate/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.kinds.resource.common import claim_spec
from kcm_cli.sandbox.apiserver.kinds.resource.device_access import of_template
from kcm_cli.sandbox.apiserver.kinds.resource.device_claims import validate_fixed_spec, validate_spec
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by_spec
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, layout
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation import rules
from kcm_cli.sandbox.apiserver.validation.volumes import template_meta

_SPEC = rules.fields(rules.optional("metadata", template_meta), rules.always("spec", validate_spec, default={}))


def _defaults(doc: Tree) -> None:
    spec = doc.setdefault("spec", {})
    spec.setdefault("metadata", {})
    claim_spec(spec.setdefault("spec", {}))


KIND = Kind(
    "resource.k8s.io",
    "resourceclaimtemplates",
    defaults=_defaults,
    strategy=Strategy(
        returns_object_on_delete=True,
        check=by_spec(_SPEC),
        check_change=lambda new, old: validate_fixed_spec("resource.ResourceClaimTemplateSpec", new, old),
        update_steps=("name", "rules", "metadata", "change"),
    ),
    check_access=of_template,
    table=layout(NAME, AGE),
)
