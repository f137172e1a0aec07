"""NetworkPolicy.

Source: pkg/apis/networking/v1/defaults.go, pkg/apis/networking/validation,
pkg/registry/networking/networkpolicy/strategy.go, pkg/printers/internalversion/printers.go.
"""

from collections.abc import Sequence
from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, name_of
from kcm_cli.sandbox.apiserver.tables.templates import selector_text
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, labels, metadata, ports
from kcm_cli.sandbox.apiserver.validation.addresses import cidr_warnings

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_TYPES = ("Ingress", "Egress")
_DIRECTIONS = (("ingress", "from"), ("egress", "to"))


def validate_policy(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    return found + _spec(doc.get("spec") or {}, lenient=False)


def validate_policy_update(new: Tree, old: Tree) -> list[FieldError]:
    spec = old.get("spec") or {}
    known: list[str] = []
    for field, peers in _DIRECTIONS:
        for rule in spec.get(field) or ():
            for peer in rule.get(peers) or ():
                block = peer.get("ipBlock")
                if block is not None:
                    known += [block.get("cidr", ""), *(block.get("except") or ())]
    lenient = bool(labels.validate_selector(spec.get("podSelector"), ""))
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    return found + _spec(new.get("spec") or {}, lenient=lenient, known=known)


def _spec(spec: Tree, *, lenient: bool, known: Sequence[str] = ()) -> list[FieldError]:
    found = labels.validate_selector(spec.get("podSelector"), "spec.podSelector", lenient_values=lenient)
    for field, peers in _DIRECTIONS:
        for index, rule in enumerate(spec.get(field) or ()):
            path = f"spec.{field}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                found += _port(port, f"{path}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers) or ()):
                found += _peer(peer, f"{path}.{peers}[{number}]", lenient, known)
    types = spec.get("policyTypes") or []
    if len(types) > len(_TYPES):
        return [*found, errors.invalid("spec.policyTypes", types, "may not specify more than two policyTypes")]
    for index, kind in enumerate(types):
        if kind not in _TYPES:
            found.append(errors.not_supported(f"spec.policyTypes[{index}]", kind, _TYPES))
    return found


def _port(port: Tree, path: str) -> list[FieldError]:
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    found: list[FieldError] = []
    if protocol is not None and protocol not in _PROTOCOLS:
        found.append(errors.not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
    if number is None:
        if end is not None:
            detail = "may not be specified when `port` is not specified"
            found.append(errors.invalid(f"{path}.endPort", end, detail))
        return found
    if isinstance(number, str):
        if end is not None:
            detail = "may not be specified when `port` is non-numeric"
            found.append(errors.invalid(f"{path}.endPort", end, detail))
        return found + errors.invalid_each(f"{path}.port", number, names.port_name(number))
    found += ports.number(number, f"{path}.port")
    if end is not None:
        if end < number:
            detail = "must be greater than or equal to `port`"
            found.append(errors.invalid(f"{path}.endPort", number, detail))
        found += ports.number(end, f"{path}.endPort")
    return found


def _peer(peer: Tree, path: str, lenient: bool, known: Sequence[str]) -> list[FieldError]:
    found: list[FieldError] = []
    count = 0
    for field in ("podSelector", "namespaceSelector"):
        selector = peer.get(field)
        if selector is not None:
            count += 1
            found += labels.validate_selector(selector, f"{path}.{field}", lenient_values=lenient)
    block = peer.get("ipBlock")
    if block is not None:
        found += _block(block, f"{path}.ipBlock", known)
        if count:
            found.append(errors.forbidden(path, "may not specify both ipBlock and another peer"))
    elif not count:
        found.append(errors.required(path, "must specify a peer"))
    return found


def _block(block: Tree, path: str, known: Sequence[str]) -> list[FieldError]:
    text = block.get("cidr", "")
    if not text:
        return [errors.required(f"{path}.cidr")]
    found = addresses.legacy_cidr(text, f"{path}.cidr", known)
    whole = addresses.parse_cidr(text)
    if whole is None:
        return found
    for index, item in enumerate(block.get("except") or ()):
        place = f"{path}.except[{index}]"
        found += addresses.legacy_cidr(item, place, known)
        parsed = addresses.parse_cidr(item)
        if parsed is None:
            continue
        outer, inner = whole[1], parsed[1]
        inside = outer.version == inner.version and inner.network_address in outer
        if not inside or outer.prefixlen >= inner.prefixlen:
            found.append(errors.invalid(place, item, "must be a strict subset of `cidr`"))
    return found


def _defaults(doc: Tree) -> None:
    spec = doc.setdefault("spec", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for direction in ("ingress", "egress"):
        for rule in spec.get(direction) or ():
            for port in rule.get("ports") or ():
                fill.absent(port, (("protocol", "TCP"),))


def of_network_policy(new: Tree, old: Tree | None) -> list[str]:
    """Blocks of addresses in a NetworkPolicy."""
    found: list[str] = []
    for field, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate((new.get("spec") or {}).get(field) or ()):
            for number, peer in enumerate(rule.get(peers) or ()):
                block = peer.get("ipBlock") or {}
                path = f"spec.{field}[{index}].{peers}[{number}].ipBlock"
                found += cidr_warnings(block.get("cidr", ""), f"{path}.cidr")
                for place, item in enumerate(block.get("except") or ()):
                    found += cidr_warnings(item, f"{path}.except[{place}]")
    return found


def _cells(doc: Tree, now: datetime) -> list[object]:
    selector = selector_text((doc.get("spec") or {}).get("podSelector") or {})
    return [name_of(doc), selector, created(doc, now)]


KIND = Kind(
    "networking.k8s.io",
    "networkpolicies",
    defaults=_defaults,
    strategy=Strategy(
        on_create=parts.first_generation,
        on_update=parts.bump_if_spec_changed,
        check_create=validate_policy,
        check_update=validate_policy_update,
        warn=of_network_policy,
    ),
    table=Layout((NAME, Column("Pod-Selector", "NetworkPolicySpec.podSelector"), AGE), _cells),
)
