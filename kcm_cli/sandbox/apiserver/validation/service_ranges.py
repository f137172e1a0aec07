"""IPAddresses and ServiceCIDRs.

Source: pkg/apis/networking/validation/validation.go#ValidateIPAddress, #ValidateServiceCIDR.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, go_print, metadata

_SAME_FAMILY = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


def _address_name(name: str, prefix: bool) -> list[str]:
    start = f"Invalid value: {errors.show(name)}: "
    return [error.message.removeprefix(start) for error in addresses.strict_ip(name, "")]


def validate_address(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], False, _address_name)
    parent, path = (doc.get("spec") or {}).get("parentRef"), "spec.parentRef"
    if parent is None:
        return [*found, errors.required(path)]
    group, namespace = parent.get("group", ""), parent.get("namespace", "")
    if group:
        found += errors.invalid_each(f"{path}.group", group, names.dns1123_subdomain(group))
    for field in ("resource", "name"):
        value = parent.get(field, "")
        if value:
            found += errors.invalid_each(f"{path}.{field}", value, names.path_segment(value))
        else:
            found.append(errors.required(f"{path}.{field}"))
    if namespace:
        found += errors.invalid_each(f"{path}.namespace", namespace, names.path_segment(namespace))
    return found


def validate_address_update(new: Tree, old: Tree) -> list[FieldError]:
    found = validate_address(new) + metadata.validate_meta_update(new["metadata"], old["metadata"])
    after, before = ((doc.get("spec") or {}).get("parentRef") for doc in (new, old))
    shown = None if after is None else go_print.internal("networking.ParentReference", after)
    return found + errors.fixed("spec.parentRef", after, before, shown)


def _blocks(doc: Tree) -> list[str]:
    return (doc.get("spec") or {}).get("cidrs") or []


def validate_range(doc: Tree) -> list[FieldError]:
    return metadata.validate_meta(doc["metadata"], False, metadata.subdomain) + _range(_blocks(doc))


def _range(blocks: list[str]) -> list[FieldError]:
    path = "spec.cidrs"
    if not blocks:
        return [errors.required(path, "at least one CIDR required")]
    if len(blocks) > 2:
        return [errors.invalid(path, {"CIDRs": blocks}, "may only hold up to 2 values")]
    found: list[FieldError] = []
    for index, block in enumerate(blocks):
        found += addresses.strict_cidr(block, f"{path}[{index}]")
    parsed = [addresses.parse_cidr(block) for block in blocks]
    versions = [item[1].version for item in parsed if item is not None]
    if len(versions) == 2 and versions[0] == versions[1]:
        found.append(errors.invalid(path, blocks, _SAME_FAMILY))
    return found


def validate_range_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    blocks, known = _blocks(new), _blocks(old)
    grows = len(known) == 1 and len(blocks) == 2
    if len(blocks) != len(known) and not grows:
        return [*found, errors.invalid("spec.cidrs", blocks or None, errors.IMMUTABLE)]
    for index, block in enumerate(known):
        found += errors.fixed(f"spec.cidrs[{index}]", blocks[index], block)
    return found + _range(blocks) if grows else found


def validate_range_status(new: Tree, old: Tree) -> list[FieldError]:
    return metadata.validate_meta_update(new["metadata"], old["metadata"])
