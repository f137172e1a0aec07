"""The controller in a whole sandbox, on virtual time."""

from kcm_cli.api.devices import RESOURCE_POOL_STATUS_REQUESTS
from kcm_cli.component.metrics import Registry
from tests.kit.alpha import make, serve
from tests.kit.controlling import controllers
from tests.kit.devices import DRIVER, SLICES, allocate, make_claim
from tests.kit.faults import Refusing
from tests.kit.world import World


async def test_a_request_is_answered_once_and_deleted(world: World):
    await serve(world, RESOURCE_POOL_STATUS_REQUESTS, status={})
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": "node-1", "devices": [{"name": "d0"}, {"name": "d1"}]}
    await world.create(SLICES, {"metadata": {"name": "s"}, "spec": spec})
    await make_claim(world)
    await allocate(world, "c")
    broken, registry = [True], Registry()
    transport = Refusing(world.server.transport(), lambda request: broken[0] and request.method == "PUT")
    async with controllers(
        world,
        names=["resourcepoolstatusrequest-controller"],
        gates=[("", "DRAResourcePoolStatus=true")],
        transport=transport,
        metrics=registry,
    ):
        await make(world, RESOURCE_POOL_STATUS_REQUESTS, {"metadata": {"name": "r"}, "spec": {"driver": DRIVER}})
        await world.wait(0.01)
        broken[0] = False
        await world.wait(1)
        assert transport.refused
        (found,) = (await world.get(RESOURCE_POOL_STATUS_REQUESTS, "r"))["status"]["pools"]
        assert (found["totalDevices"], found["allocatedDevices"], found["availableDevices"]) == (2, 1, 1)
        shown = registry.expose().decode()
        name = "resourcepoolstatusrequest_controller_request"
        assert f'{name}_processing_errors_total{{driver_name="{DRIVER}"}} {transport.refused}' in shown
        assert f'{name}s_processed_total{{driver_name="{DRIVER}"}} {transport.refused + 1}' in shown
        await world.wait(3000)
        assert not await world.is_deleted("r", RESOURCE_POOL_STATUS_REQUESTS)
        await world.wait(1500)
        assert await world.is_deleted("r", RESOURCE_POOL_STATUS_REQUESTS)
