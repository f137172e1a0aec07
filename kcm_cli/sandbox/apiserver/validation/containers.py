"""Containers: the regular ones of a pod, those that run before, and those that are added to look inside.

Source: pkg/apis/core/validation/validation.go#validateContainers, #validateInitContainers,
#validateEphemeralContainers.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import (
    container_env,
    container_mounts,
    errors,
    ports,
    probes,
    quantities,
    security,
)

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGES = ("File", "FallbackToLogsOnError")
_RESTARTS = ("Always", "Never", "OnFailure")
_ACTIONS = ("Restart", "RestartAllContainers")
_RULES_MAX, _CODES_MAX = 20, 255
_SIDECARS_ONLY = "may not be set for init containers without restartPolicy=Always"
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_NOT_EPHEMERAL = (
    *("ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules"),
    *("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"),
)
_NO_EPHEMERAL = "cannot be set for an Ephemeral Container"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the containers of one pod have in common."""

    volumes: Mapping[str, Tree]
    claims: Collection[str]
    restart_policy: str
    grace_s: int | None
    os: str | None
    host_users: bool


@lru_cache(maxsize=4096)
def _label(name: str) -> tuple[str, ...]:
    return tuple(names.dns1123_label(name))


def validate_regular(containers: list[Tree], around: Surroundings, path: str) -> list[FieldError]:
    """The containers that a pod is there for."""
    if not containers:
        return [errors.required(path)]
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        place = f"{path}[{index}]"
        found += _common(container, around, place)
        name = container.get("name", "")
        if name in seen:
            found.append(errors.duplicate(f"{place}.name", name))
        seen.add(name)
        found += _running(container, around, place)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            found += _restart(container, place)
    return found + _host_ports(containers, path)


def _running(container: Tree, around: Surroundings, path: str) -> list[FieldError]:
    """Hooks and probes."""
    found: list[FieldError] = []
    if (lifecycle := container.get("lifecycle")) is not None:
        found += probes.validate_lifecycle(lifecycle, around.grace_s, around.os, f"{path}.lifecycle")
    return found + probes.validate_probes(container, around.grace_s, path)


def validate_init(containers: list[Tree], regular: list[Tree], around: Surroundings, path: str) -> list[FieldError]:
    """Containers that run before the others, or beside them (``restartPolicy: Always``)."""
    found: list[FieldError] = []
    seen = {container.get("name", "") for container in regular}
    for index, container in enumerate(containers):
        place, name = f"{path}[{index}]", container.get("name", "")
        found += _common(container, around, place)
        found += _init_restart(container, place)
        if name in seen:
            found.append(errors.duplicate(f"{place}.name", name))
        elif name:
            seen.add(name)
        found += _host_ports([container], path)
        if container.get("restartPolicy") == "Always":
            found += _running(container, around, place)
        else:
            found += _before_others(container, place)
    return found


def _before_others(container: Tree, path: str) -> list[FieldError]:
    found = [
        errors.forbidden(f"{path}.{field}", _SIDECARS_ONLY)
        for field in ("lifecycle", *_PROBES)
        if container.get(field) is not None
    ]
    for index, item in enumerate(container.get("resizePolicy") or ()):
        if item.get("restartPolicy") == "RestartContainer":
            place = f"{path}.resizePolicy[{index}].restartPolicy"
            detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            found.append(errors.invalid(place, "RestartContainer", detail))
    return found


def _init_restart(container: Tree, path: str) -> list[FieldError]:
    if container.get("restartPolicy") is not None:
        return _restart(container, path)
    if container.get("restartPolicyRules"):
        detail = "must specify restartPolicy when restart rules are used"
        return [errors.required(f"{path}.restartPolicy", detail)]
    return []


def _restart(container: Tree, path: str) -> list[FieldError]:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    found: list[FieldError] = []
    if policy is None and rules:
        detail = "must specify restartPolicy when restart rules are used"
        found.append(errors.required(f"{path}.restartPolicy", detail))
    elif policy is not None and policy not in _RESTARTS:
        found.append(errors.not_supported(f"{path}.restartPolicy", policy, _RESTARTS))
    if len(rules) > _RULES_MAX:
        found.append(errors.too_many(f"{path}.restartPolicyRules", len(rules), _RULES_MAX))
    for index, rule in enumerate(rules):
        found += _restart_rule(rule, f"{path}.restartPolicyRules[{index}]")
    return found


def _restart_rule(rule: Tree, path: str) -> list[FieldError]:
    action, codes = rule.get("action", ""), rule.get("exitCodes")
    found = [] if action in _ACTIONS else [errors.not_supported(f"{path}.action", action, _ACTIONS)]
    if codes is None:
        return [*found, errors.required(f"{path}.exitCodes", "must be specified")]
    operator, values = codes.get("operator", ""), codes.get("values") or ()
    if operator not in ("In", "NotIn"):
        found.append(errors.not_supported(f"{path}.exitCodes.operator", operator, ["In", "NotIn"]))
    if len(values) > _CODES_MAX:
        found.append(errors.too_many(f"{path}.exitCodes.values", len(values), _CODES_MAX))
    return found


def validate_ephemeral(containers: list[Tree], others: list[Tree], around: Surroundings, path: str) -> list[FieldError]:
    """Containers that were added to a running pod."""
    found: list[FieldError] = []
    targets = {container.get("name", "") for container in others}
    seen = set(targets)
    for index, container in enumerate(containers):
        place, name = f"{path}[{index}]", container.get("name", "")
        found += _common(container, around, place) + image_padding(container, place)
        if name in seen:
            found.append(errors.duplicate(f"{place}.name", name))
        seen.add(name)
        target = container.get("targetContainerName")
        if target and target not in targets:
            found.append(errors.not_found(f"{place}.targetContainerName", target))
        found += _not_ephemeral(container, place)
    return found


def _not_ephemeral(container: Tree, path: str) -> list[FieldError]:
    found = [errors.forbidden(f"{path}.{field}", _NO_EPHEMERAL) for field in _NOT_EPHEMERAL if container.get(field)]
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        for field in ("subPath", "subPathExpr"):
            if mount.get(field):
                found.append(errors.forbidden(f"{path}.volumeMounts[{index}].{field}", _NO_EPHEMERAL))
    return found


def image_padding(container: Tree, path: str) -> list[FieldError]:
    """No white space around the name of an image; templates may have it."""
    image = container.get("image", "")
    if image.strip() == image:
        return []
    return [errors.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")]


def _common(container: Tree, around: Surroundings, path: str) -> list[FieldError]:
    name, policy = container.get("name", ""), container.get("terminationMessagePolicy", "")
    found: list[FieldError] = []
    if not name:
        found.append(errors.required(f"{path}.name"))
    elif messages := _label(name):
        found += errors.invalid_each(f"{path}.name", name, messages)
    if not container.get("image"):
        found.append(errors.required(f"{path}.image"))
    if policy not in _MESSAGES:
        found.append(errors.unchosen(policy, _MESSAGES, f"{path}.terminationMessagePolicy"))
    found += _contents(container, around, path)
    pull = container.get("imagePullPolicy", "")
    if pull not in PULL_POLICIES:
        found.append(errors.unchosen(pull, PULL_POLICIES, f"{path}.imagePullPolicy"))
    if resources := container.get("resources"):
        found += quantities.validate_container(resources, around.claims, f"{path}.resources")
    if resizes := container.get("resizePolicy"):
        found += _resizes(resizes, around.restart_policy, f"{path}.resizePolicy")
    context = container.get("securityContext")
    if context:
        found += security.validate_container(context, f"{path}.securityContext", host_users=around.host_users)
    return found


def _contents(container: Tree, around: Surroundings, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if opened := container.get("ports"):
        found += _ports(opened, f"{path}.ports")
    if variables := container.get("env"):
        found += container_env.validate_env(variables, f"{path}.env")
    if sources := container.get("envFrom"):
        found += container_env.validate_env_from(sources, f"{path}.envFrom")
    if container.get("volumeMounts"):
        found += container_mounts.validate_mounts(container, around.volumes, f"{path}.volumeMounts")
    if container.get("volumeDevices"):
        found += container_mounts.validate_devices(container, around.volumes, f"{path}.volumeDevices")
    return found


def _ports(items: list[Tree], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, port in enumerate(items):
        place = f"{path}[{index}]"
        if name := port.get("name"):
            if messages := names.port_name(name):
                found += errors.invalid_each(f"{place}.name", name, messages)
            elif name in seen:
                found.append(errors.duplicate(f"{place}.name", name))
            seen.add(name)
        number = port.get("containerPort", 0)
        found += (
            ports.number(number, f"{place}.containerPort") if number else [errors.required(f"{place}.containerPort")]
        )
        if host_port := port.get("hostPort"):
            found += ports.number(host_port, f"{place}.hostPort")
        found += ports.protocol(port.get("protocol"), f"{place}.protocol")
    return found


def _host_ports(containers: list[Tree], path: str) -> list[FieldError]:
    """No two containers take the same port of the node."""
    found: list[FieldError] = []
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if host_port := port.get("hostPort"):
                key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{host_port}"
                if key in taken:
                    found.append(errors.duplicate(f"{path}[{index}].ports[{number}].hostPort", key))
                taken.add(key)
    return found


def _resizes(items: list[Tree], restart_policy: str, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        name, policy = item.get("resourceName", ""), item.get("restartPolicy", "")
        if name in seen:
            found.append(errors.duplicate(f"{path}[{index}]", name))
        seen.add(name)
        for value, choices in ((name, quantities.COMPUTE), (policy, ("NotRequired", "RestartContainer"))):
            if value not in choices:
                found.append(errors.unchosen(value, choices, path))
        if restart_policy == "Never" and policy != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            found.append(errors.invalid(path, policy, detail))
    return found
