"""PersistentVolumeClaim.

upstream: pkg/apis/core/v1/defaults.go, pkg/apis/core/validation,
pkg/registry/core/persistentvolumeclaim/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.api.well_known import BETA_STORAGE_CLASS
from kcm_cli.machinery import names
from kcm_cli.machinery.quantity import ZERO, from_json
from kcm_cli.sandbox.apiserver.defaulting import volumes
from kcm_cli.sandbox.apiserver.kinds.core import common
from kcm_cli.sandbox.apiserver.kinds.core.common import CLASS_TEXT, class_of, modes_at, phase
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings.storage import of_claim_spec
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, UNSET, Cell, Column, at, layout, of_field, wide
from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, rules
from kcm_cli.sandbox.apiserver.validation.persistent_claim import validate_claim_spec

_RESIZES = (
    *("ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible"),
    "NodeResizePending",
)


def _check(doc: Tree, old: Tree | None) -> Errors:
    known = {} if old is None else old["spec"]
    sources = (known.get("dataSource") or {}, known.get("dataSourceRef") or {})
    return validate_claim_spec(
        doc["spec"],
        "spec",
        lenient_selector=any(labels.validate_selector(known.get("selector"), "")),
        lenient_groups=any(source.get("apiGroup") is not None for source in sources),
    )


def _check_change(new: Tree, old: Tree) -> Errors:
    yield from _immutable_spec(new, old)
    yield from _shrunk(new, old)
    yield from errors.fixed("volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))
    yield from _class_removed(new, old)


_SPEC_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _immutable_spec(new: Tree, old: Tree) -> Errors:
    spec, known = dict(new["spec"]), dict(old["spec"])
    if not known.get("volumeName"):
        keep(known, spec, "volumeName")
    yield from _storage_class(new, old, spec)
    if (new.get("status") or {}).get("phase") == "Bound":
        resources = dict(spec.get("resources") or {})
        if "requests" in resources:
            resources["requests"] = dict(resources["requests"])
            resources["requests"]["storage"] = _requested(old)
            spec["resources"] = resources
        keep(spec, known, "volumeAttributesClassName")
    if spec != known:
        difference = go_print.diff("v1.PersistentVolumeClaimSpec", known, spec)
        yield errors.forbidden("spec", f"{_SPEC_FIXED}\n{difference}")


def _storage_class(new: Tree, old: Tree, spec: Tree) -> Errors:
    """Check that the class changes only from the beta annotation to the field, or from unset."""
    before = (old["metadata"].get("annotations") or {}).get(BETA_STORAGE_CLASS)
    after = (new["metadata"].get("annotations") or {}).get(BETA_STORAGE_CLASS)
    name = new["spec"].get("storageClassName")
    unset = old["spec"].get("storageClassName") is None
    if before is not None and unset and name == before and after in (None, before):
        spec.pop("storageClassName", None)
        return []
    if unset and name is not None and before in (None, name):
        spec.pop("storageClassName", None)
    if (before or "") == (after or ""):
        return []
    return [errors.invalid(f"metadata.annotations.{BETA_STORAGE_CLASS}", after or "", errors.IMMUTABLE)]


def _requested(doc: Tree) -> str:
    return str(((doc["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))


def _shrunk(new: Tree, old: Tree) -> Errors:
    size = from_json(_requested(new))
    if size >= from_json(_requested(old)):
        return []
    capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage")
    if size > (ZERO if capacity is None else from_json(capacity)):
        return []
    return [errors.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")]


def _class_removed(new: Tree, old: Tree) -> Errors:
    name = new["spec"].get("volumeAttributesClassName")
    current = (old.get("status") or {}).get("currentVolumeAttributesClassName")
    if name or current is None or name == old["spec"].get("volumeAttributesClassName"):
        return []
    what = "nil" if name is None else "empty string"
    detail = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    return [errors.forbidden("spec.volumeAttributesClassName", detail)]


def _check_status(new: Tree, old: Tree) -> Errors:
    yield from common.needs_version(new, old)
    if not new["spec"].get("accessModes"):
        yield errors.required("Spec.accessModes")
    yield from _STATUS(new.get("status") or {}, "status")


def _capacity(capacity: Tree, path: str) -> Errors:
    for name, value in sorted(capacity.items()):
        yield from common.basic(value, f"{path}[{name}]")


def _resizes(states: Tree, path: str) -> Errors:
    for name, state in sorted(states.items()):
        yield from _resource_key(name, path)
        if state not in _RESIZES:
            yield errors.not_supported(path, name, _RESIZES)


def _allocated(amounts: Tree, path: str) -> Errors:
    for name, value in sorted(amounts.items()):
        yield from _resource_key(name, path) or common.basic(value, f"{path}[{name}]")


_STATUS = rules.fields(
    rules.optional("capacity", _capacity),
    rules.optional("allocatedResourceStatuses", _resizes),
    rules.optional("allocatedResources", _allocated),
)


def _resource_key(name: str, path: str) -> list[FieldError]:
    if messages := labels.key_messages(name):
        return errors.invalid_each(path, name, messages)
    if names.is_native_resource(name) and name != "storage":
        return [errors.not_supported(path, name, ["storage"])]
    return []


def of_claim(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a PersistentVolumeClaim."""
    found: list[str] = []
    if BETA_STORAGE_CLASS in (new["metadata"].get("annotations") or ()):
        found.append(f"metadata.annotations[{BETA_STORAGE_CLASS}]: {CLASS_TEXT}")
    return found + of_claim_spec(new["spec"], "spec")


_SNAPSHOTS = "snapshot.storage.k8s.io"


def _settle_sources(spec: Tree, known: Tree) -> None:
    """``known``: the old spec, empty for a new claim."""
    _drop_foreign_namespace(spec, known)
    in_use = known.get("dataSource") is not None or known.get("dataSourceRef") is not None
    if not in_use and spec.get("dataSourceRef") is None and not _known_source(spec.get("dataSource")):
        spec.pop("dataSource", None)
    normalize_sources(spec)


def _drop_foreign_namespace(spec: Tree, known: Tree) -> None:
    """Drop sources in other namespaces: the gate CrossNamespaceVolumeDataSource is off."""
    reference = spec.get("dataSourceRef")
    if reference is not None and reference.get("namespace") and known.get("dataSourceRef") is None:
        del spec["dataSourceRef"]


def _known_source(source: Tree | None) -> bool:
    if source is None:
        return False
    kind, group = source.get("kind"), source.get("apiGroup") or ""
    return (kind, group) in (("PersistentVolumeClaim", ""), ("VolumeSnapshot", _SNAPSHOTS))


def normalize_sources(spec: Tree) -> None:
    """Make ``dataSource`` and ``dataSourceRef`` consistent if a client set one of them."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = _copied(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = _copied(reference)


def _copied(source: Tree) -> Tree:
    return {"apiGroup": source.get("apiGroup"), "kind": source.get("kind", ""), "name": source.get("name", "")}


def _pend(doc: Tree) -> None:
    """The phase of a claim without one is Pending. Admission does not see it."""
    doc["status"] = {"phase": "Pending", **(doc.get("status") or {})}


def _if_bound(cell: Cell) -> Cell:
    return lambda doc, now: cell(doc, now) if (doc.get("spec") or {}).get("volumeName") else ""


_STATUS_TYPE = "PersistentVolumeClaimStatus"

KIND = Kind(
    "",
    "persistentvolumeclaims",
    defaults=volumes.claim,
    strategy=Strategy(
        new_status={},
        on_create=lambda doc: _settle_sources(doc["spec"], {}),
        on_update=lambda new, old: _settle_sources(new["spec"], old["spec"]),
        check=_check,
        check_change=_check_change,
        update_steps=("metadata", "name", "rules", "change"),
        check_status=_check_status,
        on_read=_pend,
        completes_on_read=lambda doc: True,
        returns_object_on_delete=True,
        warn=of_claim,
    ),
    table=layout(
        NAME,
        Column("Status", f"{_STATUS_TYPE}.phase", phase),
        Column("Volume", *of_field("PersistentVolumeClaim", "spec.volumeName")),
        Column("Capacity", f"{_STATUS_TYPE}.capacity", _if_bound(at("status.capacity.storage", "0"))),
        Column("Access Modes", f"{_STATUS_TYPE}.accessModes", _if_bound(modes_at("status.accessModes"))),
        Column("StorageClass", "StorageClass of the pvc", class_of),
        Column(
            "VolumeAttributesClass", "VolumeAttributesClass of the pvc", at("spec.volumeAttributesClassName", UNSET)
        ),
        AGE,
        wide("VolumeMode", *of_field("PersistentVolumeClaim", "spec.volumeMode", UNSET)),
    ),
)
