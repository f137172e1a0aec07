"""docs/visits.md: the files that a Deployment's key, a new pod and an option's value pass, counted in a real run.

``python -m tests.generate.visits`` prints it.
"""

import random
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby

from kcm_cli.api.apps import Deployment
from kcm_cli.cluster.cluster import Cluster
from kcm_cli.cluster.controllers import Alone
from kcm_cli.component import virtual
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.engine.worker import Worker
from kcm_cli.manager.config import load
from kcm_cli.planning.actions import Create
from kcm_cli.rest.transport import Request
from kcm_cli.runtime.cause_ring import CauseRing
from kcm_cli.runtime.wire import WatchEvent
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.calls import Moment, Recorder, Stop
from tests.kit.world import World, resource, running_world

_DEPLOYMENT = resource("deployments", "apps")
_KEY, _POD, _SYNCS = "default/web", "p", 7

KEY = (
    Moment("the event is decoded", "", lambda file, _, made: isinstance(made, WatchEvent) and _is_web(made.object)),
    Moment("the key is queued", "add", lambda file, named, _: named.get("key") == _KEY),
    Moment("the key is taken", "", lambda file, _, made: made == _KEY and file == "runtime/workqueue.py"),
    Moment("the Deployment is read", "", lambda file, _, made: _is_web(made)),
    Moment("the write is decided", "", lambda file, _, made: isinstance(made, Create)),
    Moment("the write is sent", "send", lambda file, named, _: isinstance(named.get("request"), Request)),
)
POD = (
    Moment("the request is routed", "run", lambda file, named, _: "call" in named),
    Moment("the body is decoded", "", lambda file, _, made: _is_pod(made)),
    Moment("defaults are set", "_defaults", lambda file, named, _: "core/pod" in file),
    Moment("managed fields are set", "update", lambda file, named, _: "apply/" in file),
    Moment("a plugin admits it", "admit", lambda file, named, _: "admission/" in file),
    Moment("the spec is validated", "check_pod", lambda file, named, _: True),
    Moment("it is stored", "create", lambda file, named, _: "store/" in file),
)
OPTION = (
    Moment("the flag is parsed", "", lambda file, _, made: made == _SYNCS),
    Moment("the group is made", "__init__", lambda file, named, _: named.get("values") == {"concurrent_syncs": _SYNCS}),
    Moment("its bounds are checked", "_out_of_bounds", lambda file, named, _: named.get("value") == _SYNCS),
    Moment("the controller has it", "", lambda file, _, made: isinstance(made, DeploymentConfig) and "engine/" in file),
    Moment("it is used", "", lambda file, _, made: isinstance(made, Worker) and made.count == _SYNCS),
)


def _is_web(value: object) -> bool:
    return isinstance(value, Deployment) and value.key == _KEY


def _is_pod(value: object) -> bool:
    return isinstance(value, dict) and isinstance(meta := value.get("metadata"), dict) and meta.get("name") == _POD


async def _make(world: World) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    await world.create(_DEPLOYMENT, {"metadata": {"name": "web"}, "spec": spec})


def ways() -> tuple[list[Stop], list[Stop], list[Stop]]:
    """The visits of a Deployment's key, of a new pod, and of ``--concurrent-deployment-syncs``."""
    key, pod, option = Recorder(KEY), Recorder(POD, inside="sandbox/apiserver/"), Recorder(OPTION)

    async def run() -> None:
        certificates = Certificates.load(None, datetime(2026, 1, 1, tzinfo=UTC))
        async with running_world(certificates, alone=True) as world:
            await world.pod("first")
            with pod.recording():
                await world.pod(_POD)
            with option.recording():
                config = load((f"--concurrent-deployment-syncs={_SYNCS}",))
                manager = Alone(
                    config=config,
                    only=frozenset(["deployment-controller"]),
                    environment=tuple(config.by_type().values()),
                    metrics=Registry(),
                    causes=CauseRing(world.clock),
                )
                async with Cluster(
                    clock=world.clock,
                    rng=random.Random(3),
                    connect=lambda component: world.server.transport(),
                    controllers=manager,
                ).running():
                    await world.wait(1)
                    with key.recording():
                        await _make(world)
                        await world.wait(1)

    virtual.run(run())
    return key.stops(), pod.stops(), option.stops()


_HEAD = """\
# Visits

Written by `make docs` from a run; do not edit.

How many files one has to open to follow a value. A visit is a call into another file than the caller's, on the stack at
one of the moments below (`tests/kit/calls.py`). A function that has returned before the next moment is no visit, and
neither is the return to a caller. [Architecture](architecture.md#visits) says what the numbers are for.
"""


def visits_document() -> str:
    """docs/visits.md."""
    key, pod, option = ways()
    return "\n".join(
        [
            _HEAD,
            *_table("A Deployment's key, from the watch to the creation of a ReplicaSet", key),
            *_table("A new pod in the sandbox's API server", pod),
            *_table("The value of `--concurrent-deployment-syncs`", option),
        ]
    )


def most_of_a_folder(stops: Iterable[Stop]) -> int:
    """How often the folder is visited that is visited most: files of one folder in a row are one visit."""
    folders = [folder for folder, _ in groupby(stop.folder for stop in stops)]
    return max(map(folders.count, folders))


def _table(title: str, stops: Sequence[Stop]) -> list[str]:
    files, folders = {stop.file for stop in stops}, {stop.folder for stop in stops}
    numbers = f"{len(stops)} visits to {len(files)} files in {len(folders)} folders; the same folder at most "
    lines = [f"## {title}", "", f"{numbers}{most_of_a_folder(stops)} times.", ""]
    lines += ["| until | files of `kcm_cli`, with the function that is called |", "| --- | --- |"]
    for moment, group in groupby(stops, key=lambda stop: stop.moment):
        cells = ", ".join(f"`{stop.file}` {stop.function.strip('_')}" for stop in group)
        lines.append(f"| {moment} | {cells} |")
    return [*lines, ""]


if __name__ == "__main__":
    sys.stdout.write(visits_document())
