"""Containers: the regular ones of a pod, those that run before, and those that are added to look inside.

Source: pkg/apis/core/validation/validation.go#validateContainers, #validateInitContainers,
#validateEphemeralContainers.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
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


def validate_regular(containers: list[Tree], around: Surroundings, path: str) -> Errors:
    """The containers that a pod is there for."""
    if not containers:
        yield errors.required(path)
        return
    seen: set[str] = set()
    for index, container in enumerate(containers):
        place = f"{path}[{index}]"
        yield from _common(container, around, place)
        name = container.get("name", "")
        if name in seen:
            yield errors.duplicate(f"{place}.name", name)
        seen.add(name)
        yield from _running(container, around, place)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            yield from _restart(container, place)
    yield from _host_ports(containers, path)


def _running(container: Tree, around: Surroundings, path: str) -> Errors:
    """Hooks and probes."""
    if (lifecycle := container.get("lifecycle")) is not None:
        yield from probes.validate_lifecycle(lifecycle, around.grace_s, around.os, f"{path}.lifecycle")
    yield from probes.validate_probes(container, around.grace_s, path)


def validate_init(containers: list[Tree], regular: list[Tree], around: Surroundings, path: str) -> Errors:
    """Containers that run before the others, or beside them (``restartPolicy: Always``)."""
    seen = {container.get("name", "") for container in regular}
    for index, container in enumerate(containers):
        place, name = f"{path}[{index}]", container.get("name", "")
        yield from _common(container, around, place)
        yield from _init_restart(container, place)
        if name in seen:
            yield errors.duplicate(f"{place}.name", name)
        elif name:
            seen.add(name)
        yield from _host_ports([container], path)
        if container.get("restartPolicy") == "Always":
            yield from _running(container, around, place)
        else:
            yield from _before_others(container, place)


def _before_others(container: Tree, path: str) -> Errors:
    yield from (
        errors.forbidden(f"{path}.{field}", _SIDECARS_ONLY)
        for field in ("lifecycle", *_PROBES)
        if container.get(field) is not None
    )
    for index, item in enumerate(container.get("resizePolicy") or ()):
        if item.get("restartPolicy") == "RestartContainer":
            place = f"{path}.resizePolicy[{index}].restartPolicy"
            detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            yield errors.invalid(place, "RestartContainer", detail)


def _init_restart(container: Tree, path: str) -> Errors:
    if container.get("restartPolicy") is not None:
        return _restart(container, path)
    if container.get("restartPolicyRules"):
        return [errors.required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")]
    return []


def _restart(container: Tree, path: str) -> Errors:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is None and rules:
        yield errors.required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    elif policy is not None and policy not in _RESTARTS:
        yield errors.not_supported(f"{path}.restartPolicy", policy, _RESTARTS)
    if len(rules) > _RULES_MAX:
        yield errors.too_many(f"{path}.restartPolicyRules", len(rules), _RULES_MAX)
    for index, rule in enumerate(rules):
        yield from _restart_rule(rule, f"{path}.restartPolicyRules[{index}]")


def _restart_rule(rule: Tree, path: str) -> Errors:
    action, codes = rule.get("action", ""), rule.get("exitCodes")
    if action not in _ACTIONS:
        yield errors.not_supported(f"{path}.action", action, _ACTIONS)
    if codes is None:
        yield errors.required(f"{path}.exitCodes", "must be specified")
        return
    operator, values = codes.get("operator", ""), codes.get("values") or ()
    if operator not in ("In", "NotIn"):
        yield errors.not_supported(f"{path}.exitCodes.operator", operator, ["In", "NotIn"])
    if len(values) > _CODES_MAX:
        yield errors.too_many(f"{path}.exitCodes.values", len(values), _CODES_MAX)


def validate_ephemeral(containers: list[Tree], others: list[Tree], around: Surroundings, path: str) -> Errors:
    """Containers that were added to a running pod."""
    targets = {container.get("name", "") for container in others}
    seen = set(targets)
    for index, container in enumerate(containers):
        place, name = f"{path}[{index}]", container.get("name", "")
        yield from _common(container, around, place)
        yield from image_padding(container, place)
        if name in seen:
            yield errors.duplicate(f"{place}.name", name)
        seen.add(name)
        target = container.get("targetContainerName")
        if target and target not in targets:
            yield errors.not_found(f"{place}.targetContainerName", target)
        yield from _not_ephemeral(container, place)


def _not_ephemeral(container: Tree, path: str) -> Errors:
    yield from (errors.forbidden(f"{path}.{field}", _NO_EPHEMERAL) for field in _NOT_EPHEMERAL if container.get(field))
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        for field in ("subPath", "subPathExpr"):
            if mount.get(field):
                yield errors.forbidden(f"{path}.volumeMounts[{index}].{field}", _NO_EPHEMERAL)


def image_padding(container: Tree, path: str) -> Errors:
    """No white space around the name of an image; templates may have it."""
    image = container.get("image", "")
    if image.strip() == image:
        return []
    return [errors.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")]


def _common(container: Tree, around: Surroundings, path: str) -> Errors:
    name, policy = container.get("name", ""), container.get("terminationMessagePolicy", "")
    if not name:
        yield errors.required(f"{path}.name")
    elif messages := _label(name):
        yield from errors.invalid_each(f"{path}.name", name, messages)
    if not container.get("image"):
        yield errors.required(f"{path}.image")
    if policy not in _MESSAGES:
        yield errors.unchosen(policy, _MESSAGES, f"{path}.terminationMessagePolicy")
    yield from _contents(container, around, path)
    pull = container.get("imagePullPolicy", "")
    if pull not in PULL_POLICIES:
        yield errors.unchosen(pull, PULL_POLICIES, f"{path}.imagePullPolicy")
    if resources := container.get("resources"):
        yield from quantities.validate_container(resources, around.claims, f"{path}.resources")
    if resizes := container.get("resizePolicy"):
        yield from _resizes(resizes, around.restart_policy, f"{path}.resizePolicy")
    context = container.get("securityContext")
    if context:
        yield from security.validate_container(context, f"{path}.securityContext", host_users=around.host_users)


def _contents(container: Tree, around: Surroundings, path: str) -> Errors:
    if opened := container.get("ports"):
        yield from _ports(opened, f"{path}.ports")
    if variables := container.get("env"):
        yield from container_env.validate_env(variables, f"{path}.env")
    if sources := container.get("envFrom"):
        yield from container_env.validate_env_from(sources, f"{path}.envFrom")
    if container.get("volumeMounts"):
        yield from container_mounts.validate_mounts(container, around.volumes, f"{path}.volumeMounts")
    if container.get("volumeDevices"):
        yield from container_mounts.validate_devices(container, around.volumes, f"{path}.volumeDevices")


def _ports(items: list[Tree], path: str) -> Errors:
    seen: set[str] = set()
    for index, port in enumerate(items):
        place = f"{path}[{index}]"
        if name := port.get("name"):
            if messages := names.port_name(name):
                yield from errors.invalid_each(f"{place}.name", name, messages)
            elif name in seen:
                yield errors.duplicate(f"{place}.name", name)
            seen.add(name)
        number = port.get("containerPort", 0)
        if number:
            yield from ports.number(number, f"{place}.containerPort")
        else:
            yield errors.required(f"{place}.containerPort")
        if host_port := port.get("hostPort"):
            yield from ports.number(host_port, f"{place}.hostPort")
        yield from ports.protocol(port.get("protocol"), f"{place}.protocol")


def _host_ports(containers: list[Tree], path: str) -> Errors:
    """No two containers take the same port of the node."""
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if host_port := port.get("hostPort"):
                key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{host_port}"
                if key in taken:
                    yield errors.duplicate(f"{path}[{index}].ports[{number}].hostPort", key)
                taken.add(key)


def _resizes(items: list[Tree], restart_policy: str, path: str) -> Errors:
    seen: set[str] = set()
    for index, item in enumerate(items):
        name, policy = item.get("resourceName", ""), item.get("restartPolicy", "")
        if name in seen:
            yield errors.duplicate(f"{path}[{index}]", name)
        seen.add(name)
        for value, choices in ((name, quantities.COMPUTE), (policy, ("NotRequired", "RestartContainer"))):
            if value not in choices:
                yield errors.unchosen(value, choices, path)
        if restart_policy == "Never" and policy != "NotRequired":
            yield errors.invalid(path, policy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
