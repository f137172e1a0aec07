"""CSINode.

upstream: pkg/apis/storage/validation,
pkg/registry/storage/csinode/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.kinds.storage.common import NODE_ID_MAX
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by_spec
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, count, layout, number
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, rules
from kcm_cli.sandbox.apiserver.validation.volume_sources import CSI_DRIVER


def _topology(driver: Tree, path: str) -> Errors:
    keys = driver.get("topologyKeys") or []
    for position, key in enumerate(keys):
        if not key:
            yield errors.required(path)
        if key in keys[:position]:
            yield errors.duplicate(path, key)
        yield from labels.validate_key(key, path)


_short = rules.must(lambda name: len(name.encode()) <= NODE_ID_MAX, f"must be {NODE_ID_MAX} characters or less")
_DRIVER = rules.fields(
    rules.required("name", CSI_DRIVER),
    rules.required("nodeID", _short),
    rules.optional("allocatable", rules.fields(*rules.counters("count"))),
)
_SPEC = rules.fields(rules.each("drivers", _DRIVER, key="name", then=_topology))


def _check_change(new: Tree, old: Tree) -> Errors:
    for before in old["spec"].get("drivers") or ():
        for driver in new["spec"].get("drivers") or ():
            if driver.get("name") == before.get("name"):
                after = {key: value for key, value in driver.items() if key != "allocatable"}
                known = {key: value for key, value in before.items() if key != "allocatable"}
                shown = go_print.internal("storage.CSINodeDriver", after)
                yield from errors.fixed("spec.drivers", after, known, shown)


KIND = Kind(
    "storage.k8s.io",
    "csinodes",
    strategy=Strategy(
        needs_version_on_update=True,
        returns_object_on_delete=True,
        check=by_spec(_SPEC),
        check_change=_check_change,
        update_steps=("name", "rules", "change"),
    ),
    table=layout(
        NAME,
        number("Drivers", "Drivers indicates the number of CSI drivers registered on the node", count("spec.drivers")),
        AGE,
    ),
)
