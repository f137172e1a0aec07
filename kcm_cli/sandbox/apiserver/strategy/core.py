"""Strategies of the core kinds that are neither pods nor workloads nor services.

Source: pkg/registry/core/*/strategy.go.
"""

from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings import nodes, others
from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation import core, endpoints, events, limits, node

_FINALIZER = "kubernetes"
_ENFORCE = "kubernetes.io/enforce-mountable-secrets"
_NAME_LABEL = "kubernetes.io/metadata.name"


def _new_namespace(doc: Tree) -> None:
    doc["status"] = {"phase": "Active"}
    spec = doc.setdefault("spec", {})
    finalizers = spec.get("finalizers") or []
    if _FINALIZER not in finalizers:
        spec["finalizers"] = [*finalizers, _FINALIZER]
    _name_label(doc)


def _namespace_update(new: Tree, old: Tree) -> None:
    parts.keep_status(new, old)
    keep(new.setdefault("spec", {}), old.get("spec") or {}, "finalizers")
    _name_label(new)


def _name_label(doc: Tree) -> None:
    meta = doc["metadata"]
    meta["labels"] = {**(meta.get("labels") or {}), _NAME_LABEL: meta.get("name", "")}


def _namespace_status(new: Tree, old: Tree) -> None:
    parts.status_update(new, old)
    _name_label(new)


def _namespace_finalize(new: Tree, old: Tree) -> None:
    parts.keep_status(new, old)
    _name_label(new)


def _drop_immutable_secret(new: Tree, old: Tree) -> None:
    if not new.get("type"):
        new["type"] = old.get("type", "")


def _new_service_account(doc: Tree) -> None:
    for secret in doc.get("secrets") or ():
        for field in tuple(secret):
            if field != "name":
                del secret[field]


def _service_account_update(new: Tree, old: Tree) -> None:
    _new_service_account(new)


def _warn_service_account(new: Tree, old: Tree | None) -> list[str]:
    if old is not None and _ENFORCE in (old["metadata"].get("annotations") or {}):
        return []
    if _ENFORCE not in (new["metadata"].get("annotations") or {}):
        return []
    advice = "prefer separate namespaces to isolate access to mounted secrets"
    return [f"metadata.annotations[{_ENFORCE}]: deprecated in v1.32+; {advice}"]


def _new_limit_range(doc: Tree) -> None:
    meta = doc["metadata"]
    if not meta.get("name"):
        meta["name"] = meta.get("uid", "")


def _new_node(doc: Tree) -> None:
    doc.setdefault("spec", {}).pop("configSource", None)
    doc.setdefault("status", {}).pop("config", None)


def _node_update(new: Tree, old: Tree) -> None:
    parts.keep_status(new, old)
    if (old.get("spec") or {}).get("configSource") is None:
        new.setdefault("spec", {}).pop("configSource", None)


def _node_status(new: Tree, old: Tree) -> None:
    parts.status_update(new, old)
    if (old.get("status") or {}).get("config") is None:
        new.setdefault("status", {}).pop("config", None)


NAMESPACE = Strategy(
    namespaced=False,
    on_create=_new_namespace,
    on_update=_namespace_update,
    on_status=_namespace_status,
    check_create=core.validate_namespace,
    check_update=core.validate_namespace_update,
    check_status=core.validate_namespace_status,
    returns_object_on_delete=True,
)
NAMESPACE_FINALIZE = Strategy(
    namespaced=False,
    on_update=_namespace_finalize,
    check_update=core.validate_namespace_finalize,
)
CONFIG_MAP = Strategy(
    check_create=core.validate_config_map,
    check_update=core.validate_config_map_update,
)
SECRET = Strategy(
    on_update=_drop_immutable_secret,
    check_create=core.validate_secret,
    check_update=core.validate_secret_update,
    warn=others.of_secret,
)
SERVICE_ACCOUNT = Strategy(
    on_create=_new_service_account,
    on_update=_service_account_update,
    check_create=core.validate_service_account,
    check_update=core.validate_service_account_update,
    warn=_warn_service_account,
    returns_object_on_delete=True,
)
NODE = Strategy(
    namespaced=False,
    on_create=_new_node,
    on_update=_node_update,
    on_status=_node_status,
    check_create=node.validate_node,
    check_update=node.validate_node_update,
    check_status=node.validate_node_status,
    warn=nodes.of_node,
)
ENDPOINTS = Strategy(
    creates_on_update=True,
    check_create=endpoints.validate_endpoints,
    check_update=endpoints.validate_endpoints_update,
    warn=others.of_endpoints,
)
EVENT = Strategy(
    creates_on_update=True,
    check_create=events.validate_event,
    check_update=events.validate_event_update,
)
GROUP_EVENT = Strategy(
    creates_on_update=True,
    check_create=events.validate_group_event,
    check_update=events.validate_group_event_update,
)
LIMIT_RANGE = Strategy(
    on_create=_new_limit_range,
    creates_on_update=True,
    check_create=limits.validate_limit_range,
    check_update=limits.validate_limit_range_update,
)
RESOURCE_QUOTA = Strategy(
    on_create=parts.new_with_status({}, generation=False),
    on_update=parts.keep_status,
    on_status=parts.status_update,
    returns_object_on_delete=True,
    check_create=limits.validate_quota,
    check_update=limits.validate_quota_update,
    check_status=limits.validate_quota_status,
    warn=others.of_quota,
)
