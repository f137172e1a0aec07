"""CSIDriver.

Source: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation,
pkg/registry/storage/csidriver/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, UNSET, Column, Layout, created, flag, name_of
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata

_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES = ("Persistent", "Ephemeral")
_MIN_TOKEN_S, _MAX_TOKEN_S = 600, 2**32
_MIN_PERIOD_S = 10


def validate_driver(doc: Tree) -> Errors:
    return [*metadata.validate_meta(doc["metadata"], False, metadata.subdomain), *_driver_spec(doc["spec"])]


def validate_driver_update(new: Tree, old: Tree) -> Errors:
    spec, known = new["spec"], old["spec"]
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    yield from _driver_spec(spec)
    yield from errors.fixed("spec.attachedRequired", spec.get("attachRequired"), known.get("attachRequired"))
    modes, before = spec.get("volumeLifecycleModes"), known.get("volumeLifecycleModes")
    yield from errors.fixed("spec.volumeLifecycleModes", modes, before)


def _driver_spec(spec: Tree) -> Errors:
    for field, shown in (
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ):
        if spec.get(field) is None:
            yield errors.required(f"spec.{shown}")
    policy = spec.get("fsGroupPolicy")
    if policy is not None and policy not in _GROUP_POLICIES:
        yield errors.not_supported("spec.fsGroupPolicy", policy, _GROUP_POLICIES)
    tokens = spec.get("tokenRequests") or []
    yield from _tokens(tokens, "spec.tokenRequests")
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in _LIFECYCLES:
            yield errors.not_supported("spec.volumeLifecycleModes", mode, _LIFECYCLES)
    if spec.get("seLinuxMount") is None:
        yield errors.required("spec.seLinuxMount")
    period_s = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period_s is not None and period_s < _MIN_PERIOD_S:
        detail = f"must be greater than or equal to {_MIN_PERIOD_S} seconds"
        yield errors.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period_s, detail)
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not tokens:
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield errors.invalid("spec.serviceAccountTokenInSecrets", in_secrets, detail)


def _tokens(requests: list[Tree], path: str) -> Errors:
    seen: set[str] = set()
    for index, request in enumerate(requests):
        audience, seconds = request.get("audience", ""), request.get("expirationSeconds")
        if audience in seen:
            yield errors.duplicate(f"{path}[{index}].audience", audience)
            continue
        seen.add(audience)
        place = f"{path}[{index}].expirationSeconds"
        if seconds is not None and seconds < _MIN_TOKEN_S:
            yield errors.invalid(place, seconds, "may not specify a duration less than 10 minutes")
        if seconds is not None and seconds > _MAX_TOKEN_S:
            yield errors.invalid(place, seconds, "may not specify a duration larger than 2^32 seconds")


_CSI_DRIVER = (
    ("attachRequired", True),
    ("podInfoOnMount", False),
    ("storageCapacity", False),
    ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
    ("requiresRepublish", False),
    ("seLinuxMount", False),
)


def _defaults(doc: Tree) -> None:
    spec = doc.setdefault("spec", {})
    fill.absent(spec, _CSI_DRIVER)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


_TOKENS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, "
    "set to true to prevent possible logging of tokens in volume attributes"
)


def of_driver(new: Tree, old: Tree | None) -> list[str]:
    """A CSIDriver; an update only if its token requests change."""
    requests = new["spec"].get("tokenRequests")
    changed = old is None or requests != old["spec"].get("tokenRequests")
    unset = new["spec"].get("serviceAccountTokenInSecrets") is None
    return [_TOKENS] if requests and changed and unset else []


_GATED_OF_DRIVER = "preventPodSchedulingIfMissing"  # by VolumeLimitScaling


def _drop_gated_of_driver(doc: Tree) -> None:
    doc["spec"].pop(_GATED_OF_DRIVER, None)


def _driver_update(new: Tree, old: Tree) -> None:
    if old["spec"].get(_GATED_OF_DRIVER) is None:
        _drop_gated_of_driver(new)
    parts.bump_if_spec_changed(new, old)


def _cells(doc: Tree, now: datetime) -> list[object]:
    spec = doc.get("spec") or {}
    requests = spec.get("tokenRequests")
    return [
        name_of(doc),
        spec.get("attachRequired", True),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if requests is None else ",".join(one.get("audience", "") for one in requests),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        created(doc, now),
    ]


KIND = Kind(
    "storage.k8s.io",
    "csidrivers",
    defaults=_defaults,
    strategy=Strategy(
        namespaced=False,
        on_create=_drop_gated_of_driver,
        on_update=_driver_update,
        needs_version_on_update=True,
        returns_object_on_delete=True,
        check_create=validate_driver,
        check_update=validate_driver_update,
        warn=of_driver,
    ),
    table=Layout(
        (
            NAME,
            flag("AttachRequired", "CSIDriverSpec.attachRequired"),
            flag("PodInfoOnMount", "CSIDriverSpec.podInfoOnMount"),
            flag("StorageCapacity", "CSIDriverSpec.storageCapacity"),
            Column("TokenRequests", "CSIDriverSpec.tokenRequests"),
            flag("RequiresRepublish", "CSIDriverSpec.requiresRepublish"),
            Column("Modes", "CSIDriverSpec.volumeLifecycleModes"),
            AGE,
        ),
        _cells,
    ),
)
