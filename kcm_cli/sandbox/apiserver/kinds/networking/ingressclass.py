"""IngressClass.

Source: pkg/apis/networking/v1/defaults.go, pkg/apis/networking/validation,
pkg/registry/networking/ingressclass/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.kinds.networking.common import validate_reference
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, name_of
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, metadata

_CONTROLLER_MAX = 250
_SCOPES = ("Cluster", "Namespace")


def validate_ingress_class(doc: Tree) -> Errors:
    yield from metadata.validate_meta(doc["metadata"], False, metadata.subdomain)
    spec = doc.get("spec") or {}
    controller, parameters = spec.get("controller", ""), spec.get("parameters")
    if len(controller.encode()) > _CONTROLLER_MAX:
        yield errors.too_long("spec.controller", _CONTROLLER_MAX)
    yield from labels.domain_prefixed_path(controller, "spec.controller")
    if parameters is not None:
        yield from _parameters(parameters, "spec.parameters")


def validate_ingress_class_update(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    after, before = ((doc.get("spec") or {}).get("controller", "") for doc in (new, old))
    yield from errors.fixed("spec.controller", after, before)
    yield from validate_ingress_class(new)


def _parameters(reference: Tree, path: str) -> Errors:
    yield from validate_reference(reference, path)
    scope, namespace = reference.get("scope"), reference.get("namespace")
    if scope is None:
        yield errors.required(f"{path}.scope")
        return
    if scope not in _SCOPES:
        yield errors.not_supported(f"{path}.scope", scope, _SCOPES)
        return
    if scope == "Namespace":
        if namespace is None:
            yield errors.required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
            return
        yield from errors.invalid_each(f"{path}.namespace", namespace, names.dns1123_label(namespace))
        return
    if namespace is not None:
        yield errors.forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")


def _defaults(doc: Tree) -> None:
    parameters = (doc.get("spec") or {}).get("parameters")
    if parameters is not None:
        fill.absent(parameters, (("scope", "Cluster"),))


def _default_name(doc: Tree, annotation: str) -> str:
    annotations = doc["metadata"].get("annotations") or {}
    return name_of(doc) + (" (default)" if annotations.get(annotation) == "true" else "")


def _cells(doc: Tree, now: datetime) -> list[object]:
    spec = doc.get("spec") or {}
    reference, text = spec.get("parameters"), NONE
    if reference is not None:
        group = f".{reference['apiGroup']}" if reference.get("apiGroup") is not None else ""
        text = f"{reference['kind']}{group}/{reference['name']}"
    name = _default_name(doc, "ingressclass.kubernetes.io/is-default-class")
    return [name, spec.get("controller", ""), text, created(doc, now)]


KIND = Kind(
    "networking.k8s.io",
    "ingressclasses",
    defaults=_defaults,
    strategy=Strategy(
        namespaced=False,
        on_create=parts.first_generation,
        on_update=parts.bump_if_spec_changed,
        check_create=validate_ingress_class,
        check_update=validate_ingress_class_update,
    ),
    table=Layout(
        (
            NAME,
            Column("Controller", "Controller that is responsible for handling this class"),
            Column("Parameters", "A reference to a resource with additional parameters"),
            AGE,
        ),
        _cells,
    ),
)
