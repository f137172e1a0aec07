"""Defaults and strategy of CustomResourceDefinitions.

upstream: apiextensions-apiserver pkg/apis/apiextensions/v1/defaults.go, pkg/registry/customresourcedefinition
"""

from kcm_cli.machinery.patches import copy
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.same import same
from kcm_cli.sandbox.apiserver.crd.checks.definition import validate, validate_status, validate_update
from kcm_cli.sandbox.apiserver.crd.checks.structure import parts
from kcm_cli.sandbox.apiserver.crd.definition import FINALIZER, set_condition
from kcm_cli.sandbox.apiserver.crd.formats import recognized
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, Terminating
from kcm_cli.sandbox.apiserver.types import Tree


def default_definition(doc: Tree) -> None:
    """Fill in the defaults, in place."""
    spec = doc.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.get("kind") or ""
    if not names.get("singular") and kind:
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    if (spec["conversion"].get("webhook") or {}).get("conversionReviewVersions") is None:
        _drop_webhook(spec)
    service = ((spec["conversion"].get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None and service.get("port") is None:
        service["port"] = 443
    status = doc.get("status")
    storage = _storage(doc)
    if storage is not None and status is not None and not status.get("storedVersions"):
        status["storedVersions"] = [storage]


def _drop_webhook(spec: Tree) -> None:
    """Remove a webhook that says nothing, in place, unless there has to be one."""
    conversion = spec["conversion"]
    webhook = conversion.get("webhook") or {}
    said = webhook.get("clientConfig") is not None or webhook.get("conversionReviewVersions")
    if conversion.get("strategy") == "None" and not said:
        conversion.pop("webhook", None)


def _storage(doc: Tree) -> str | None:
    """The name of the storage version (may be empty); None if there is none."""
    return next((one.get("name") or "" for one in doc["spec"].get("versions") or () if one.get("storage")), None)


def _prepare_create(doc: Tree) -> None:
    _drop_webhook(doc["spec"])
    doc["metadata"]["generation"] = 1
    doc["status"] = {"acceptedNames": {"kind": "", "plural": ""}, "conditions": None, "storedVersions": None}
    _store(doc)


def _store(doc: Tree) -> None:
    storage, status = _storage(doc), doc["status"]
    known = status.get("storedVersions") or []
    if storage is not None and storage not in known:
        status["storedVersions"] = [*known, storage]


def _prepare_update(new: Tree, old: Tree) -> None:
    _drop_webhook(new["spec"])
    new["status"] = copy(old.get("status"))
    if not same(new["spec"], old["spec"]):
        new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1
    _store(new)


def _terminate(doc: Tree, policy: str | None, now: str) -> None:
    """Its objects are deleted first, see ``controller``."""
    meta = doc["metadata"]
    meta["deletionTimestamp"] = now
    if FINALIZER not in (meta.get("finalizers") or ()):
        meta["finalizers"] = [*(meta.get("finalizers") or ()), FINALIZER]
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    set_condition(doc, now, "Terminating", "True", "InstanceDeletionPending", message)


def _warnings(new: Tree, old: Tree | None) -> list[str]:
    known = set(_unrecognized(old)) if old is not None else set()
    return [f"unrecognized format {quote(name)}" for name in _unrecognized(new) if name not in known]


def _unrecognized(doc: Tree) -> list[str]:
    found: list[str] = []
    for version in doc["spec"].get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        for part in parts(schema) if schema else ():
            format_ = part.get("format")
            if isinstance(format_, str) and format_ and not recognized(format_, part.get("type") or ""):
                found.append(format_)
    return found


STRATEGY = Strategy(
    names=None,
    namespaced=False,
    on_create=_prepare_create,
    on_update=_prepare_update,
    check=lambda new, old: validate(new) if old is None else validate_update(new, old),
    check_status=validate_status,
    warn=_warnings,
    needs_version_on_update=True,
    terminating=Terminating(_terminate, held=lambda doc: False),
)
