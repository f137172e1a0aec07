"""CSI drivers, nodes, capacities, and attachments of volumes.

Source: pkg/apis/storage/validation/validation.go.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, metadata, numbers, quantities
from kcm_cli.sandbox.apiserver.validation.persistent_volume import validate_inline_spec
from kcm_cli.sandbox.apiserver.validation.volume_sources import csi_driver_name

_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES = ("Persistent", "Ephemeral")
_NODE_ID_MAX, _METADATA_MAX, _MESSAGE_MAX = 256, 256 * 1024, 1024
_MIN_TOKEN_S, _MAX_TOKEN_S = 600, 2**32
_MIN_PERIOD_S = 10
_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def validate_driver(doc: Tree) -> list[FieldError]:
    return metadata.validate_meta(doc["metadata"], False, metadata.subdomain) + _driver_spec(doc["spec"])


def validate_driver_update(new: Tree, old: Tree) -> list[FieldError]:
    spec, known = new["spec"], old["spec"]
    found = metadata.validate_meta_update(new["metadata"], old["metadata"]) + _driver_spec(spec)
    found += errors.fixed("spec.attachedRequired", spec.get("attachRequired"), known.get("attachRequired"))
    modes, before = spec.get("volumeLifecycleModes"), known.get("volumeLifecycleModes")
    return found + errors.fixed("spec.volumeLifecycleModes", modes, before)


def _driver_spec(spec: Tree) -> list[FieldError]:
    found: list[FieldError] = []
    for field, shown in (
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ):
        if spec.get(field) is None:
            found.append(errors.required(f"spec.{shown}"))
    policy = spec.get("fsGroupPolicy")
    if policy is not None and policy not in _GROUP_POLICIES:
        found.append(errors.not_supported("spec.fsGroupPolicy", policy, _GROUP_POLICIES))
    tokens = spec.get("tokenRequests") or []
    found += _tokens(tokens, "spec.tokenRequests")
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in _LIFECYCLES:
            found.append(errors.not_supported("spec.volumeLifecycleModes", mode, _LIFECYCLES))
    if spec.get("seLinuxMount") is None:
        found.append(errors.required("spec.seLinuxMount"))
    period_s = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period_s is not None and period_s < _MIN_PERIOD_S:
        detail = f"must be greater than or equal to {_MIN_PERIOD_S} seconds"
        found.append(errors.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period_s, detail))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not tokens:
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        found.append(errors.invalid("spec.serviceAccountTokenInSecrets", in_secrets, detail))
    return found


def _tokens(requests: list[Tree], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, request in enumerate(requests):
        audience, seconds = request.get("audience", ""), request.get("expirationSeconds")
        if audience in seen:
            found.append(errors.duplicate(f"{path}[{index}].audience", audience))
            continue
        seen.add(audience)
        place = f"{path}[{index}].expirationSeconds"
        if seconds is not None and seconds < _MIN_TOKEN_S:
            found.append(errors.invalid(place, seconds, "may not specify a duration less than 10 minutes"))
        if seconds is not None and seconds > _MAX_TOKEN_S:
            found.append(errors.invalid(place, seconds, "may not specify a duration larger than 2^32 seconds"))
    return found


def validate_node(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], False, metadata.subdomain)
    seen: set[str] = set()
    for index, driver in enumerate(doc["spec"].get("drivers") or ()):
        found += _node_driver(driver, seen, f"spec.drivers[{index}]")
    return found


def _node_driver(driver: Tree, seen: set[str], path: str) -> list[FieldError]:
    name, node_id = driver.get("name", ""), driver.get("nodeID", "")
    found = csi_driver_name(name, f"{path}.name")
    if not node_id:
        found.append(errors.required(f"{path}.nodeID"))
    if len(node_id.encode()) > _NODE_ID_MAX:
        detail = f"must be {_NODE_ID_MAX} characters or less"
        found.append(errors.invalid(f"{path}.nodeID", node_id, detail))
    found += numbers.non_negative(driver.get("allocatable") or {}, ("count",), f"{path}.allocatable")
    if name in seen:
        found.append(errors.duplicate(f"{path}.name", name))
    seen.add(name)
    keys = driver.get("topologyKeys") or []
    for index, key in enumerate(keys):
        if not key:
            found.append(errors.required(path))
        if key in keys[:index]:
            found.append(errors.duplicate(path, key))
        found += labels.validate_key(key, path)
    return found


def validate_node_update(new: Tree, old: Tree) -> list[FieldError]:
    found = validate_node(new)
    for before in old["spec"].get("drivers") or ():
        for driver in new["spec"].get("drivers") or ():
            if driver.get("name") == before.get("name"):
                after = {key: value for key, value in driver.items() if key != "allocatable"}
                known = {key: value for key, value in before.items() if key != "allocatable"}
                shown = go_print.internal("storage.CSINodeDriver", after)
                found += errors.fixed("spec.drivers", after, known, shown)
    return found


def validate_capacity(doc: Tree) -> list[FieldError]:
    return _capacity(doc, lenient=False)


def _capacity(doc: Tree, *, lenient: bool) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    found += labels.validate_selector(doc.get("nodeTopology"), "nodeTopology", lenient_values=lenient)
    name, capacity = doc.get("storageClassName", ""), doc.get("capacity")
    found += errors.invalid_each("storageClassName", name, names.dns1123_subdomain(name))
    return found if capacity is None else found + quantities.non_negative(capacity, "capacity")


def validate_capacity_update(new: Tree, old: Tree) -> list[FieldError]:
    found = _capacity(new, lenient=labels.has_invalid_value(old.get("nodeTopology")))
    found += metadata.validate_meta_update(new["metadata"], old["metadata"])
    topology = new.get("nodeTopology")
    found += errors.fixed("nodeTopology", topology, old.get("nodeTopology"), labels.shown(topology))
    name = new.get("storageClassName", "")
    return found + errors.fixed("storageClassName", name, old.get("storageClassName", ""))


def validate_attachment(doc: Tree) -> list[FieldError]:
    spec = doc["spec"]
    found = metadata.validate_meta(doc["metadata"], False, metadata.subdomain)
    found += csi_driver_name(spec.get("attacher", ""), "spec.attacher")
    source = spec.get("source") or {}
    found += _attached(source, "spec.source")
    node = spec.get("nodeName", "")
    found += errors.invalid_each("spec.nodeName", node, names.dns1123_subdomain(node))
    found += _attachment_status(doc.get("status") or {})
    name = source.get("persistentVolumeName")
    if name is not None:
        path = "spec.source.persistentVolumeName"
        found += errors.invalid_each(path, name, names.dns1123_subdomain(name))
    return found


def _attached(source: Tree, path: str) -> list[FieldError]:
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    if inline is None and name is None:
        return [errors.required(path, _ONE_SOURCE)]
    if inline is not None and name is not None:
        return [errors.forbidden(path, _ONE_SOURCE)]
    if inline is not None:
        return validate_inline_spec(inline, f"{path}.inlineVolumeSpec")
    if name:
        return []
    return [errors.required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName")]


def _attachment_status(status: Tree) -> list[FieldError]:
    entries = (status.get("attachmentMetadata") or {}).items()
    found: list[FieldError] = []
    if sum(len(key.encode()) + len(value.encode()) for key, value in entries) > _METADATA_MAX:
        found.append(errors.too_long("status.attachmentMetadata", _METADATA_MAX))
    for field in ("attachError", "detachError"):
        error = status.get(field) or {}
        if len(error.get("message", "").encode()) > _MESSAGE_MAX:
            # upstream: pkg/apis/storage/validation/validation.go#validateVolumeError (names the other limit)
            found.append(errors.too_long(f"status.{field}.message", _METADATA_MAX))
        code = error.get("errorCode")
        if code is not None and code < 0:
            detail = names.range_message(0, 2**31 - 1)
            found.append(errors.invalid(f"status.{field}.errorCode", code, detail))
    return found


def validate_attachment_update(new: Tree, old: Tree) -> list[FieldError]:
    shown = go_print.internal("storage.VolumeAttachmentSpec", new["spec"])
    return validate_attachment(new) + errors.fixed("spec", new["spec"], old["spec"], shown)
