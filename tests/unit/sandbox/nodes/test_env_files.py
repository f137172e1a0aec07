"""Variables from files in emptyDirs."""

import pytest

from kcm_cli.sandbox.nodes.env_files import EnvFileError, value_in
from tests.kit.world import PODS, World, resource

pytestmark = pytest.mark.cluster(nodes=1)

CONFIG_MAPS = resource("configmaps")

MOUNTS = [{"name": "config", "mountPath": "/data"}]
VOLUMES = [{"name": "config", "emptyDir": {}}]
WRITTEN = r"echo COLOR=\'blue\' > /data/app.env; echo EMPTY=\'\' >> /data/app.env"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("KEY='a b'", "a b"),
        ("# KEY='no'\n\n \t\n  KEY='yes' # said\nKEY='later'\n", "yes"),
        ("KEY='one\ntwo\n' #", "one\ntwo\n"),
        ("KEY='$HOME \\n \"'", '$HOME \\n "'),
        ("OTHER= x y\nKEY='v'\r\n", "v"),
        ("KEY= 'v'\nKEY='w'", ""),
        ("", ""),
        ("OTHER='v'\n", ""),
        ("KEY='v'\nbroken", "v"),
        (f"KEY='v'\n#{'x' * 70000}", "v"),
        ("9a-b.c='x'\nKEY='=#'", "=#"),
    ],
)
def test_a_value_is_in_single_quotes(text: str, value: str) -> None:
    assert value_in(text, "KEY") == value


@pytest.mark.parametrize(
    "text",
    [
        "broken\nKEY='v'",
        "KEY ='v'",
        "='v'",
        "export KEY",
        "KEY=v",
        'KEY="v"',
        "KEY='v'x",
        "KEY='v' 'w'",
        "KEY='v\nw",
        "OTHER=\nKEY='v'",
        f"#{'x' * 70000}\nKEY='v'",
        f"KEY='{'é' * 40000}'",
    ],
)
def test_other_syntax_is_an_error(text: str) -> None:
    with pytest.raises(EnvFileError, match="couldn't parse env file"):
        value_in(text, "KEY")


def variable(name: str, key: str, path: str = "app.env", **ref: bool) -> dict:
    return {"name": name, "valueFrom": {"fileKeyRef": {"volumeName": "config", "path": path, "key": key, **ref}}}


async def played(world: World, env: list[dict], script: str, init: list[dict], **more: object) -> dict:
    """The status of the container after a few seconds."""
    container = {"name": "c", "image": "i", "command": ["sh", "-c", script], "env": env, **more}
    spec = {"initContainers": init, "containers": [container], "volumes": VOLUMES, "restartPolicy": "Never"}
    await world.pod("a", spec)
    await world.wait(5)
    return next(each for each in (await world.status("a"))["containerStatuses"] if each["name"] == "c")


def writer(script: str = WRITTEN, **more: object) -> dict:
    return {"name": "i", "image": "i", "command": ["sh", "-c", script], "volumeMounts": MOUNTS, **more}


async def test_an_optional_variable_without_a_value_overrides_nothing(world: World) -> None:
    await world.create(CONFIG_MAPS, {"metadata": {"name": "m"}, "data": {"A": "a", "B": "b"}})
    env = [variable("A", "NONE", optional=True), variable("B", "COLOR", optional=True)]
    script = '[ "$A$B" = "ablue" ] && exit 3; exit 4'
    status = await played(world, env, script, [writer()], envFrom=[{"configMapRef": {"name": "m"}}])
    assert status["state"]["terminated"]["exitCode"] == 3


async def test_a_container_reads_the_file_of_an_init_container(world: World) -> None:
    env = [variable("MINE", "COLOR"), variable("NO", "NONE", optional=True), {"name": "SAID", "value": "-$(MINE)-"}]
    script = '[ "$MINE$SAID" = "blue-blue-" ] && [ -z "${NO:-}" ] && exit 3; exit 4'
    status = await played(world, env, script, [writer()], args=[])
    assert status["state"]["terminated"]["exitCode"] == 3


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        (variable("A", "NONE"), 'environment variable key "NONE" not found in file "{}/app.env"'),
        (variable("A", "EMPTY"), 'environment variable key "EMPTY" not found in file "{}/app.env"'),
        (variable("A", "COLOR", "none.env"), "couldn't parse env file"),
        (variable("A", "COLOR", "none.env", optional=True), "couldn't parse env file"),
    ],
)
async def test_a_container_waits_for_what_is_missing(world: World, ref: dict, message: str) -> None:
    """Upstream reports this for an optional variable, too, if the file is missing."""
    status = await played(world, [ref], "exit 3", [writer()], volumeMounts=MOUNTS)
    uid = (await world.get(PODS, "a"))["metadata"]["uid"]
    text = message.format(f"/var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~empty-dir/config")
    assert status["state"] == {"waiting": {"reason": "CreateContainerConfigError", "message": text}}
    assert ("Failed", f"Error: {text}") in await world.events("a")


@pytest.mark.parametrize("init", [[writer("fetch > /data/app.env")], []])
async def test_files_that_unknown_programs_may_write_are_unknown(world: World, init: list[dict]) -> None:
    """An unknown program that ran before, or runs concurrently."""
    beside = {"name": "d", "image": "i", "volumeMounts": MOUNTS}
    container = {"name": "c", "image": "i", "command": ["sh", "-c", "sleep 9"], "env": [variable("A", "COLOR")]}
    spec = {"initContainers": init, "containers": [container, beside], "volumes": VOLUMES}
    await world.pod("a", spec)
    await world.wait(5)
    assert (await world.status("a"))["phase"] == "Running"


async def test_a_sidecar_writes_before_its_startup_probe_succeeds(world: World) -> None:
    probe = {"exec": {"command": ["cat", "/tmp/up"]}, "periodSeconds": 1}
    sidecar = writer(f"sleep 2; {WRITTEN}; touch /tmp/up; sleep 999", restartPolicy="Always", startupProbe=probe)
    await played(world, [variable("A", "COLOR")], '[ "$A" = blue ] && exit 3; exit 4', [sidecar])
    await world.wait(5)
    status = (await world.status("a"))["containerStatuses"][0]
    assert status["state"]["terminated"]["exitCode"] == 3


async def test_a_restarted_container_reads_its_file_again(world: World) -> None:
    script = r"[ $A = green ] && exit 4; echo COLOR=\'green\' > /data/app.env; exit 3"
    container = {"name": "c", "image": "i", "command": ["sh", "-c", script], "env": [variable("A", "COLOR")]}
    container |= {"volumeMounts": MOUNTS}
    spec = {"initContainers": [writer()], "containers": [container], "volumes": VOLUMES}
    await world.pod("a", {**spec, "restartPolicy": "OnFailure"})
    await world.wait(60)
    (status,) = (await world.status("a"))["containerStatuses"]
    assert status["lastState"]["terminated"]["exitCode"] == 4
