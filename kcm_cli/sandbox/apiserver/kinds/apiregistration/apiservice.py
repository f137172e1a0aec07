"""APIService.

upstream: kube-aggregator pkg/apis/apiregistration/validation, pkg/registry/apiservice
"""

from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.machinery.formats import decoded_base64
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.apply.resets import SPEC_AND_METADATA
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Context, Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, layout, shown
from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata, rules, webhook_clients


def _check(doc: Tree, old: Tree | None) -> Errors:
    spec = doc.get("spec") or {}
    group, version = spec.get("group", ""), spec.get("version", "")
    expected = f"{version}.{group}"

    def rule(name: str, prefix: bool) -> list[str]:
        if messages := names.path_segment(name):
            return messages
        return [] if name == expected else [f'must be `spec.version+"."+spec.group`: {quote(expected)}']

    if old is not None:
        yield from metadata.validate_plain_meta_update(doc["metadata"], old["metadata"])
    yield from metadata.validate_plain_meta(doc["metadata"], False, rule)
    if not group and version != "v1":
        yield errors.required("spec.group", "only v1 may have an empty group and it better be legacy kube")
    yield from _SPEC(spec, "spec")
    yield from _local(spec) if spec.get("service") is None else _remote(spec)


def _priority(most: int) -> rules.Rule:
    return rules.between(1, most, f"must be positive and less than {most}")


_SPEC = rules.fields(
    rules.nonempty("group", rules.SUBDOMAIN),
    rules.always("version", rules.form(names.dns1035_label)),
    rules.always("groupPriorityMinimum", _priority(20_000), default=0),
    rules.always("versionPriority", _priority(1_000), default=0),
)


_SERVICE = rules.fields(rules.required("namespace"), rules.required("name"), webhook_clients.PORT)


def _remote(spec: Tree) -> Errors:
    yield from _SERVICE(spec["service"], "spec.service")
    if spec.get("insecureSkipTLSVerify") and _bundle_size(spec):
        yield errors.invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present")


_STATUS = rules.fields(
    rules.each("conditions", rules.fields(rules.always("status", rules.enum("True", "False", "Unknown"))))
)


def _check_status(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_plain_meta_update(new["metadata"], old["metadata"])
    yield from _STATUS(new.get("status") or {}, "status")


def _bundle_size(spec: Tree) -> int:
    return len(decoded_base64(spec.get("caBundle") or ""))


def _local(spec: Tree) -> Errors:
    if size := _bundle_size(spec):
        yield errors.invalid("spec.caBundle", f"{size} bytes", "local APIServices may not have a caBundle")
    if spec.get("insecureSkipTLSVerify"):
        yield errors.invalid("spec.insecureSkipTLSVerify", True, "local APIServices may not have insecureSkipTLSVerify")


def _defaults(doc: Tree) -> None:
    fill.absent(doc.setdefault("spec", {}).get("service"), port=443)


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
    for field in _SERVICE_STATUS_KEEPS:
        keep(new["metadata"], old["metadata"], field)


def _service(service: Tree) -> str:
    return f"{service.get('namespace', '')}/{service.get('name', '')}"


def _available(doc: Tree, now: datetime) -> str:
    state = "Unknown"
    for condition in (doc.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Available":
            true = condition.get("status") == "True"
            state = "True" if true else f"{condition.get('status')} ({condition.get('reason', '')})"
    return state


KIND = Kind(
    "apiregistration.k8s.io",
    "apiservices",
    defaults=_defaults,
    strategy=Strategy(
        names=None,
        new_status={},
        on_status=_service_status,
        stamp=_stamp_service,
        needs_version_on_update=True,
        check=_check,
        check_status=_check_status,
    ),
    etcd="apiregistration.k8s.io/apiservices",
    table=layout(
        NAME,
        Column(
            "Service",
            "The reference to the service that hosts this API endpoint.",
            shown("spec.service", "Local", _service),
        ),
        Column("Available", "Whether this service is available.", _available),
        AGE,
    ),
    writable={"status": SPEC_AND_METADATA},
)
