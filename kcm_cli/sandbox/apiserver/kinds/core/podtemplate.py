"""PodTemplate.

upstream: pkg/apis/core/v1/defaults.go, pkg/apis/core/validation,
pkg/registry/core/podtemplate/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.defaulting import pod
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings import pods
from kcm_cli.sandbox.apiserver.strategy.warnings.workloads import changed
from kcm_cli.sandbox.apiserver.tables.column import NAME, Column, layout
from kcm_cli.sandbox.apiserver.tables.templates import containers, labels_at
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import pod_template


def _check(doc: Tree, old: Tree | None) -> Errors:
    known = None if old is None else old.get("template")
    return pod_template.validate_template(doc.get("template") or {}, "template", known)


def of_pod_template(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a PodTemplate."""
    return pods.of_template(new.get("template"), "template") if changed(new, old) else []


def _pod_template_update(new: Tree, old: Tree) -> None:
    if new["template"] != old["template"]:
        parts.bump_generation(new, old)


KIND = Kind(
    "",
    "podtemplates",
    defaults=pod.template,
    strategy=Strategy(
        template="template",
        generation=True,
        on_update=_pod_template_update,
        check=_check,
        returns_object_on_delete=True,
        warn=of_pod_template,
    ),
    table=layout(
        NAME,
        *containers("template", Column),
        Column("Pod Labels", "The labels for the pod template.", labels_at("template.metadata.labels")),
    ),
)
