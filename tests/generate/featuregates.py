"""Makes featuregates.json.gz from what is recorded of Go's feature gates.

python -m tests.generate.featuregates
"""

import gzip
import json
from typing import Any

from kcm_cli.component.featuregates_table import DATA, Table
from kcm_cli.machinery import codec
from tests.kit.places import ROOT


def main() -> None:
    """Write featuregates.json.gz."""
    DATA.write_bytes(gzip.compress(codec.encode_sorted(table()), 9, mtime=0))


def table() -> Table:
    """The gates, those that managers read, and dependencies."""
    history = _recorded("feature-gates-history")
    gates = {
        name: tuple((one["version"], one["default"], one["stage"], one["locked"]) for one in stages)
        for name, stages in history["gates"].items()
    }
    managers = frozenset(gate["name"] for gate in _recorded("feature-gates")["used"])
    return Table(gates, managers, {name: tuple(needed) for name, needed in history["dependencies"].items()})


def _recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "tests" / "recorded" / "reference" / f"{name}.json").read_text())
    return found


if __name__ == "__main__":
    main()
