"""Pod templates.

upstream: pkg/apis/core/validation/validation.go#ValidatePodTemplateSpec; pkg/apis/apps/validation/validation.go
"""

from kcm_cli.machinery.labels import Selector
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, pod_annotations
from kcm_cli.sandbox.apiserver.validation.labels import validate_annotations, validate_labels
from kcm_cli.sandbox.apiserver.validation.pod_spec import validate_pod_spec

NO_MATCH = "`selector` does not match template `labels`"


def validate_template(template: Tree, path: str, known: Tree | None = None) -> Errors:
    """Check labels, annotations and the spec. A template that does not change is valid."""
    if template == known:
        return
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    yield from validate_labels(meta.get("labels"), f"{path}.labels")
    annotations = meta.get("annotations") or {}
    if annotations:
        yield from validate_annotations(annotations, f"{path}.annotations")
        yield from pod_annotations.validate_annotations(annotations, spec, f"{path}.annotations")
    yield from validate_pod_spec(spec, f"{path}.spec", known=(known or {}).get("spec"))
    if annotations:
        yield from pod_annotations.validate_match(annotations, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        yield errors.forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def validate_match(template: Tree, selector: Selector) -> Errors:
    """Check that a workload's selector matches the labels of its template."""
    labels = (template.get("metadata") or {}).get("labels")
    if selector.matches(labels or {}):
        return []
    return [errors.invalid("spec.template.metadata.labels", errors.sorted_map(labels), NO_MATCH)]


def validate_long_running(template: Tree, kind: str) -> Errors:
    """Check that a template has nothing that only pods which run to completion may have."""
    spec = template.get("spec") or {}
    if spec.get("restartPolicy") != "Always":
        yield errors.not_supported("spec.template.spec.restartPolicy", spec.get("restartPolicy", ""), ["Always"])
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        yield errors.forbidden("spec.template.spec.activeDeadlineSeconds", detail)
