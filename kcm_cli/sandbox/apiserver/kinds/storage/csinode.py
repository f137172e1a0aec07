"""CSINode.

Source: pkg/apis/storage/validation,
pkg/registry/storage/csinode/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.kinds.storage.common import NODE_ID_MAX
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Layout, created, name_of, number
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, metadata, numbers
from kcm_cli.sandbox.apiserver.validation.volume_sources import csi_driver_name


def validate_node(doc: Tree) -> Errors:
    yield from metadata.validate_meta(doc["metadata"], False, metadata.subdomain)
    seen: set[str] = set()
    for index, driver in enumerate(doc["spec"].get("drivers") or ()):
        yield from _node_driver(driver, seen, f"spec.drivers[{index}]")


def _node_driver(driver: Tree, seen: set[str], path: str) -> Errors:
    name, node_id = driver.get("name", ""), driver.get("nodeID", "")
    yield from csi_driver_name(name, f"{path}.name")
    if not node_id:
        yield errors.required(f"{path}.nodeID")
    if len(node_id.encode()) > NODE_ID_MAX:
        yield errors.invalid(f"{path}.nodeID", node_id, f"must be {NODE_ID_MAX} characters or less")
    yield from numbers.non_negative(driver.get("allocatable") or {}, ("count",), f"{path}.allocatable")
    if name in seen:
        yield errors.duplicate(f"{path}.name", name)
    seen.add(name)
    keys = driver.get("topologyKeys") or []
    for index, key in enumerate(keys):
        if not key:
            yield errors.required(path)
        if key in keys[:index]:
            yield errors.duplicate(path, key)
        yield from labels.validate_key(key, path)


def validate_node_update(new: Tree, old: Tree) -> Errors:
    yield from validate_node(new)
    for before in old["spec"].get("drivers") or ():
        for driver in new["spec"].get("drivers") or ():
            if driver.get("name") == before.get("name"):
                after = {key: value for key, value in driver.items() if key != "allocatable"}
                known = {key: value for key, value in before.items() if key != "allocatable"}
                shown = go_print.internal("storage.CSINodeDriver", after)
                yield from errors.fixed("spec.drivers", after, known, shown)


def _cells(doc: Tree, now: datetime) -> list[object]:
    return [name_of(doc), len((doc.get("spec") or {}).get("drivers") or ()), created(doc, now)]


KIND = Kind(
    "storage.k8s.io",
    "csinodes",
    strategy=Strategy(
        namespaced=False,
        needs_version_on_update=True,
        returns_object_on_delete=True,
        check_create=validate_node,
        check_update=validate_node_update,
    ),
    table=Layout(
        (NAME, number("Drivers", "Drivers indicates the number of CSI drivers registered on the node"), AGE), _cells
    ),
)
