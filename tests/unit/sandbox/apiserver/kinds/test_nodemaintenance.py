"""NodeMaintenance: its default, its rules, its status and its columns."""

import pytest

from tests.kit.api import Api

PATH = "/apis/node.kcm.dev/v1/nodemaintenances"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


def maintenance(**spec: object) -> dict:
    return {"metadata": {"name": "m"}, "spec": spec}


async def test_a_node_is_drained_by_default(api: Api) -> None:
    made = await api.json("POST", PATH, maintenance(nodeName="n1"), status=201)
    assert (made["spec"], made["status"]) == ({"nodeName": "n1", "mode": "Drain"}, {})
    changed = await api.json("PUT", f"{PATH}/m/status", made | {"spec": {}, "status": {"phase": "Drained"}})
    assert (changed["spec"]["nodeName"], changed["status"]) == ("n1", {"phase": "Drained"})
    table = await api.json("GET", PATH, headers=TABLE)
    assert table["rows"][0]["cells"][:3] == ["m", "n1", "Drain"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({}, "spec.nodeName", id="no node"),
        pytest.param({"nodeName": "N"}, "spec.nodeName", id="no name of a node"),
        pytest.param({"nodeName": "n", "mode": "Burn"}, "spec.mode", id="unknown mode"),
    ],
)
async def test_refused(api: Api, spec: dict, field: str) -> None:
    refused = await api.json("POST", PATH, maintenance(**spec), status=422)
    assert [cause["field"] for cause in refused["details"]["causes"]] == [field]
