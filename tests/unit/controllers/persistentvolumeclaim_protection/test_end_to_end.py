"""The controller in a whole sandbox, on virtual time."""

from kcm_cli.rest.transport import Request
from tests.unit.controllers.controlling import controllers
from tests.unit.controllers.faults import Refusing
from tests.unit.sandbox.nodes.world import World, certificates, play, resource

__all__ = ["certificates", "play"]
CLAIMS = resource("persistentvolumeclaims")
NAME = "persistentvolumeclaim-protection-controller"


async def make(world: World, name: str) -> None:
    requests = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": "", "volumeName": "v", "accessModes": ["ReadWriteOnce"], "resources": requests}
    await world.create(CLAIMS, {"metadata": {"name": name}, "spec": spec})


def test_a_claim_goes_at_once_or_with_the_pod_that_uses_it(play):
    async def life(world: World) -> None:
        for name in ("free", "used"):
            await make(world, name)
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": "used"}}
        await world.pod("p", {"volumes": [volume], "nodeName": "node-1", "terminationGracePeriodSeconds": 1})
        async with controllers(world, names=[NAME]):
            await world.wait(5)
            for name in ("free", "used"):
                await world.delete(CLAIMS, name)
            await world.wait(5)
            assert (await world.gone("free", CLAIMS), await world.gone("used", CLAIMS)) == (True, False)
            await world.client.delete(resource("pods"), "default", "p", grace_s=0)
            await world.wait(5)
            assert await world.gone("used", CLAIMS)

    play(life)


def test_a_claim_without_the_finalizer_gets_it_beside_others(play):
    async def life(world: World) -> None:
        await make(world, "bare")
        await world.patch(CLAIMS, "bare", {"metadata": {"finalizers": ["example.com/keep"]}})
        async with controllers(world, names=[NAME]):
            await world.wait(5)
            finalizers = (await world.get(CLAIMS, "bare"))["metadata"]["finalizers"]
            assert finalizers == ["example.com/keep", "kubernetes.io/pvc-protection"]

    play(life)


def test_claims_that_go_together_are_looked_up_together(play):
    async def life(world: World) -> None:
        names = [f"c{number}" for number in range(20)]
        for name in names:
            await make(world, name)
        lists = []

        def note(request: Request) -> bool:
            if request.method == "GET" and request.path == "/api/v1/namespaces/default/pods":
                lists.append(request)
            return False

        for name in names:
            await world.delete(CLAIMS, name)
        async with controllers(world, names=[NAME], transport=Refusing(world.server.transport(), note)):
            await world.wait(5)
            assert [await world.gone(name, CLAIMS) for name in names] == [True] * len(names)
            assert len(lists) == 1

    play(life)
