"""NetworkPolicy.

upstream: pkg/apis/networking/v1/defaults.go, pkg/apis/networking/validation,
pkg/registry/networking/networkpolicy/strategy.go, pkg/printers/internalversion/printers.go
"""

from collections.abc import Sequence

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, layout
from kcm_cli.sandbox.apiserver.tables.templates import selector_at
from kcm_cli.sandbox.apiserver.trees import each_at, places
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, labels, ports, rules
from kcm_cli.sandbox.apiserver.validation.addresses import cidr_warnings

_TYPES = ("Ingress", "Egress")


def _check(doc: Tree, old: Tree | None) -> Errors:
    before, known = ((old or {}).get("spec") or {}), list[str]()
    for field, peers in _DIRECTIONS:
        for block, _ in places(before, f"{field}[].{peers}[].ipBlock"):
            known += [block.get("cidr", ""), *(block.get("except") or ())]
    lenient = any(labels.validate_selector(before.get("podSelector"), ""))
    spec = doc.get("spec") or {}
    yield from labels.validate_selector(spec.get("podSelector"), "spec.podSelector", lenient_values=lenient)
    for field, peers in _DIRECTIONS:
        for index, rule in enumerate(spec.get(field) or ()):
            path = f"spec.{field}[{index}]"
            yield from _PORTS(rule, path)
            for number, peer in enumerate(rule.get(peers) or ()):
                yield from _peer(peer, f"{path}.{peers}[{number}]", lenient, known)
    yield from _POLICY(spec, "spec")


_two_types = rules.must(lambda types: len(types) <= len(_TYPES), "may not specify more than two policyTypes")
_POLICY = rules.fields(rules.optional("policyTypes", rules.unless(_two_types, rules.items(rules.enum(*_TYPES)))))

_DIRECTIONS = (("ingress", "from"), ("egress", "to"))


def _port(port: Tree, path: str) -> Errors:
    number, end = port.get("port"), port.get("endPort")
    if isinstance(number, int):
        yield from ports.number(number, f"{path}.port")
        if end is not None and end < number:
            yield errors.invalid(f"{path}.endPort", number, "must be greater than or equal to `port`")
        if end is not None:
            yield from ports.number(end, f"{path}.endPort")
        return
    if end is not None:
        what = "not specified" if number is None else "non-numeric"
        yield errors.invalid(f"{path}.endPort", end, f"may not be specified when `port` is {what}")
    if number is not None:
        yield from errors.invalid_each(f"{path}.port", number, names.port_name(number))


_PORTS = rules.fields(rules.each("ports", rules.fields(rules.maybe_one_of("protocol", "TCP", "UDP", "SCTP"), _port)))


def _peer(peer: Tree, path: str, lenient: bool, known: Sequence[str]) -> Errors:
    count = 0
    for field in ("podSelector", "namespaceSelector"):
        selector = peer.get(field)
        if selector is not None:
            count += 1
            yield from labels.validate_selector(selector, f"{path}.{field}", lenient_values=lenient)
    block = peer.get("ipBlock")
    if block is not None:
        yield from _block(block, f"{path}.ipBlock", known)
        if count:
            yield errors.forbidden(path, "may not specify both ipBlock and another peer")
    elif not count:
        yield errors.required(path, "must specify a peer")


def _block(block: Tree, path: str, known: Sequence[str]) -> Errors:
    text = block.get("cidr", "")
    if not text:
        yield errors.required(f"{path}.cidr")
        return
    yield from addresses.legacy_cidr(text, f"{path}.cidr", known)
    whole = addresses.parse_cidr(text)
    if whole is None:
        return
    for index, item in enumerate(block.get("except") or ()):
        place = f"{path}.except[{index}]"
        yield from addresses.legacy_cidr(item, place, known)
        parsed = addresses.parse_cidr(item)
        if parsed is None:
            continue
        outer, inner = whole[1], parsed[1]
        inside = outer.version == inner.version and inner.network_address in outer
        if not inside or outer.prefixlen >= inner.prefixlen:
            yield errors.invalid(place, item, "must be a strict subset of `cidr`")


def _defaults(doc: Tree) -> None:
    spec = doc.setdefault("spec", {})
    fill.empty(spec, policyTypes=["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])
    for direction in ("ingress", "egress"):
        for port, _ in places(spec, f"{direction}[].ports[]"):
            fill.absent(port, protocol="TCP")


def of_network_policy(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about CIDR blocks in a NetworkPolicy."""
    found: list[str] = []
    for field, peers in _DIRECTIONS:
        for block, path in places(new, f"spec.{field}[].{peers}[].ipBlock"):
            found += each_at(cidr_warnings, block, "cidr", path) + each_at(cidr_warnings, block, "except[]", path)
    return found


KIND = Kind(
    "networking.k8s.io",
    "networkpolicies",
    defaults=_defaults,
    strategy=Strategy(
        generation=True,
        empty_counts=True,
        check=_check,
        warn=of_network_policy,
    ),
    table=layout(NAME, Column("Pod-Selector", "NetworkPolicySpec.podSelector", selector_at("spec.podSelector")), AGE),
)
