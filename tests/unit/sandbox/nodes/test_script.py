"""What is known of the containers of a pod."""

import pytest

from kcm_cli.machinery import codec
from kcm_cli.sandbox.nodes import script
from kcm_cli.sandbox.views import PODS, SimulatedPod

LONG = "x=a; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do x=$x$x; done; for i in $(seq 900); do y=$x$x; done; exit 3"


def pod(containers: int, command: str) -> SimulatedPod:
    each = [{"name": f"c{n}", "image": "i", "command": ["sh", "-c", command]} for n in range(containers)]
    return PODS.decode(codec.encode({"metadata": {"name": "p"}, "spec": {"containers": each}}))


@pytest.mark.parametrize(("containers", "command"), [(1, LONG), (200, "echo a; sleep 5; exit 3")])
def test_the_ends_of_containers_are_known(containers: int, command: str) -> None:
    assert [each.nth_run(1).exit_code for each in script.read(pod(containers, command)).containers] == [3] * containers


def test_the_programs_of_a_pod_cost_as_much_as_a_few_together() -> None:
    """They are read in one turn of the event loop. What costs more is unknown, and runs until it is stopped."""
    codes = [each.nth_run(1).exit_code for each in script.read(pod(100, LONG)).containers]
    assert codes == sorted(codes, reverse=True) and 1 < codes.count(3) < 20
