"""Warnings about containers: quantities, variables, ports.

upstream: pkg/api/pod/warnings.go#warningsForPodSpecAndMeta
"""

from collections.abc import Mapping

from kcm_cli.api.well_known import APP_ARMOR, SECCOMP_CONTAINER
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.strategy.warnings import storage
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation.windows import containers_of

_PORT_FIELDS = (
    ("Name", "name", ""),
    ("HostPort", "hostPort", 0),
    ("ContainerPort", "containerPort", 0),
    ("Protocol", "protocol", ""),
    ("HostIP", "hostIP", ""),
)


def of_containers(spec: Tree, annotations: Mapping[str, str], path: str) -> list[str]:
    """Warnings about all containers. ``path``: that of a template, with a dot; empty for a pod."""
    found: list[str] = []
    opened: list[tuple[Tree, str]] = []
    everything = list(containers_of(spec, f"{path}spec"))
    for container, place in everything:
        if annotations:
            found += _annotations(container, spec, annotations, path)
        if resources := container.get("resources"):
            found += _amounts(resources, f"{place}.resources")
        variables = container.get("env")
        if variables and len(variables) > 1:
            found += _variables(variables, f"{place}.env")
        if ports := container.get("ports"):
            opened += [(port, f"{place}.ports[{index}]") for index, port in enumerate(ports)]
    return found + _ports(opened) + _port_names(opened) if opened else found


def app_armor_field(annotation: str) -> Tree | None:
    """The profile of an AppArmor annotation as a field; None if it is invalid."""
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    profile = annotation.removeprefix("localhost/")
    if profile != annotation and profile:
        return {"type": "Localhost", "localhostProfile": profile}
    return None


def _annotations(container: Tree, spec: Tree, annotations: Mapping[str, str], path: str) -> list[str]:
    name, context = container.get("name", ""), container.get("securityContext") or {}
    found: list[str] = []
    key = SECCOMP_CONTAINER + name
    if key in annotations and context.get("seccompProfile") is None:
        text = 'non-functional in v1.27+; use the "seccompProfile" field instead'
        found.append(f"{path}metadata.annotations[{key}]: {text}")
    key = APP_ARMOR + name
    own, pod = context.get("appArmorProfile"), (spec.get("securityContext") or {}).get("appArmorProfile")
    meant = app_armor_field(annotations.get(key, ""))
    # the strategy has copied a pod's annotation to its field
    moved = own is None if path else meant is None or own == meant
    if key in annotations and moved and (pod is None or pod != meant):
        text = 'deprecated since v1.30; use the "appArmorProfile" field instead'
        found.append(f"{path}metadata.annotations[{key}]: {text}")
    return found


def _amounts(resources: Tree, path: str) -> list[str]:
    found: list[str] = []
    for name in ("memory", "ephemeral-storage"):
        for field in ("limits", "requests"):
            found += storage.fraction(resources.get(field), name, f"{path}.{field}")
    return found


def _variables(variables: list[Tree], path: str) -> list[str]:
    found: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(variables):
        name, value = item.get("name", ""), item.get("value", "")
        own = f"$({name})"
        if name in seen and (item.get("valueFrom") is not None or value == own or own not in value):
            text = f"hides previous definition of {quote(name)}, which may be dropped when using apply"
            found.append(f"{path}[{index}]: {text}")
        seen.add(name)
    return found


def _shown(port: Tree) -> str:
    return "{" + " ".join(f"{name}:{port.get(field, zero)}" for name, field, zero in _PORT_FIELDS) + "}"


def _ports(opened: list[tuple[Tree, str]]) -> list[str]:
    found: list[str] = []
    known: dict[tuple[int, str], _Numbers] = {}
    clashes = 0
    for index, (port, path) in enumerate(opened):
        address, number = port.get("hostIP", ""), port.get("hostPort", 0)
        if address and not number:
            found.append(f"{path}: hostIP set without hostPort: {_shown(port)}")
        others = known.setdefault((port.get("containerPort", 0), port.get("protocol", "")), {})
        for place in _clashing(others, address, number) if clashes < _MOST else ():
            other, where = opened[place]
            found.append(f"{path}: {_clash(address, number, other)} port definition with {where}")
            clashes += 1
        others.setdefault(number, {}).setdefault(address, []).append(index)
    return found


_MOST = 1000
"""The maximum of clashes in the warnings: a response has some kilobytes of warnings."""
_Numbers = dict[int, dict[str, list[int]]]
"""The places of ports, by host port and address."""


def _clashing(others: _Numbers, address: str, number: int) -> list[int]:
    """The places of the ports that clash with one."""
    if number:
        same = others.get(number, {})
        alike = [same[one] for one in ({address, ""} if address else same) if one in same]
        lists = [*others.get(0, {}).values(), *alike]
    else:
        lists = [places for by_address in others.values() for places in by_address.values()]
    return sorted(place for places in lists for place in places)


def _clash(address: str, number: int, other: Tree) -> str:
    other_address, other_number = other.get("hostIP", ""), other.get("hostPort", 0)
    if address == other_address and number == other_number:
        return "duplicate"
    if not number or not other_number:
        return "overlapping"
    return "dangerously ambiguous" if number == other_number and (not address) != (not other_address) else ""


def _port_names(opened: list[tuple[Tree, str]]) -> list[str]:
    found: list[str] = []
    known: dict[str, str] = {}
    for port, path in opened:
        name = port.get("name", "")
        if name in known:
            use = f"services and probes that select ports by name will use {known[name]}"
            found.append(f"{path}: duplicate port name {quote(name)} with {known[name]}, {use}")
        elif name:
            known[name] = path
    return found
