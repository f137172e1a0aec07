"""Annotations of pods and templates that have been replaced by fields, and those that controllers read.

upstream: pkg/apis/core/validation/validation.go#ValidatePodSpecificAnnotations,
#validateSeccompAnnotationsAndFields, #validateAppArmorAnnotationsAndFieldsMatchOnCreate
"""

import json
import re
from collections.abc import Mapping

from kcm_cli.api.well_known import APP_ARMOR, DELETION_COST, MIRROR, SECCOMP_CONTAINER, SECCOMP_POD
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, file_paths
from kcm_cli.sandbox.apiserver.validation.scheduling import validate_tolerations
from kcm_cli.sandbox.apiserver.validation.windows import containers_of

_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
_LOCAL = "localhost/"
_SECCOMP_RUNTIME = ("runtime/default", "docker/default")
_cost = re.compile("-[0-9]+|0|[1-9][0-9]*").fullmatch
_COST_LIMIT = 2**31


def validate_annotations(annotations: Mapping[str, str], spec: Tree, path: str) -> Errors:
    """Check the annotations that the API server interprets."""
    if MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        yield errors.invalid(f"{path}[{MIRROR}]", annotations[MIRROR], detail)
    if tolerations := annotations.get(_TOLERATIONS):
        yield from _tolerations(tolerations, path)
    cost = annotations.get(DELETION_COST)
    if cost is not None and not (_cost(cost) and -_COST_LIMIT <= int(cost) < _COST_LIMIT):
        yield errors.invalid(f"{path}[{DELETION_COST}]", cost, "must be a 32bit integer")
    if SECCOMP_POD in annotations:
        yield from _seccomp(annotations[SECCOMP_POD], f"{path}.{SECCOMP_POD}")
    for key in sorted(annotations):
        if key.startswith(SECCOMP_CONTAINER):
            yield from _seccomp(annotations[key], f"{path}.{key}")
    for key in sorted(annotations):
        if key.startswith(APP_ARMOR):
            yield from _app_armor(key, annotations[key], spec, path)


def _tolerations(text: str, path: str) -> Errors:
    try:
        items = json.loads(text)
    except RecursionError:
        return [errors.invalid(path, _TOLERATIONS, "exceeded max depth")]
    except ValueError as error:
        return [errors.invalid(path, _TOLERATIONS, str(error))]
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return [errors.invalid(path, _TOLERATIONS, "json: cannot unmarshal into Go value of type []core.Toleration")]
    return validate_tolerations(items, f"{path}.{_TOLERATIONS}")


def _seccomp(profile: str, path: str) -> Errors:
    if profile in (*_SECCOMP_RUNTIME, "unconfined"):
        return []
    if profile.startswith(_LOCAL):
        return file_paths.descending(profile.removeprefix(_LOCAL), path)
    return [errors.invalid(path, profile, "must be a valid seccomp profile")]


def _app_armor(key: str, profile: str, spec: Tree, path: str) -> Errors:
    name = key.removeprefix(APP_ARMOR)
    if all(container.get("name") != name for container, _ in containers_of(spec, "")):
        yield errors.invalid(f"{path}[{key}]", name, "container not found")
    if profile not in ("", "runtime/default", "unconfined") and not profile.startswith(_LOCAL):
        yield errors.invalid(f"{path}[{key}]", profile, f"invalid AppArmor profile name: {quote(profile)}")


def validate_match(annotations: Mapping[str, str], spec: Tree, path: str) -> Errors:
    """Check that annotations agree with the fields that have replaced them."""
    if not any("seccomp" in key or "apparmor" in key for key in annotations):
        return
    context = spec.get("securityContext") or {}
    if SECCOMP_POD in annotations:
        place = f"{path}.securityContext.seccompProfile"
        yield from _seccomp_match(annotations[SECCOMP_POD], context.get("seccompProfile"), place)
    everything = list(containers_of(spec, path))
    for container, place in everything:
        annotation = annotations.get(SECCOMP_CONTAINER + container.get("name", ""))
        profile = (container.get("securityContext") or {}).get("seccompProfile")
        if annotation is not None:
            yield from _seccomp_match(annotation, profile, f"{place}.securityContext.seccompProfile")
    if (spec.get("os") or {}).get("name") == "windows":
        return
    for container, place in everything:
        annotation = annotations.get(APP_ARMOR + container.get("name", ""))
        own = (container.get("securityContext") or {}).get("appArmorProfile")
        profile = context.get("appArmorProfile") if own is None else own
        if annotation is not None:
            place = f"{place}.securityContext.appArmorProfile"
            yield from _match(annotation, profile, ("runtime/default",), "apparmor", place)


def _seccomp_match(annotation: str, profile: Tree | None, path: str) -> Errors:
    return _match(annotation, profile, _SECCOMP_RUNTIME, "seccomp", path)


def _match(annotation: str, profile: Tree | None, runtime: tuple[str, ...], what: str, path: str) -> Errors:
    other = [errors.forbidden(f"{path}.type", f"{what} type in annotation and field must match")]
    match (profile or {}).get("type"):
        case "Unconfined":
            return [] if annotation == "unconfined" else other
        case "RuntimeDefault":
            return [] if annotation in runtime else other
        case "Localhost":
            if not annotation.startswith(_LOCAL):
                return other
            if annotation.removeprefix(_LOCAL) == (profile or {}).get("localhostProfile"):
                return []
            return [errors.forbidden(f"{path}.localhostProfile", f"{what} profile in annotation and field must match")]
        case _:
            return []
