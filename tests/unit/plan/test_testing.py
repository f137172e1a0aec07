"""The pytest fixture, and what a saved snapshot lacks."""

import logging
from pathlib import Path
from typing import Any

import pytest

from kcm_cli.api.apps import DEPLOYMENTS
from kcm_cli.plan import Apply, Drain, Scale, Target, Twin, save
from kcm_cli.plan.testing import TwinOf
from kcm_cli.rest.client import MERGE
from kcm_cli.rest.transport import Request
from tests.kit.simulation import NAMESPACE, World
from tests.kit.workload import deployment
from tests.unit.plan.clusters import settled, snapshot_of


def test_the_fixture_creates_twins_from_files(kcm_twin: type[TwinOf], tmp_path: Path) -> None:
    save(settled(), tmp_path / "cluster.kcm")
    twin = kcm_twin(tmp_path / "cluster.kcm")
    assert twin.audit(60).audit == ()
    assert [problem.kind for problem in twin.plan(Drain("node-1"), horizon_s=60).problems] == ["drain", "pdb"]


def test_a_story_runs_on_a_twin(kcm_twin: type[TwinOf]) -> None:
    async def story(twin: Twin) -> int:
        await twin.client.patch(DEPLOYMENTS, NAMESPACE, "web", {"spec": {"replicas": 2}}, content_type=MERGE)
        await twin.clock.sleep(30)
        return (await twin.client.get(DEPLOYMENTS, NAMESPACE, "web")).status.replicas

    assert kcm_twin(settled()).live(story) == 2


def test_twins_write_no_log(kcm_twin: type[TwinOf], capfd: pytest.CaptureFixture[str]) -> None:
    def pods(count: int) -> Apply:
        metadata = {"name": "few", "namespace": NAMESPACE}
        spec = {"hard": {"pods": str(count)}}
        return Apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec})

    logger = logging.getLogger("kcm_cli")
    before, seen = logger.level, []
    handler = logging.Handler()
    handler.emit = seen.append  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        answer = kcm_twin(settled()).plan(pods(1), Scale(Target("deploy", "web", NAMESPACE), 9), horizon_s=120)
    finally:
        logger.removeHandler(handler)
    assert "quota" in {one.kind for one in answer.problems}
    assert (seen, logger.level, capfd.readouterr()) == ([], before, ("", ""))


def with_env(value: str) -> dict[str, Any]:
    doc = deployment("web", 2)
    doc["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": value}]
    return doc


def test_values_of_env_in_a_manifest_are_taken_for_those_of_a_saved_cluster(
    kcm_twin: type[TwinOf], tmp_path: Path
) -> None:
    async def applied(world: World) -> None:
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/web"
        query, headers = (("fieldManager", "kubectl"),), {"content-type": "application/apply-patch+yaml"}
        from kcm_cli.machinery.codec import encode

        await world.client.call(Request("PATCH", path, query, headers, encode(with_env("hunter2"))))
        await world.clock.sleep(60)

    save(snapshot_of(applied), tmp_path / "cluster.kcm")
    twin = kcm_twin(tmp_path / "cluster.kcm")
    assert twin.audit(60).audit == ()
    assert twin.plan(Apply(with_env("hunter2")), horizon_s=60).differences == ()
    other = twin.plan(Apply(with_env("other")), horizon_s=60)
    assert other.differences == ()
    assert other.assumed == (f"Deployment {NAMESPACE}/web keeps its values of env, which the snapshot does not have",)
    assert b"hunter2" not in other.json()
