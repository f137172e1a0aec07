"""The limit for the work of all runs of a probe."""

import msgspec

from kcm_cli.sandbox.nodes.probes import Probed, probed
from kcm_cli.sandbox.views import SimulatedContainer


def test_a_probe_whose_runs_cost_too_much_is_unknown() -> None:
    script = f"for i in {'1 ' * 200}; do test -f /tmp/x; done"
    probe = {"exec": {"command": ["sh", "-c", script]}}
    container = msgspec.convert({"name": "c", "livenessProbe": probe}, SimulatedContainer)
    stages = [(float(at_s), {"/tmp/x": ""} if at_s % 100 else {}, frozenset[str]()) for at_s in range(0, 3000, 50)]
    assert probed(container, {}, stages[:1]).fails == (20, "liveness")
    assert probed(container, {}, stages) == Probed()
