"""Validation of pods, on creation and on updates.

upstream: pkg/apis/core/validation/validation.go#ValidatePodCreate, #ValidatePodUpdate
"""

from kcm_cli.api.well_known import APP_ARMOR, MIRROR
from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.trees import keep, places
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import (
    containers,
    errors,
    go_print,
    metadata,
    pod_annotations,
    rules,
    scheduling,
)
from kcm_cli.sandbox.apiserver.validation.pod_spec import validate_pod_spec

_DEADLINE_MAX = 2**31 - 1
_UPDATABLE = (
    "`spec.containers[*].image`,"
    "`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def check_pod(doc: Tree, old: Tree | None) -> Errors:
    """Check a new or changed pod."""
    return [*of_pod(doc, old), *(_created(doc) if old is None else _updated(doc, old))]


def _created(doc: Tree) -> Errors:
    spec = doc["spec"]
    if spec.get("ephemeralContainers"):
        yield errors.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("schedulingGates") and spec.get("nodeName"):
        yield errors.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    if annotations := doc["metadata"].get("annotations"):
        yield from pod_annotations.validate_match(annotations, spec, "spec")


def of_pod(doc: Tree, old: Tree | None = None) -> list[FieldError]:
    """Check a pod except its metadata. A spec that does not change is valid."""
    meta, spec = doc["metadata"], doc["spec"]
    known, found = None if old is None else old["spec"], list[FieldError]()
    if annotations := meta.get("annotations"):
        found += pod_annotations.validate_annotations(annotations, spec, "metadata.annotations")
    if spec == known:
        return found
    found += validate_pod_spec(spec, "spec", meta, known)
    if not spec.get("serviceAccountName"):
        found += _tokens(spec)
    return found + [*_PADDED(spec, "spec")]


_IMAGES = rules.items(containers.image_padding)
_PADDED = rules.fields(rules.optional("containers", _IMAGES), rules.optional("initContainers", _IMAGES))


def update_of_subresource(new: Tree, old: Tree) -> Errors:
    """Check the whole pod in updates of subresources."""
    meta = new["metadata"]
    yield from metadata.validate_meta_update(meta, old["metadata"])
    yield from metadata.validate_meta(meta, True, metadata.subdomain)
    yield from of_pod(new, old)


def _updated(new: Tree, old: Tree) -> Errors:
    """Check an update. Few fields of the spec can change."""
    yield from annotation_changes(new, old)
    spec, known = new["spec"], old["spec"]
    if spec == known:
        return
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or ()) != len(known.get(field) or ()):
            yield errors.forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
        yield from _UPDATED(spec.get(field) or (), f"spec.{field}")
    deadline, before = spec.get("activeDeadlineSeconds"), known.get("activeDeadlineSeconds")
    if detail := _deadline_problem(deadline, before):
        yield errors.invalid("spec.activeDeadlineSeconds", deadline, detail)
        if deadline is not None:
            return
    yield from _tolerations(spec.get("tolerations") or [], known.get("tolerations") or [])
    yield from _gates(spec.get("schedulingGates") or [], known.get("schedulingGates") or [])
    munged = _without_updatable(spec, known)
    if known.get("schedulingGates"):
        yield from _gated(munged, known)
    if munged != known:
        difference = go_print.diff("core.PodSpec", known, munged)
        yield errors.forbidden("spec", f"pod updates may not change fields other than {_UPDATABLE}\n{difference}")


def _tokens(spec: Tree) -> Errors:
    for _, path in places(spec, "volumes[].projected.sources[].serviceAccountToken", "spec"):
        yield errors.forbidden(path, "must not be specified when serviceAccountName is not set")


def annotation_changes(new: Tree, old: Tree) -> Errors:
    """Check annotations that must not change, and those that the API server interprets."""
    after = new["metadata"].get("annotations") or {}
    before = old["metadata"].get("annotations") or {}
    if not (after or before):
        return
    path = "metadata.annotations"
    for key in sorted(before):
        if after.get(key) != before[key]:
            yield from _fixed(key, "remove or update", path)
    for key in sorted(after):
        if key not in before:
            yield from _fixed(key, "add", path)
    yield from pod_annotations.validate_annotations(after, new["spec"], path)


def _fixed(key: str, verb: str, path: str) -> Errors:
    if key.startswith(APP_ARMOR):
        yield errors.forbidden(f"{path}[{key}]", f"may not {verb} AppArmor annotations")
    elif key == MIRROR:
        yield errors.forbidden(f"{path}[{key}]", f"may not {verb} mirror pod annotation")


_UPDATED = rules.items(rules.fields(rules.required("image"), containers.image_padding))


def _gates(new: list[Tree], old: list[Tree]) -> Errors:
    before = {gate.get("name", "") for gate in old}
    for index, gate in enumerate(new):
        name = gate.get("name", "")
        if name not in before:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield errors.forbidden(f"spec.schedulingGates[{index}].name", detail)


def _deadline_problem(new: int | None, old: int | None) -> str:
    if new is None:
        return "" if old is None else "must not update from a positive integer to nil value"
    if not 0 <= new <= _DEADLINE_MAX:
        return names.range_message(0, _DEADLINE_MAX)
    return "must be less than or equal to previous value" if old is not None and old < new else ""


def _tolerations(new: list[Tree], old: list[Tree]) -> Errors:
    if new == old:
        return []
    kept = {scheduling.without_seconds(item) for item in new}
    if any(scheduling.without_seconds(item) not in kept for item in old):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        return [errors.forbidden("spec.tolerations", detail)]
    return scheduling.validate_tolerations(new, "spec.tolerations")


def _without_updatable(spec: Tree, known: Tree) -> Tree:
    """The new spec with the old values of all fields that may change."""
    munged = dict(spec)
    for field in ("containers", "initContainers"):
        if spec.get(field):
            pairs = zip(spec[field], known[field], strict=True)
            munged[field] = [_with_image(container, before) for container, before in pairs]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        keep(munged, known, field)
    grace_s = known.get("terminationGracePeriodSeconds")
    if grace_s is not None and grace_s < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = grace_s
    return munged


def _with_image(container: Tree, before: Tree) -> Tree:
    result = {**container, "image": before.get("image", "")}
    if "image" not in before:
        del result["image"]
    return result


def _gated(munged: Tree, known: Tree) -> Errors:
    """Check changes of a gated pod's node selector and affinity, which may only become narrower. Reverts them in
    ``munged``."""
    selector, before = munged.get("nodeSelector"), known.get("nodeSelector")
    if selector != before:
        if any((selector or {}).get(key) != value for key, value in (before or {}).items()):
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            yield errors.invalid("spec.nodeSelector", errors.sorted_map(selector), detail)
        keep(munged, known, "nodeSelector")
    affinity = munged.get("affinity") or {}
    node, old_node = affinity.get("nodeAffinity"), (known.get("affinity") or {}).get("nodeAffinity")
    if node != old_node:
        yield from _node_affinity(node, old_node)
        rest = {key: value for key, value in affinity.items() if key != "nodeAffinity"}
        if old_node is not None:
            rest["nodeAffinity"] = old_node
        munged["affinity"] = rest
        if not rest:
            keep(munged, known, "affinity")


def _node_affinity(new: Tree | None, old: Tree | None) -> Errors:
    before = ((old or {}).get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    after = ((new or {}).get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if before and len(before) != len(after):
        shown = go_print.internal("[]v1.NodeSelectorTerm", after or None)
        yield errors.invalid(path, shown, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (term, known) in enumerate(zip(after, before, strict=False)):
        if not _only_adds(term, known):
            shown = go_print.internal("v1.NodeSelectorTerm", term)
            yield errors.invalid(f"{path}[{index}]", shown, "only additions are allowed (no mutations or deletions)")


def _only_adds(new: Tree, old: Tree) -> bool:
    fields = ("matchExpressions", "matchFields")
    if not any(old.get(field) for field in fields) and any(new.get(field) for field in fields):
        return False
    for field in fields:
        before = old.get(field) or []
        if (new.get(field) or [])[: len(before)] != before:
            return False
    return True


def validate_ephemeral_containers(new: Tree, old: Tree) -> Errors:
    """Check an update of ``ephemeralcontainers``: existing ones must not change."""
    if MIRROR in (old["metadata"].get("annotations") or ()):
        yield errors.forbidden("[]", "static pods do not support ephemeral containers")
        return
    yield from update_of_subresource(new, old)
    yield from annotation_changes(new, old)
    path = "spec.ephemeralContainers"
    after = {item.get("name", ""): item for item in new["spec"].get("ephemeralContainers") or ()}
    for item in old["spec"].get("ephemeralContainers") or ():
        name = item.get("name", "")
        start = f"existing ephemeral containers {errors.show(name)} may not be"
        if name not in after:
            yield errors.forbidden(path, f"{start} removed\n")
        elif after[name] != item:
            difference = go_print.diff("v1.EphemeralContainer", item, after[name])
            yield errors.forbidden(path, f"{start} changed\n{difference}")
