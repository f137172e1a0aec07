"""Stand-ins for what was not read."""

from datetime import UTC, datetime

import pytest

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.plan.snapshot import Collection, Item, Snapshot
from kcm_cli.plan.twin import loading
from kcm_cli.plan.twin.loading import Loaded

QUOTAS, MAPS = GVR("", "v1", "resourcequotas"), GVR("", "v1", "configmaps")


def quota(number: int, count: int) -> Item:
    metadata = {"name": "q", "namespace": f"n{number}"}
    doc = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "status": {"used": {"configmaps": count}}}
    return Item(f"n{number}", "q", "", codec.encode(doc))


@pytest.mark.parametrize(
    ("counts", "made", "uncounted"),
    [((3, 4), 7, 0), ((60,), 50, 10), ((50, 50, 50), 100, 50), ((10**18,) * 9, 100, 9 * 10**18 - 100)],
)
def test_quotas_have_stand_ins_up_to_a_bound(
    counts: tuple[int, ...], made: int, uncounted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "MOST_OF_QUOTA", 50)
    monkeypatch.setattr(loading, "MOST_COUNTED", 100)
    items = tuple(quota(number, count) for number, count in enumerate(counts))
    collections = {QUOTAS: Collection(QUOTAS, "ResourceQuota", True, items)}
    loaded = Loaded(Snapshot(datetime(2026, 1, 1, tzinfo=UTC), "", "", collections))
    assert sum(row[0] == MAPS for row in loaded.rows) == loaded.stand_ins["configmaps"] == made
    assert loaded.uncounted == uncounted
