"""ServiceCIDR.

upstream: pkg/apis/networking/validation,
pkg/registry/networking/servicecidr/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.machinery.addresses import parse_cidr
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, status_check
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, layout, shown
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, rules
from kcm_cli.sandbox.apiserver.validation.addresses import legacy_cidr


def strict_cidr(value: str, path: str) -> list[FieldError]:
    """Check that a CIDR block has its canonical form."""
    found = [*legacy_cidr(value, path)]
    parsed = parse_cidr(value)
    if found or parsed is None:
        return found
    canonical = str(parsed[1])
    if value != canonical:
        return [errors.invalid(path, value, f"must be in canonical form ({quote(canonical)})")]
    return []


_SAME_FAMILY = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


def _blocks(doc: Tree) -> list[str]:
    return (doc.get("spec") or {}).get("cidrs") or []


def _check(doc: Tree, old: Tree | None) -> Errors:
    blocks, known = _blocks(doc), [] if old is None else _blocks(old)
    grows = len(known) == 1 and len(blocks) == 2
    if old is not None and len(blocks) != len(known) and not grows:
        yield errors.invalid("spec.cidrs", (doc.get("spec") or {}).get("cidrs"), errors.IMMUTABLE)
        return
    for index, block in enumerate(known):
        yield from errors.fixed(f"spec.cidrs[{index}]", blocks[index], block)
    if old is None or grows:
        yield from _range(blocks)


def _range(blocks: list[str]) -> Errors:
    path = "spec.cidrs"
    if not blocks:
        yield errors.required(path, "at least one CIDR required")
        return
    if len(blocks) > 2:
        yield errors.invalid(path, {"CIDRs": blocks}, "may only hold up to 2 values")
        return
    for index, block in enumerate(blocks):
        yield from strict_cidr(block, f"{path}[{index}]")
    parsed = [addresses.parse_cidr(block) for block in blocks]
    versions = [item[1].version for item in parsed if item is not None]
    if len(versions) == 2 and versions[0] == versions[1]:
        yield errors.invalid(path, blocks, _SAME_FAMILY)


KIND = Kind(
    "networking.k8s.io",
    "servicecidrs",
    strategy=Strategy(
        new_status={},
        status_keeps_metadata=True,
        check=_check,
        check_status=status_check(rules.anything),
    ),
    table=layout(NAME, Column("CIDRs", "ServiceCIDRSpec.cidrs", shown("spec.cidrs", "", ",".join)), AGE),
)
