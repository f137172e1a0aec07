"""Containers, init containers and ephemeral containers.

upstream: pkg/apis/core/validation/validation.go#validateContainers, #validateInitContainers,
#validateEphemeralContainers
"""

from collections.abc import Collection, Mapping

import msgspec

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import (
    container_env,
    container_mounts,
    errors,
    ports,
    probes,
    quantities,
    rules,
    security,
)

_RESTARTS = rules.choices("core.v1.PodSpec", "restartPolicy")

_RULES_NEED_POLICY = "must specify restartPolicy when restart rules are used"
_SIDECARS_ONLY = "may not be set for init containers without restartPolicy=Always"


class Surroundings(msgspec.Struct, frozen=True):
    """The properties of a pod that the validation of its containers needs."""

    volumes: Mapping[str, Tree]
    claims: Collection[str]
    restart_policy: str
    grace_s: int | None
    os: str | None
    host_users: bool


def validate_init(containers: list[Tree], regular: list[Tree], around: Surroundings, path: str) -> Errors:
    """Check init containers, including sidecars (``restartPolicy: Always``)."""
    seen = {container.get("name", "") for container in regular}
    for index, container in enumerate(containers):
        place, name = f"{path}[{index}]", container.get("name", "")
        yield from _common(container, around, place)
        if container.get("restartPolicy") is not None:
            yield from _restart(container, place)
        elif container.get("restartPolicyRules"):
            yield errors.required(f"{place}.restartPolicy", _RULES_NEED_POLICY)
        if name in seen:
            yield errors.duplicate(f"{place}.name", name)
        elif name:
            seen.add(name)
        yield from _host_ports([container], path)
        if container.get("restartPolicy") == "Always":
            yield from _running(container, around, place)
        else:
            yield from _BEFORE_OTHERS(container, place)


_no_restart = rules.must(
    lambda policy: policy != "RestartContainer",
    "must not be set to 'RestartContainer' for non-sidecar initContainers",
)
_BEFORE_OTHERS = rules.fields(
    *(
        rules.forbidden(field, _SIDECARS_ONLY, zero=False)
        for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
    ),
    rules.each("resizePolicy", rules.fields(rules.optional("restartPolicy", _no_restart))),
)


def _restart(container: Tree, path: str) -> Errors:
    if container.get("restartPolicy") is None and container.get("restartPolicyRules"):
        yield errors.required(f"{path}.restartPolicy", _RULES_NEED_POLICY)
    yield from _RESTART(container, path)


_RESTART = rules.fields_of(
    "core.v1.Container",
    rules.optional("restartPolicy", rules.enum(*_RESTARTS)),
    rules.optional("restartPolicyRules", rules.max_items(20)),
    rules.each(
        "restartPolicyRules",
        rules.fields(
            rules.always("action", rules.enum("Restart", "RestartAllContainers")),
            rules.present(
                "exitCodes",
                rules.fields(
                    rules.always("operator", rules.enum("In", "NotIn")),
                    rules.optional("values", rules.max_items(255)),
                ),
                detail="must be specified",
            ),
        ),
    ),
)


def validate_ephemeral(containers: list[Tree], others: list[Tree], around: Surroundings, path: str) -> Errors:
    """Check ephemeral containers."""
    targets = {container.get("name", "") for container in others}
    unique = rules.Unique(*targets)
    for index, container in enumerate(containers):
        place = f"{path}[{index}]"
        yield from _common(container, around, place)
        yield from image_padding(container, place)
        yield from unique(container.get("name", ""), f"{place}.name")
        target = container.get("targetContainerName")
        if target and target not in targets:
            yield errors.not_found(f"{place}.targetContainerName", target)
        yield from _NOT_EPHEMERAL(container, place)


def _not_ephemeral(*names: str, zero: bool = True) -> tuple[rules.Field, ...]:
    return tuple(rules.forbidden(name, "cannot be set for an Ephemeral Container", zero=zero) for name in names)


_NOT_EPHEMERAL = rules.fields(
    *_not_ephemeral("ports", "resources", "resizePolicy"),
    *_not_ephemeral("restartPolicy", zero=False),
    *_not_ephemeral("restartPolicyRules"),
    *_not_ephemeral("livenessProbe", "readinessProbe", "startupProbe", "lifecycle", zero=False),
    rules.each("volumeMounts", rules.fields(*_not_ephemeral("subPath", "subPathExpr"))),
)


def validate_regular(containers: list[Tree], around: Surroundings, path: str) -> Errors:
    """Check regular containers."""
    if not containers:
        yield errors.required(path)
    unique = rules.Unique()
    for index, container in enumerate(containers):
        place = f"{path}[{index}]"
        yield from _common(container, around, place)
        yield from unique(container.get("name", ""), f"{place}.name")
        yield from _running(container, around, place)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            yield from _restart(container, place)
    yield from _host_ports(containers, path)


def _running(container: Tree, around: Surroundings, path: str) -> Errors:
    """Hooks and probes."""
    if (lifecycle := container.get("lifecycle")) is not None:
        yield from probes.validate_lifecycle(lifecycle, around.grace_s, around.os, f"{path}.lifecycle")
    yield from probes.validate_probes(container, around.grace_s, path)


def image_padding(container: Tree, path: str) -> Errors:
    """Check that the name of an image has no surrounding whitespace, which templates may have."""
    image = container.get("image", "")
    if image.strip() == image:
        return []
    return [errors.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")]


def _common(container: Tree, around: Surroundings, path: str) -> Errors:
    found = [*_HEAD(container, path)]
    if container.get("volumeMounts"):
        found += container_mounts.validate_mounts(container, around.volumes, f"{path}.volumeMounts")
    if container.get("volumeDevices"):
        found += container_mounts.validate_devices(container, around.volumes, f"{path}.volumeDevices")
    found += _PULLED(container, path)
    if resources := container.get("resources"):
        found += quantities.validate_container(resources, around.claims, f"{path}.resources")
    if resizes := container.get("resizePolicy"):
        found += _resizes(resizes, around.restart_policy, f"{path}.resizePolicy")
    if context := container.get("securityContext"):
        found += security.validate_container(context, f"{path}.securityContext", host_users=around.host_users)
    return found


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
        yield from _PORT(port, place)


_PORT = rules.fields_of(
    "core.v1.ContainerPort",
    rules.required("containerPort", ports.number),
    rules.nonempty("hostPort", ports.number),
    rules.one_of("protocol"),
)
_HEAD = rules.fields_of(
    "core.v1.Container",
    rules.required("name", rules.LABEL),
    rules.required("image"),
    rules.one_of("terminationMessagePolicy", "File", "FallbackToLogsOnError"),
    rules.nonempty("ports", _ports),
    rules.nonempty("env", container_env.validate_env),
    rules.nonempty("envFrom", container_env.validate_env_from),
)
_PULLED = rules.fields_of("core.v1.Container", rules.one_of("imagePullPolicy"))


def _host_ports(containers: list[Tree], path: str) -> Errors:
    """Check that no two containers use the same host port."""
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if host_port := port.get("hostPort"):
                key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{host_port}"
                if key in taken:
                    yield errors.duplicate(f"{path}[{index}].ports[{number}].hostPort", key)
                taken.add(key)


def _resizes(items: list[Tree], restart_policy: str, path: str) -> Errors:
    unique = rules.Unique()
    for index, item in enumerate(items):
        name, policy = item.get("resourceName", ""), item.get("restartPolicy", "")
        yield from unique(name, f"{path}[{index}]")
        yield from errors.one_of(path, name, quantities.COMPUTE)
        yield from errors.one_of(path, policy, ("NotRequired", "RestartContainer"))
        if restart_policy == "Never" and policy != "NotRequired":
            yield errors.invalid(path, policy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
