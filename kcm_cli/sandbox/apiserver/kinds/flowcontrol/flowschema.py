"""FlowSchema.

Source: pkg/apis/flowcontrol/v1/defaults.go, pkg/apis/flowcontrol/validation,
pkg/registry/flowcontrol/flowschema/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.apply.resets import SPEC_AND_METADATA
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.flowcontrol import common
from kcm_cli.sandbox.apiserver.kinds.flowcontrol.common import PRECEDENCE_MAX, validate_conditions, validate_fixed
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, name_of
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_METHODS = ("ByNamespace", "ByUser")
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_NAMESPACE = "each member of this list must be '*' or a DNS-1123 label; "


def validate_flow(doc: Tree) -> Errors:
    meta, spec = doc["metadata"], doc.get("spec") or {}
    yield from metadata.validate_meta(meta, False, metadata.subdomain)
    yield from _precedence(spec.get("matchingPrecedence", 0), meta.get("name", ""))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in _METHODS:
        shown = {"Type": method.get("type", "")}
        yield errors.not_supported("spec.distinguisherMethod.type", shown, _METHODS)
    level = (spec.get("priorityLevelConfiguration") or {}).get("name", "")
    path = "spec.priorityLevelConfiguration.name"
    if level:
        yield from errors.invalid_each(path, level, names.dns1123_subdomain(level))
    else:
        yield errors.required(path, "must reference a priority level")
    for index, rule in enumerate(spec.get("rules") or ()):
        yield from _rule(rule, f"spec.rules[{index}]")
    yield from validate_fixed(meta.get("name", ""), "FlowSchema", spec)
    yield from validate_conditions(doc)


def _precedence(value: int, name: str) -> Errors:
    path = "spec.matchingPrecedence"
    if value <= 0:
        return [errors.invalid(path, value, "must be a positive value")]
    if value > PRECEDENCE_MAX:
        return [errors.invalid(path, value, f"must not be greater than {PRECEDENCE_MAX}")]
    if value == 1 and name != "exempt":
        return [errors.invalid(path, value, "only the schema named 'exempt' may have matchingPrecedence 1")]
    return []


def validate_flow_update(new: Tree, old: Tree) -> Errors:
    return validate_flow(new)


def _rule(rule: Tree, path: str) -> Errors:
    subjects = rule.get("subjects") or ()
    if not subjects:
        yield errors.required(f"{path}.subjects", "subjects must contain at least one value")
    for index, subject in enumerate(subjects):
        yield from _subject(subject, f"{path}.subjects[{index}]")
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        yield errors.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for index, item in enumerate(rule.get("resourceRules") or ()):
        yield from _resource_rule(item, f"{path}.resourceRules[{index}]")
    for index, item in enumerate(rule.get("nonResourceRules") or ()):
        yield from _url_rule(item, f"{path}.nonResourceRules[{index}]")


def _subject(subject: Tree, path: str) -> Errors:
    kind = subject.get("kind", "")
    field = _SUBJECTS.get(kind)
    if field is None:
        yield errors.not_supported(f"{path}.kind", kind, tuple(_SUBJECTS))
        return
    yield from _named(kind, field, subject.get(field), f"{path}.{field}")
    for other in ("ServiceAccount", "User", "Group"):
        name = _SUBJECTS[other]
        if other != kind and subject.get(name) is not None:
            yield errors.forbidden(f"{path}.{name}", f"{name} is forbidden when subject kind is not '{other}'")


def _named(kind: str, field: str, holder: Tree | None, path: str) -> Errors:
    if holder is None:
        yield errors.required(path, f"{field} is required when subject kind is '{kind}'")
        return
    name = holder.get("name", "")
    if not name:
        yield errors.required(f"{path}.name")
    if kind != "ServiceAccount":
        return
    if name and name != "*":
        yield from errors.invalid_each(f"{path}.name", name, names.dns1123_subdomain(name))
    namespace = holder.get("namespace", "")
    if not namespace:
        yield errors.required(f"{path}.namespace", "must specify namespace for service account")
        return
    yield from errors.invalid_each(f"{path}.namespace", namespace, names.dns1123_label(namespace))


def _verbs(verbs: list[str], path: str) -> Errors:
    if not verbs:
        return [errors.required(path, "verbs must contain at least one value")]
    if "*" in verbs:
        return _alone(verbs, "verbs", path)
    return [] if set(verbs) <= set(_VERBS) else [errors.not_supported(path, verbs, _VERBS)]


def _alone(values: list[str], what: str, path: str) -> Errors:
    if "*" not in values or len(values) == 1:
        return []
    return [errors.invalid(path, values, f"if '*' is present, must not specify other {what}")]


def _resource_rule(rule: Tree, path: str) -> Errors:
    yield from _verbs(rule.get("verbs") or [], f"{path}.verbs")
    for field, one, many in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        values, place = rule.get(field) or [], f"{path}.{field}"
        if values:
            yield from _alone(values, many, place)
        else:
            yield errors.required(place, f"resource rules must supply at least one {one}")
    namespaces, place = rule.get("namespaces") or [], f"{path}.namespaces"
    if not namespaces and not rule.get("clusterScope"):
        yield errors.required(place, "resource rules that are not cluster scoped must supply at least one namespace")
        return
    if "*" in namespaces:
        yield from _alone(namespaces, "namespaces", place)
        return
    for index, name in enumerate(namespaces):
        details = [f"{_NAMESPACE}{message}" for message in names.dns1123_label(name)]
        yield from errors.invalid_each(f"{place}[{index}]", name, details)


def _url_rule(rule: Tree, path: str) -> Errors:
    yield from _verbs(rule.get("verbs") or [], f"{path}.verbs")
    urls, place = rule.get("nonResourceURLs") or [], f"{path}.nonResourceURLs"
    if not urls:
        yield errors.required(place, "nonResourceURLs must contain at least one value")
        return
    if "*" in urls:
        yield from _alone(urls, "non-resource URLs", place)
        return
    for index, url in enumerate(urls):
        if problem := _url_problem(url):
            yield errors.invalid(f"{place}[{index}]", url, problem)


def _url_problem(url: str) -> str:
    if not url:
        return "must not be empty"
    if url == "/":
        return ""
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    stars = url.count("*")
    return "wildcard can only do suffix matching" if stars > 1 or (stars and not url.endswith("/*")) else ""


def _defaults(doc: Tree) -> None:
    fill.empty(doc.setdefault("spec", {}), (("matchingPrecedence", 1000),))


def _cells(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    method = spec.get("distinguisherMethod")
    dangling = next((one["status"] for one in status.get("conditions") or () if one["type"] == "Dangling"), "?")
    return [
        name_of(doc),
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        NONE if method is None else method["type"],
        created(doc, now),
        dangling,
    ]


KIND = Kind(
    "flowcontrol.apiserver.k8s.io",
    "flowschemas",
    defaults=_defaults,
    strategy=Strategy(
        namespaced=False,
        on_create=parts.new_with_status({}, generation=True),
        on_update=parts.spec_update,
        on_status=common.whole_metadata_status,
        check_create=validate_flow,
        check_update=validate_flow_update,
        check_status=common.validate_status,
    ),
    table=Layout(
        (
            NAME,
            Column("PriorityLevel", "PriorityLevelConfigurationReference.name"),
            Column("MatchingPrecedence", "FlowSchemaSpec.matchingPrecedence"),
            Column("DistinguisherMethod", "FlowSchemaSpec.distinguisherMethod"),
            AGE,
            Column("MissingPL", "references a broken or non-existent PriorityLevelConfiguration"),
        ),
        _cells,
    ),
    writable={"status": SPEC_AND_METADATA},
)
