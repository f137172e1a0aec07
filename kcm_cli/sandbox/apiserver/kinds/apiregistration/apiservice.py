"""APIService.

Source: kube-aggregator pkg/apis/apiregistration/validation, pkg/registry/apiservice.
"""

import base64
import binascii
from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.apply.resets import SPEC_AND_METADATA
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Context, Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, name_of
from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata

_STATUSES = ("True", "False", "Unknown")
_GROUP_MAX, _VERSION_MAX = 20_000, 1_000


def validate_api_service(doc: Tree) -> Errors:
    spec = doc.get("spec") or {}
    group, version = spec.get("group", ""), spec.get("version", "")
    expected = f"{version}.{group}"

    def rule(name: str, prefix: bool) -> list[str]:
        if messages := names.path_segment(name):
            return messages
        return [] if name == expected else [f'must be `spec.version+"."+spec.group`: {quote(expected)}']

    found = [*metadata.validate_plain_meta(doc["metadata"], False, rule)]
    if not group and version != "v1":
        found.append(errors.required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
    if group:
        found += errors.invalid_each("spec.group", group, names.dns1123_subdomain(group))
    found += errors.invalid_each("spec.version", version, names.dns1035_label(version))
    for field, most in (("groupPriorityMinimum", _GROUP_MAX), ("versionPriority", _VERSION_MAX)):
        value = spec.get(field, 0)
        if not 0 < value <= most:
            found.append(errors.invalid(f"spec.{field}", value, f"must be positive and less than {most}"))
    service = spec.get("service")
    return [*found, *(_local(spec) if service is None else _remote(spec, service))]


def _bundle_size(spec: Tree) -> int:
    try:
        return len(base64.b64decode(spec.get("caBundle") or ""))
    except binascii.Error:
        return 0


def _local(spec: Tree) -> Errors:
    if size := _bundle_size(spec):
        yield errors.invalid("spec.caBundle", f"{size} bytes", "local APIServices may not have a caBundle")
    if spec.get("insecureSkipTLSVerify"):
        yield errors.invalid("spec.insecureSkipTLSVerify", True, "local APIServices may not have insecureSkipTLSVerify")


def _remote(spec: Tree, service: Tree) -> Errors:
    fields = ("namespace", "name")
    yield from (errors.required(f"spec.service.{field}") for field in fields if not service.get(field))
    port = service.get("port", 0)
    if messages := names.port_number(port):
        yield errors.invalid("spec.service.port", port, f"port is not valid: {', '.join(messages)}")
    if spec.get("insecureSkipTLSVerify") and _bundle_size(spec):
        yield errors.invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present")


def validate_api_service_update(new: Tree, old: Tree) -> Errors:
    return [*metadata.validate_plain_meta_update(new["metadata"], old["metadata"]), *validate_api_service(new)]


def validate_api_service_status(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_plain_meta_update(new["metadata"], old["metadata"])
    for index, condition in enumerate((new.get("status") or {}).get("conditions") or ()):
        status, path = condition.get("status", ""), f"status.conditions[{index}].status"
        if status not in _STATUSES:
            yield errors.not_supported(path, status, _STATUSES)


def _defaults(doc: Tree) -> None:
    service = doc.setdefault("spec", {}).get("service")
    if service is not None:
        fill.absent(service, (("port", 443),))


_SERVICE_STATUS_KEEPS = ("labels", "annotations", "finalizers", "ownerReferences")


def _stamp_service(new: Tree, old: Tree | None, context: Context) -> None:
    if old is None and (new.get("spec") or {}).get("service") is None:
        condition = {
            "type": "Available",
            "status": "True",
            "lastTransitionTime": context.now or new["metadata"].get("creationTimestamp"),
            "reason": "Local",
            "message": "Local APIServices are always available",
        }
        new["status"] = {"conditions": [condition]}


def _service_status(new: Tree, old: Tree) -> None:
    keep(new, old, "spec")
    for field in _SERVICE_STATUS_KEEPS:
        keep(new["metadata"], old["metadata"], field)


def _cells(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    service = spec.get("service")
    where = "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"
    state = "Unknown"
    for condition in status.get("conditions") or ():
        if condition["type"] == "Available":
            true = condition.get("status") == "True"
            state = "True" if true else f"{condition.get('status')} ({condition.get('reason', '')})"
    return [name_of(doc), where, state, created(doc, now)]


KIND = Kind(
    "apiregistration.k8s.io",
    "apiservices",
    defaults=_defaults,
    strategy=Strategy(
        namespaced=False,
        on_create=parts.new_with_status({}, generation=False),
        on_update=parts.keep_status,
        on_status=_service_status,
        stamp=_stamp_service,
        needs_version_on_update=True,
        check_create=validate_api_service,
        check_update=validate_api_service_update,
        check_status=validate_api_service_status,
    ),
    table=Layout(
        (
            NAME,
            Column("Service", "The reference to the service that hosts this API endpoint."),
            Column("Available", "Whether this service is available."),
            AGE,
        ),
        _cells,
    ),
    writable={"status": SPEC_AND_METADATA},
)
