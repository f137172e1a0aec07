"""Admission of pods: service account, priority, tolerations, runtime class, topology."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.kit.api import Answer, Api, pod

Tree = dict[str, Any]
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


async def create(api: Api, made: Tree, namespace: str = "") -> Answer:
    return await api.post(f"/api/v1/namespaces/{namespace or await api.namespace()}/pods", made)


async def account(api: Api, namespace: str, name: str, **settings: Any) -> None:
    annotations = settings.pop("annotations", {})
    metadata = {"name": name, "annotations": annotations}
    await api.make(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": metadata, **settings})


# Namespaces


async def test_nothing_is_created_in_a_missing_namespace(api: Api) -> None:
    answer = await create(api, pod(), "nowhere")
    assert (answer.status, answer.message) == (404, 'namespaces "nowhere" not found')


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_namespaces_that_may_not_be_deleted(api: Api, name: str) -> None:
    answer = await api.delete(f"/api/v1/namespaces/{name}")
    assert answer.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


async def test_nothing_is_created_in_a_terminating_namespace(api: Api) -> None:
    namespace = await api.namespace()
    await api.make(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "old"}})
    await api.delete(f"/api/v1/namespaces/{namespace}")
    answer = await create(api, pod(), namespace)
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    assert (answer.status, answer.message) == (403, f'pods "p" is forbidden: {why}')
    assert answer.causes == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
    ]


# ServiceAccount


async def test_a_pod_gets_the_default_account_and_its_token(api: Api) -> None:
    made = (await create(api, pod(initContainers=[{"name": "i", "image": "i"}]))).doc
    spec = made["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    volume = spec["volumes"][0]
    assert volume["name"].startswith("kube-api-access-") and len(volume["name"]) == 21
    sources = volume["projected"]["sources"]
    assert [next(iter(source)) for source in sources] == ["serviceAccountToken", "configMap", "downwardAPI"]
    assert sources[0]["serviceAccountToken"] == {"expirationSeconds": 3607, "path": "token"}
    mount = {"name": volume["name"], "readOnly": True, "mountPath": TOKEN_PATH}
    assert spec["containers"][0]["volumeMounts"] == spec["initContainers"][0]["volumeMounts"] == [mount]


@pytest.mark.parametrize(
    ("settings", "spec", "mounted"),
    [
        pytest.param({}, {}, True, id="by default"),
        pytest.param({"automountServiceAccountToken": False}, {}, False, id="account"),
        pytest.param({}, {"automountServiceAccountToken": False}, False, id="pod"),
        pytest.param(
            {"automountServiceAccountToken": False}, {"automountServiceAccountToken": True}, True, id="pod wins"
        ),
    ],
)
async def test_the_token_is_mounted_where_it_is_wanted(api: Api, settings: Tree, spec: Tree, mounted: bool) -> None:
    namespace = await api.namespace()
    await account(api, namespace, "a", **settings)
    made = (await create(api, pod(serviceAccountName="a", **spec), namespace)).doc
    assert bool(made["spec"].get("volumes")) is mounted


async def test_an_explicit_mount_is_kept(api: Api) -> None:
    made = pod(volumes=[{"name": "mine", "emptyDir": {}}])
    made["spec"]["containers"][0]["volumeMounts"] = [{"name": "mine", "mountPath": TOKEN_PATH}]
    spec = (await create(api, made)).doc["spec"]
    assert [volume["name"] for volume in spec["volumes"]] == ["mine"]
    assert [mount["name"] for mount in spec["containers"][0]["volumeMounts"]] == ["mine"]


@pytest.mark.parametrize(
    ("own", "expected"),
    [([], ["from-account"]), (["own"], ["own"])],
    ids=["of the account", "of the pod"],
)
async def test_image_pull_secrets(api: Api, own: list[str], expected: list[str]) -> None:
    namespace = await api.namespace()
    await account(api, namespace, "a", imagePullSecrets=[{"name": "from-account"}])
    spec = {"imagePullSecrets": [{"name": name} for name in own]} if own else {}
    made = (await create(api, pod(serviceAccountName="a", **spec), namespace)).doc
    assert [each["name"] for each in made["spec"]["imagePullSecrets"]] == expected


async def test_the_service_account_must_exist(api: Api) -> None:
    namespace = await api.namespace()
    answer = await create(api, pod(serviceAccountName="ghost"), namespace)
    why = f'error looking up service account {namespace}/ghost: serviceaccount "ghost" not found'
    assert (answer.status, answer.message) == (403, f'pods "p" is forbidden: {why}')


async def test_an_account_may_restrict_the_secrets_of_its_pods(api: Api) -> None:
    namespace = await api.namespace()
    await account(
        api, namespace, "a",
        annotations={"kubernetes.io/enforce-mountable-secrets": "true"}, secrets=[{"name": "known"}],
    )  # fmt: skip
    volumes = [{"name": "v", "secret": {"secretName": "other"}}]
    answer = await create(api, pod(serviceAccountName="a", volumes=volumes), namespace)
    assert answer.message == (
        'pods "p" is forbidden: volume with secret.secretName="other" is not allowed because service account a does '
        "not reference that secret"
    )
    volumes[0]["secret"] = {"secretName": "known"}
    assert (await create(api, pod(serviceAccountName="a", volumes=volumes), namespace)).status == 201


# Priority


@pytest.fixture
async def classes(api: Api) -> None:
    for name, value, more in (("low", 5, {}), ("never", 7, {"preemptionPolicy": "Never"})):
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        await api.make(path, {"metadata": {"name": name}, "value": value, **more})


@pytest.mark.usefixtures("classes")
@pytest.mark.parametrize(
    ("spec", "priority", "policy"),
    [
        pytest.param({}, 0, "PreemptLowerPriority", id="without a class"),
        pytest.param({"priorityClassName": "low"}, 5, "PreemptLowerPriority", id="class"),
        pytest.param({"priorityClassName": "never"}, 7, "Never", id="policy of the class"),
        pytest.param({"priorityClassName": "system-node-critical"}, 2000001000, "PreemptLowerPriority", id="built in"),
        pytest.param({"priorityClassName": "low", "priority": 5}, 5, "PreemptLowerPriority", id="the same number"),
    ],
)
async def test_the_class_gives_the_priority(api: Api, spec: Tree, priority: int, policy: str) -> None:
    made = (await create(api, pod(**spec))).doc["spec"]
    assert (made["priority"], made["preemptionPolicy"]) == (priority, policy)


@pytest.mark.usefixtures("classes")
@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({"priorityClassName": "ghost"}, "no PriorityClass with name ghost was found", id="no class"),
        pytest.param(
            {"priorityClassName": "low", "priority": 6},
            "the integer value of priority (6) must not be provided in pod spec; priority admission controller "
            "computed 5 from the given PriorityClass name",
            id="another number",
        ),
        pytest.param(
            {"priorityClassName": "never", "preemptionPolicy": "PreemptLowerPriority"},
            "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority "
            "admission controller computed Never from the given PriorityClass name",
            id="another policy",
        ),
    ],
)
async def test_priorities_that_are_refused(api: Api, spec: Tree, why: str) -> None:
    answer = await create(api, pod(**spec))
    assert (answer.status, answer.message) == (403, f'pods "p" is forbidden: {why}')


async def test_one_class_may_be_the_default(api: Api) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await api.make(path, {"metadata": {"name": "standard"}, "value": 42, "globalDefault": True})
    made = (await create(api, pod())).doc["spec"]
    assert (made["priorityClassName"], made["priority"]) == ("standard", 42)
    answer = await api.post(path, {"metadata": {"name": "second"}, "value": 1, "globalDefault": True})
    why = "PriorityClass standard is already marked as default. Only one default can exist"
    assert answer.message == f'priorityclasses.scheduling.k8s.io "second" is forbidden: {why}'
    assert (await api.merge(f"{path}/standard", {"description": "still the default"})).status == 200
    await api.delete(f"{path}/standard")


# Tolerations


def keys(made: Tree) -> list[tuple[str, int | None]]:
    return [(each.get("key", ""), each.get("tolerationSeconds")) for each in made["spec"]["tolerations"]]


NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param([], [(NOT_READY, 300), (UNREACHABLE, 300)], id="both"),
        pytest.param(
            [{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
            [(NOT_READY, 5), (UNREACHABLE, 300)],
            id="one's own",
        ),
        pytest.param([{"operator": "Exists"}], [("", None)], id="everything is borne already"),
        pytest.param(
            [{"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"}],
            [(NOT_READY, None), (NOT_READY, 300), (UNREACHABLE, 300)],
            id="another effect",
        ),
    ],
)
async def test_default_tolerations_are_added(api: Api, own: list[Tree], expected: list[tuple[str, int | None]]) -> None:
    assert keys((await create(api, pod(tolerations=own))).doc) == expected


# RuntimeClass


@pytest.fixture
async def runtimes(api: Api) -> None:
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    toleration = {"key": "t", "operator": "Exists", "effect": "NoSchedule"}
    scheduling = {"nodeSelector": {"disk": "ssd"}, "tolerations": [toleration]}
    more = {"overhead": {"podFixed": {"cpu": "100m"}}, "scheduling": scheduling}
    await api.make(path, {"metadata": {"name": "heavy"}, "handler": "h", **more})
    await api.make(path, {"metadata": {"name": "light"}, "handler": "h"})


@pytest.mark.usefixtures("runtimes")
async def test_a_runtime_class_gives_overhead_and_scheduling(api: Api) -> None:
    spec = (await create(api, pod(runtimeClassName="heavy", nodeSelector={"a": "b"}))).doc["spec"]
    assert spec["overhead"] == {"cpu": "100m"}
    assert spec["nodeSelector"] == {"a": "b", "disk": "ssd"}
    assert "t" in [each.get("key") for each in spec["tolerations"]]


@pytest.mark.usefixtures("runtimes")
async def test_very_many_tolerations_are_not_compared(api: Api) -> None:
    few = [{"key": "t", "operator": "Exists"}, {"key": "t", "operator": "Exists", "effect": "NoSchedule"}]
    many = few + [{"key": f"k{number}", "operator": "Exists"} for number in range(300)]
    for given, kept in ((few, 1), (many, 3)):
        spec = (await create(api, pod(runtimeClassName="heavy", tolerations=given))).doc["spec"]
        assert len([each for each in spec["tolerations"] if each["key"] == "t"]) == kept


@pytest.mark.usefixtures("runtimes")
@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({"runtimeClassName": "ghost"}, 'pod rejected: RuntimeClass "ghost" not found', id="no class"),
        pytest.param(
            {"runtimeClassName": "heavy", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            id="other overhead",
        ),
        pytest.param(
            {"runtimeClassName": "light", "overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            id="overhead without reason",
        ),
        pytest.param(
            {"runtimeClassName": "heavy", "nodeSelector": {"disk": "tape"}},
            "conflict: runtimeClass.scheduling.nodeSelector[disk] = ssd; pod.spec.nodeSelector[disk] = tape",
            id="conflict",
        ),
    ],
)
async def test_runtime_classes_that_do_not_fit(api: Api, spec: Tree, why: str) -> None:
    answer = await create(api, pod(**spec))
    assert (answer.status, answer.message) == (403, f'pods "p" is forbidden: {why}')


# Nodes


ZONE = {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "other": "o"}


async def bound_at_creation(api: Api, namespace: str) -> Tree:
    return (await create(api, pod(nodeName="zoned"), namespace)).doc


async def bound_later(api: Api, namespace: str) -> Tree:
    await create(api, pod(), namespace)
    path = f"/api/v1/namespaces/{namespace}/pods/p"
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "zoned"}}
    assert (await api.post(f"{path}/binding", binding)).status == 201
    return (await api.get(path)).doc


@pytest.mark.parametrize("bind", [bound_at_creation, bound_later])
async def test_a_pod_gets_the_topology_of_its_node(api: Api, bind: Callable[[Api, str], Awaitable[Tree]]) -> None:
    if (await api.get("/api/v1/nodes/zoned")).status == 404:
        node = await api.make("/api/v1/nodes", {"metadata": {"name": "zoned", "labels": ZONE}})
        assert node["spec"]["taints"] == [{"key": NOT_READY, "effect": "NoSchedule"}]
    labels = (await bind(api, await api.namespace()))["metadata"]["labels"]
    assert labels == {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"}
