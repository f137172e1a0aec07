"""Which addresses nobody calls, since they are simulated."""

from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.webhooks.simulated_addresses import SimulatedAddresses


def test_services_have_addresses_of_the_range_in_use_only() -> None:
    known = SimulatedAddresses(Store(None), ("10.7.0.0/16", "fd00::/112"))
    assert [known.has(text) for text in ("10.7.1.2", "fd00::9", "10.244.0.2", "192.0.2.1")] == [True] * 4
    assert [known.has(text) for text in ("10.0.1.2", "fd01::9", "127.0.0.1")] == [False] * 3
