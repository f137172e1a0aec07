"""IngressClass.

upstream: pkg/apis/networking/v1/defaults.go, pkg/apis/networking/validation,
pkg/registry/networking/ingressclass/strategy.go, pkg/printers/internalversion/printers.go
"""

from datetime import datetime

from msgspec.structs import replace

from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.networking.common import validate_reference
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by_spec
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, at, layout, name_of, shown
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, rules


def _check_change(new: Tree, old: Tree) -> Errors:
    after, before = ((doc.get("spec") or {}).get("controller", "") for doc in (new, old))
    return errors.fixed("spec.controller", after, before)


_SCOPES = {
    "Cluster": rules.fields(rules.forbidden("namespace", "`parameters.scope` is set to 'Cluster'", zero=False)),
    "Namespace": rules.fields(
        rules.present("namespace", rules.LABEL, detail="`parameters.scope` is set to 'Namespace'")
    ),
}
_SCOPE = rules.unless(rules.fields(rules.present("scope")), rules.by_value("scope", _SCOPES))
_SPEC = rules.fields(
    rules.optional("controller", rules.max_bytes(250)),
    rules.always("controller", labels.domain_prefixed_path),
    rules.optional("parameters", validate_reference, _SCOPE),
)


def _defaults(doc: Tree) -> None:
    fill.absent((doc.get("spec") or {}).get("parameters"), scope="Cluster")


def _name(doc: Tree, now: datetime) -> str:
    annotations = doc["metadata"].get("annotations") or {}
    default = annotations.get("ingressclass.kubernetes.io/is-default-class") == "true"
    return name_of(doc) + (" (default)" if default else "")


def _parameters(reference: Tree) -> str:
    group = f".{reference['apiGroup']}" if reference.get("apiGroup") is not None else ""
    return f"{reference['kind']}{group}/{reference['name']}"


KIND = Kind(
    "networking.k8s.io",
    "ingressclasses",
    defaults=_defaults,
    strategy=Strategy(
        generation=True,
        check=by_spec(_SPEC),
        check_change=_check_change,
        update_steps=("metadata", "change", "name", "rules"),
    ),
    table=layout(
        replace(NAME, cell=_name),
        Column("Controller", "Controller that is responsible for handling this class", at("spec.controller")),
        Column(
            "Parameters",
            "A reference to a resource with additional parameters",
            shown("spec.parameters", NONE, _parameters),
        ),
        AGE,
    ),
)
