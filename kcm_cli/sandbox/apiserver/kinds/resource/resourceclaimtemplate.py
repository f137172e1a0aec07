"""ResourceClaimTemplate.

Source: pkg/apis/resource/v1/defaults.go, pkg/apis/resource/validation,
pkg/registry/resource/resourceclaimtemplate/strategy.go, pkg/printers/internalversion/printers.go.
"""

from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.kinds.resource.common import claim_spec
from kcm_cli.sandbox.apiserver.kinds.resource.device_claims import validate_fixed_spec, validate_spec
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Layout, named
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, metadata


def validate_template(doc: Tree) -> Errors:
    spec = doc.get("spec") or {}
    meta = spec.get("metadata") or {}
    yield from metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    yield from labels.validate_annotations(meta.get("annotations"), "spec.metadata.annotations")
    yield from labels.validate_labels(meta.get("labels"), "spec.metadata.labels")
    for field, value in meta.items():
        if value and field not in ("annotations", "labels"):
            yield errors.forbidden(f"spec.metadata.{metadata.go_field(field)}", "cannot be set")
    yield from validate_spec(spec.get("spec") or {}, "spec.spec")


def validate_template_update(new: Tree, old: Tree) -> Errors:
    yield from validate_template(new)
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    yield from validate_fixed_spec("resource.ResourceClaimTemplateSpec", new, old)


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
        check_create=validate_template,
        check_update=validate_template_update,
    ),
    table=Layout((NAME, AGE), named),
)
