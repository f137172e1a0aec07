"""Node.

upstream: pkg/apis/core/v1/defaults.go, pkg/apis/core/validation,
pkg/registry/core/node/strategy.go, pkg/printers/internalversion/printers.go
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kcm_cli.machinery import names
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.defaulting import resources
from kcm_cli.sandbox.apiserver.kinds.core import proxies
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.schema import gojson, strict
from kcm_cli.sandbox.apiserver.selectable import Selectable
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Cell, Column, at, layout, wide
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.trees import each_at
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import (
    addresses,
    errors,
    go_print,
    labels,
    metadata,
    quantities,
    rules,
    scheduling,
)
from kcm_cli.sandbox.apiserver.validation.addresses import cidr_warnings

_AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_TAINTS = "scheduler.alpha.kubernetes.io/taints"
_ONE_FAMILY = "may specify no more than one CIDR for each IP family"
_FIXED = 'node updates may not change {} except from "" to valid'
_feature = re.compile(r"[A-Z][A-Za-z0-9]*(/[A-Za-z0-9]+)*").fullmatch
_FEATURE = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
    "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)


def _check(doc: Tree, old: Tree | None) -> Errors:
    yield from _annotations(doc["metadata"].get("annotations") or {})
    yield from _taints((doc.get("spec") or {}).get("taints") or [], "metadata.taints")
    status = doc.get("status") or {}
    yield from _RESOURCES(status, "status")
    swap = ((status.get("nodeInfo") or {}).get("swap") or {}).get("capacity")
    if swap is not None and swap <= 0:
        yield errors.invalid("metadata.nodeSwapStatus.capacity", swap, errors.NOT_POSITIVE)
    yield from _FEATURES(status, "status")
    yield from _blocks((doc.get("spec") or {}).get("podCIDRs") or [])


def _taints(taints: list[Tree], path: str) -> Errors:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        yield from _TAINT(taint, f"{path}[{index}]")
        key = (taint.get("key", ""), taint.get("effect", ""))
        if key in seen:
            shown = go_print.internal("core.Taint", taint)
            yield errors.duplicate(f"{path}[{index}]", shown, "taints must be unique by key and effect pair")
        seen.add(key)


_TAINT = rules.fields(
    rules.always("key", labels.validate_key),
    rules.optional("value", rules.form(labels.value_messages, separator=";")),
    rules.required("effect", scheduling.TAINT_EFFECT),
)


def _amounts(amounts: Mapping[str, str], path: str) -> Errors:
    for name, amount in amounts.items():
        yield from quantities.amount(name, amount, f"{path}.{name}")


_RESOURCES = rules.fields(rules.optional("capacity", _amounts), rules.optional("allocatable", _amounts))


def _annotations(annotations: Mapping[str, str]) -> Errors:
    path = "metadata.annotations"
    if text := annotations.get(_TAINTS):
        taints, why = _json(text, list, "[]v1.Taint")
        if why:
            yield errors.invalid(path, _TAINTS, why)
        else:
            yield from _taints(taints, f"{path}.{_TAINTS}")
    if text := annotations.get(_AVOID_PODS):
        avoids, why = _json(text, dict, "v1.AvoidPods")
        if why:
            yield errors.invalid(f"{path}.AvoidPods", _AVOID_PODS, why)
            return
        for index, entry in enumerate(avoids.get("preferAvoidPods") or ()):
            yield from _avoided(entry, f"{path}.{_AVOID_PODS}[{index}].PodSignature")


def _json(text: str, expected: type, go: str) -> tuple[Any, str]:
    """The JSON value in an annotation, and the error of Go's decoder."""
    if problem := gojson.syntax_error(text):
        return None, problem
    try:
        value = json.loads(text)
    except RecursionError:
        return None, "exceeded max depth"
    return (value, "") if isinstance(value, expected) else (None, strict.unreadable(value, go))


def _avoided(entry: Tree, path: str) -> Errors:
    controller = (entry.get("podSignature") or {}).get("podController")
    if controller is None:
        return [errors.required(path)]
    if controller.get("controller"):
        return []
    return [errors.invalid(f"{path}.PodController.Controller", False, "must point to a controller")]


def _feature_problem(name: str) -> list[str]:
    start = f"invalid feature name {quote(name)}: "
    if len(name) > names.SUBDOMAIN_MAX:
        return [f"{start}must be no more than {names.SUBDOMAIN_MAX} characters"]
    return [] if _feature(name) else [start + _FEATURE]


def _features(features: list[str], path: str) -> Errors:
    for index, name in enumerate(features):
        place, before = f"{path}[{index}]", features[index - 1] if index else ""
        if index and before == name:
            yield errors.duplicate(place, name)
        elif before > name:
            yield errors.invalid(place, name, "list must be sorted alphabetically")
        yield from errors.invalid_each(place, name, _feature_problem(name))


_FEATURES = rules.fields(rules.optional("declaredFeatures", _features))


def _blocks(blocks: list[str]) -> Errors:
    path = "spec.podCIDRs"
    for index, block in enumerate(blocks):
        yield from addresses.legacy_cidr(block, f"{path}[{index}]")
    if len(blocks) > 1:
        parsed = [addresses.parse_cidr(block) for block in blocks]
        wrong = next((block for block, item in zip(blocks, parsed, strict=True) if item is None), None)
        if wrong is not None:
            text = f"invalid CIDR[{blocks.index(wrong)}]: <nil> (invalid CIDR address: {wrong})"
            yield errors.internal(path, f"invalid PodCIDRs. failed to check with dual stack with error:{text}")
        versions = {item[1].version for item in parsed if item is not None}
        if wrong is not None or len(versions) < 2 or len(blocks) > 2:
            yield errors.invalid(path, blocks, _ONE_FAMILY)


def _check_status(new: Tree, old: Tree) -> Errors:
    """Check an update of the object or of its status."""
    spec, known = new.get("spec") or {}, old.get("spec") or {}
    status = new.get("status") or {}
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    yield from _annotations(new["metadata"].get("annotations") or {})
    yield from _RESOURCES(status, "status")
    yield from _FEATURES(status, "status")
    seen: list[Tree] = []
    for index, address in enumerate(status.get("addresses") or ()):
        if address in seen:
            shown = go_print.internal("core.NodeAddress", address)
            yield errors.duplicate(f"status.addresses[{index}]", shown)
        seen.append(address)
    yield from _unchanged(spec, known)
    yield from _IN_SPEC(spec, "spec")
    yield from _IN_STATUS(status, "status")
    yield from _taints(spec.get("taints") or [], "metadata.taints")
    if spec.get("externalID", "") != known.get("externalID", ""):
        yield errors.forbidden("spec.externalID", "may not be updated")


def _unchanged(spec: Tree, known: Tree) -> Errors:
    blocks, before = spec.get("podCIDRs") or [], known.get("podCIDRs") or []
    if before:
        changed = [old for new, old in zip(blocks, before, strict=False) if new != old]
        count = len(changed) if len(blocks) == len(before) else 1
        yield from [errors.forbidden("spec.podCIDRs", _FIXED.format("podCIDR"))] * count
    provider = known.get("providerID", "")
    if provider and spec.get("providerID", "") != provider:
        yield errors.forbidden("spec.providerID", _FIXED.format("providerID"))


def _config_source(*versions: rules.Field) -> rules.Rule:
    config = rules.fields(
        *versions,
        rules.required("namespace", rules.LABEL),
        rules.required("name", rules.SUBDOMAIN),
        rules.required("kubeletConfigKey", rules.form(names.config_map_key)),
    )

    def check(source: Tree, path: str) -> Errors:
        if source.get("configMap") is None:
            return [errors.invalid(path, {"ConfigMap": None}, "exactly one reference subfield must be non-nil")]
        return config(source["configMap"], f"{path}.configMap")

    return check


_IN_SPEC = rules.fields(
    rules.optional(
        "configSource",
        _config_source(
            *(rules.forbidden(name, f"{name} must not be set in spec") for name in ("uid", "resourceVersion"))
        ),
    ),
)
_CONFIG = _config_source(rules.required("uid"), rules.required("resourceVersion"))
_IN_STATUS = rules.fields(
    rules.optional(
        "config", rules.fields(*(rules.optional(name, _CONFIG) for name in ("assigned", "active", "lastKnownGood")))
    ),
)


def _defaults(doc: Tree) -> None:
    spec, status = doc.setdefault("spec", {}), doc.setdefault("status", {})
    if block := spec.get("podCIDR"):
        if not spec.get("podCIDRs") or spec["podCIDRs"][0] != block:
            spec["podCIDRs"] = [block]
    elif blocks := spec.get("podCIDRs"):
        spec["podCIDR"] = blocks[0]
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = dict(status["capacity"])
    resources.resource_list(status.get("capacity"))
    resources.resource_list(status.get("allocatable"))


def of_node(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a Node."""
    spec = new.get("spec") or {}
    found: list[str] = []
    if spec.get("configSource") is not None:
        found.append("spec.configSource: the feature is removed")
    if spec.get("externalID"):
        found.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    return found + each_at(cidr_warnings, spec, "podCIDRs[]", "spec")


_UNKNOWN = "<unknown>"


def _state(doc: Tree, now: datetime) -> str:
    conditions = (doc.get("status") or {}).get("conditions") or ()
    ready = ["Ready" if one["status"] == "True" else "NotReady" for one in conditions if one["type"] == "Ready"]
    word = ready[-1] if ready else "Unknown"
    return f"{word},SchedulingDisabled" if (doc.get("spec") or {}).get("unschedulable") else word


def _roles(doc: Tree, now: datetime) -> str:
    prefix, roles = "node-role.kubernetes.io/", set()
    for key, value in (doc["metadata"].get("labels") or {}).items():
        if key.startswith(prefix):
            roles.add(key.removeprefix(prefix))
        elif key == "kubernetes.io/role":
            roles.add(value)
    return ",".join(sorted(roles - {""})) or NONE


def _address(kind: str) -> Cell:
    found = at("status.addresses", ())
    return lambda doc, now: next((one["address"] for one in found(doc, now) if one["type"] == kind), NONE)


def _kernel(doc: Tree, now: datetime) -> str:
    about = (doc.get("status") or {}).get("nodeInfo") or {}
    architecture = f" ({about['architecture']})" if about.get("architecture") else ""
    return f"{about.get('kernelVersion') or _UNKNOWN}{architecture}"


KIND = Kind(
    "",
    "nodes",
    defaults=_defaults,
    strategy=Strategy(
        gated=("spec.configSource", "status.config"),  # DynamicKubeletConfig
        check=_check,
        check_change=_check_status,
        update_steps=("name", "rules", "change"),
        check_status=_check_status,
        warn=of_node,
    ),
    handlers={"proxy": proxies.of_node},
    etcd="minions",
    table=layout(
        NAME,
        Column("Status", "The status of the node", _state),
        Column("Roles", "The roles of the node", _roles),
        AGE,
        Column("Version", "NodeSystemInfo.kubeletVersion", at("status.nodeInfo.kubeletVersion")),
        wide("Internal-IP", "NodeStatus.addresses", _address("InternalIP")),
        wide("External-IP", "NodeStatus.addresses", _address("ExternalIP")),
        wide("OS-Image", "NodeSystemInfo.osImage", at("status.nodeInfo.osImage", _UNKNOWN)),
        wide("Kernel-Version", "NodeSystemInfo.kernelVersion", _kernel),
        wide(
            "Container-Runtime",
            "NodeSystemInfo.containerRuntimeVersion",
            at("status.nodeInfo.containerRuntimeVersion", _UNKNOWN),
        ),
    ),
    selectable=Selectable(
        {"spec.unschedulable": "spec.unschedulable"}, absent={"spec.unschedulable": "false"}, namespace=False
    ),
)
