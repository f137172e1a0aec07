"""FlowSchema.

upstream: pkg/apis/flowcontrol/v1/defaults.go, pkg/apis/flowcontrol/validation,
pkg/registry/flowcontrol/flowschema/strategy.go, pkg/printers/internalversion/printers.go
"""

from datetime import datetime

from msgspec.structs import replace

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.admission_rules import alone
from kcm_cli.sandbox.apiserver.kinds.flowcontrol import common
from kcm_cli.sandbox.apiserver.kinds.flowcontrol.common import PRECEDENCE_MAX, validate_fixed, validate_status
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, at, layout, of_field
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.trees import condition
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")


def _check(doc: Tree, old: Tree | None) -> Errors:
    meta, spec = doc["metadata"], doc.get("spec") or {}
    yield from _precedence(spec.get("matchingPrecedence", 0), meta.get("name", ""))
    yield from _SPEC(spec, "spec")
    yield from validate_fixed(meta.get("name", ""), "FlowSchema", spec)
    yield from validate_status(doc.get("status") or {}, "status")


def _precedence(value: int, name: str) -> Errors:
    path = "spec.matchingPrecedence"
    if value <= 0:
        yield errors.invalid(path, value, "must be a positive value")
    elif value > PRECEDENCE_MAX:
        yield errors.invalid(path, value, f"must not be greater than {PRECEDENCE_MAX}")
    elif value == 1 and name != "exempt":
        yield errors.invalid(path, value, "only the schema named 'exempt' may have matchingPrecedence 1")


def _method(method: Tree, path: str) -> Errors:
    if method.get("type") not in ("ByNamespace", "ByUser"):
        yield errors.not_supported(f"{path}.type", {"Type": method.get("type", "")}, ("ByNamespace", "ByUser"))


def _account_name(name: str, path: str) -> Errors:
    return () if name == "*" else rules.SUBDOMAIN(name, path)


def _of_kind(kind: str, field: str) -> rules.Rule:
    named = rules.fields(rules.required("name"))
    if kind == "ServiceAccount":
        detail = "must specify namespace for service account"
        named = rules.fields(
            rules.required("name", _account_name), rules.required("namespace", rules.LABEL, detail=detail)
        )
    others = (other for other in ("ServiceAccount", "User", "Group") if other != kind)
    return rules.fields(
        rules.present(field, named, detail=f"{field} is required when subject kind is '{kind}'"),
        *(
            rules.forbidden(name, f"{name} is forbidden when subject kind is not '{other}'", zero=False)
            for other, name in ((other, _SUBJECTS[other]) for other in others)
        ),
    )


def _some_rule(rule: Tree, path: str) -> Errors:
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        yield errors.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")


def _verbs(verbs: list[str], path: str) -> Errors:
    if "*" not in verbs and not set(verbs) <= set(_VERBS):
        yield errors.not_supported(path, verbs, _VERBS)


def _namespaces(rule: Tree, path: str) -> Errors:
    namespaces, place = rule.get("namespaces") or [], f"{path}.namespaces"
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        yield errors.required(place, detail)
    elif "*" in namespaces:
        yield from alone("namespaces")(namespaces, place)
    else:
        yield from _NAMESPACES(namespaces, place)


def _urls(urls: list[str], path: str) -> Errors:
    return alone("non-resource URLs")(urls, path) if "*" in urls else _URLS(urls, path)


_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_NAMESPACE = "each member of this list must be '*' or a DNS-1123 label; "


def _url_problem(url: str) -> list[str]:
    if not url:
        return ["must not be empty"]
    if url == "/":
        return []
    if not url.startswith("/"):
        return ["must start with slash"]
    if " " in url:
        return ["must not contain white-space"]
    if "//" in url:
        return ["must not contain double slash"]
    stars = url.count("*")
    return ["wildcard can only do suffix matching"] if stars > 1 or (stars and not url.endswith("/*")) else []


_SUBJECT = rules.by_value("kind", {kind: _of_kind(kind, field) for kind, field in _SUBJECTS.items()})
_URLS = rules.items(rules.form(_url_problem))
_NAMESPACES = rules.items(rules.form(lambda name: [f"{_NAMESPACE}{message}" for message in names.dns1123_label(name)]))
_NAMED_VERBS = rules.required("verbs", alone("verbs"), _verbs, detail="verbs must contain at least one value")
_SUPPLY = "resource rules must supply at least one"
_RESOURCE_RULE = rules.fields(
    _NAMED_VERBS,
    rules.required("apiGroups", alone("api groups"), detail=f"{_SUPPLY} api group"),
    rules.required("resources", alone("resources"), detail=f"{_SUPPLY} resource"),
    _namespaces,
)
_URL_RULE = rules.fields(
    _NAMED_VERBS, rules.required("nonResourceURLs", _urls, detail="nonResourceURLs must contain at least one value")
)
_RULE = rules.fields(
    rules.required("subjects", rules.items(_SUBJECT), detail="subjects must contain at least one value"),
    _some_rule,
    rules.each("resourceRules", _RESOURCE_RULE),
    rules.each("nonResourceRules", _URL_RULE),
)
_LEVEL = rules.fields(rules.required("name", rules.SUBDOMAIN, detail="must reference a priority level"))
_SPEC = rules.fields(
    rules.optional("distinguisherMethod", _method),
    rules.always("priorityLevelConfiguration", _LEVEL, default={}),
    rules.each("rules", _RULE),
)


def _defaults(doc: Tree) -> None:
    fill.empty(doc.setdefault("spec", {}), matchingPrecedence=1000)


def _dangling(doc: Tree, now: datetime) -> str:
    dangling = condition(doc, "Dangling")
    return "?" if dangling is None else dangling["status"]


_TABLE = layout(
    NAME,
    Column("PriorityLevel", "PriorityLevelConfigurationReference.name", at("spec.priorityLevelConfiguration.name")),
    Column("MatchingPrecedence", *of_field("FlowSchema", "spec.matchingPrecedence", 0)),
    Column("DistinguisherMethod", "FlowSchemaSpec.distinguisherMethod", at("spec.distinguisherMethod.type", NONE)),
    AGE,
    Column("MissingPL", "references a broken or non-existent PriorityLevelConfiguration", _dangling),
)
KIND = Kind(
    "flowcontrol.apiserver.k8s.io",
    "flowschemas",
    defaults=_defaults,
    strategy=replace(common.STRATEGY, check=_check),
    table=replace(_TABLE, order=lambda doc: (doc["spec"]["matchingPrecedence"], doc["metadata"]["name"])),
)
