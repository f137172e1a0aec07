"""Create, update and patch: names, versions, dry runs, retries, errors."""

import asyncio
import re
from typing import Any

import pytest

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.types import Attributes, User
from tests.kit.api import CONFIG_MAPS, Api

MERGE = {"content-type": "application/merge-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}


async def test_generated_names_are_tried_again(api: Api) -> None:
    async def new(api: Api) -> Any:
        return await api.json("POST", CONFIG_MAPS, {"metadata": {"generateName": "g-"}}, status=201)

    made = {(await new(api))["metadata"]["name"] for _ in range(20)}
    assert len(made) == 20
    choices = api.server.api.core.random.choices
    taken = [list("aaaaa"), list("aaaaa"), list("bbbbb")]
    api.server.api.core.random.choices = lambda *_, **__: taken.pop(0)  # type: ignore[method-assign,assignment]
    assert (await new(api))["metadata"]["name"] == "g-aaaaa"
    assert (await new(api))["metadata"]["name"] == "g-bbbbb"
    taken += [list("aaaaa")] * 8
    refused = await api.json("POST", CONFIG_MAPS, {"metadata": {"generateName": "g-"}}, status=409)
    assert "was not able to generate a unique name" in refused["message"]
    api.server.api.core.random.choices = choices  # type: ignore[method-assign]


@pytest.mark.parametrize("finalizers", [[], ["a.b/c"]])
async def test_a_name_beside_that_of_generated_ones_that_is_taken(api: Api, finalizers: list[str]) -> None:
    body = {"metadata": {"name": "g-x", "generateName": "g-", "finalizers": finalizers}}
    await api.json("POST", CONFIG_MAPS, body, status=201)
    if finalizers:
        await api.json("DELETE", f"{CONFIG_MAPS}/g-x")
    refused = await api.json("POST", CONFIG_MAPS, body, status=409)
    text = 'configmaps "g-x" already exists, the server was not able to generate a unique name for the object'
    assert refused["message"] == ("object is being deleted: " if finalizers else "") + text
    assert refused["details"]["retryAfterSeconds"] == 1


async def test_repeated_bodies_create_independent_objects(api: Api) -> None:
    body = {"metadata": {"generateName": "g-", "labels": {"a": "b"}}, "data": {"x": "1"}}
    first = await api.json("POST", CONFIG_MAPS, body, status=201)
    path = f"{CONFIG_MAPS}/{first['metadata']['name']}"
    await api.json("PATCH", path, {"metadata": {"labels": {"a": "c"}}}, headers=MERGE)
    others = [await api.json("POST", CONFIG_MAPS, body, status=201) for _ in range(2)]
    await asyncio.sleep(1)
    later = await api.json("POST", CONFIG_MAPS, body, status=201)
    own = ("name", "uid", "resourceVersion")
    responses = [{k: v for k, v in each["metadata"].items() if k not in own} for each in (first, *others, later)]
    assert responses[0] == responses[1] == responses[2]
    now = later["metadata"]["creationTimestamp"]
    assert [entry["time"] for entry in later["metadata"]["managedFields"]] == [now]
    assert now != first["metadata"]["creationTimestamp"]
    assert [each["data"] for each in (*others, later)] == [{"x": "1"}] * 3
    elsewhere = await api.json("POST", CONFIG_MAPS.replace("default", "kube-system"), body, status=201)
    assert elsewhere["metadata"]["namespace"] == "kube-system"
    other = await api.json("POST", CONFIG_MAPS, body, status=201, query={"fieldManager": "other"})
    assert [entry["manager"] for entry in other["metadata"]["managedFields"]] == ["other"]


async def test_raw_data_is_compared_by_value(api: Api) -> None:
    revisions = "/apis/apps/v1/namespaces/default/controllerrevisions"
    body = b'{"metadata": {"name": "r"}, "revision": 1, "data": {"b": 1.50, "a": [1, 2], "a": [1]}}'
    made = await api.call("POST", revisions, body)
    assert made.status == 201 and b'"data":{"b":1.5,"a":[1]}' in made.body
    labels = {"metadata": {"labels": {"a": "b"}}}
    for kind in ("application/merge-patch+json", "application/strategic-merge-patch+json"):
        await api.json("PATCH", f"{revisions}/r", labels, headers={"content-type": kind})
    await api.json("PUT", f"{revisions}/r", body.replace(b" ", b"").replace(b"1.50", b"1.5"))
    changed = {"metadata": {"name": "r"}, "revision": 1, "data": {"b": 2}}
    refused = await api.json("PUT", f"{revisions}/r", changed, status=422)
    assert refused["message"].endswith('data: Invalid value: {"b":2}: field is immutable')


async def test_errors_show_a_strategic_merge_patch_without_the_nulls_that_were_dropped(api: Api) -> None:
    await api.config_map("a", data={"k": "v"})
    patch = {"metadata": {"labels": {"z": None}}, "data": {"k": 5, "old": None}}
    headers = {"content-type": "application/strategic-merge-patch+json"}
    refused = await api.json("PATCH", f"{CONFIG_MAPS}/a", patch, status=422, headers=headers)
    assert '"map[data:map[k:5 old:<nil>] metadata:map[labels:map[]]]"' in refused["message"]


async def test_failed_preconditions_of_events_name_their_core_kind(api: Api) -> None:
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
    await api.json("POST", "/api/v1/namespaces/default/events", event, status=201)
    path = "/apis/events.k8s.io/v1/namespaces/default/events/e"
    refused = await api.json("DELETE", path, {"preconditions": {"uid": "x"}}, status=409)
    assert refused["details"] == {"name": "e", "kind": "Event"}


async def test_an_object_whose_fields_cannot_be_owned_cannot_be_applied(api: Api) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts"
    await api.json("POST", path, {"metadata": {"name": "s"}, "secrets": [{"kind": "Secret"}]}, status=201)
    config = {"apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": True}
    query = {"fieldManager": "m"}
    refused = await api.json("PATCH", f"{path}/s", config, status=500, headers=APPLY, query=query)
    assert refused["message"] == (
        "failed to create manager for existing fields: failed to convert new object (default/s; /v1, "
        "Kind=ServiceAccount) to smd typed: .secrets: element 0: associative list with keys has an element that "
        'omits all key fields ["name"] (and doesn\'t have default values for any key fields)'
    )


async def test_unknown_fields_of_yaml_and_merge_patches_are_listed_in_the_order_of_their_names(api: Api) -> None:
    def unknown(response: Any) -> list[str]:
        return re.findall(r'unknown field \\"([^"\\]+)', response.headers["warning"])

    yaml = {"content-type": "application/yaml"}
    body = b"metadata: {name: c, zz: 1}\nzz: 1\nbb: 1\n"
    made = await api.call("POST", CONFIG_MAPS, body, headers=yaml)
    assert unknown(made) == ["bb", "metadata.zz", "zz"]
    patch = {"zz": 1, "metadata": {"zz": 1, "labels": {"a": "b"}, "bb": 1}, "bb": 1}
    patched = await api.call("PATCH", f"{CONFIG_MAPS}/c", patch, headers=MERGE)
    assert unknown(patched) == ["bb", "metadata.bb", "metadata.zz", "zz"]


async def test_unknown_fields_cause_a_warning_in_each_request(api: Api) -> None:
    body = {"metadata": {"generateName": "g-"}, "no": "field"}
    responses = [(await api.call("POST", CONFIG_MAPS, body)).headers.get("warning", "") for _ in range(2)]
    assert ['unknown field \\"no\\"' in each for each in responses] == [True, True]
    modes = ("Ignore", "Warn", "Strict")
    answers = [await api.call("POST", CONFIG_MAPS, body, query={"fieldValidation": mode}) for mode in modes]
    assert [each.status for each in answers] == [201, 201, 400]
    assert ["warning" in each.headers for each in answers] == [False, True, False]


async def test_a_patch_that_lost_a_race_is_retried_on_the_new_version(api: Api) -> None:
    await api.config_map("a", data={"x": "1"})
    hold = asyncio.Event()
    admission = api.server.api.core.admission
    validate = admission.validate
    waited: list[str] = []

    async def slow(attrs: Attributes) -> None:
        await validate(attrs)
        if attrs.user.name == "slow" and not waited:
            waited.append(attrs.name)
            await hold.wait()

    admission.validate = slow  # type: ignore[method-assign]
    slowly = Api(api.server, User("slow", groups=("system:masters",)))
    first = asyncio.create_task(slowly.json("PATCH", f"{CONFIG_MAPS}/a", {"data": {"y": "2"}}, headers=MERGE))
    await asyncio.sleep(1)
    await api.json("PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "3"}}, headers=MERGE)
    hold.set()
    assert (await first)["data"] == {"x": "3", "y": "2"}


async def test_a_replacement_that_lost_a_race_is_a_conflict_if_it_names_its_version(api: Api) -> None:
    old = await api.config_map("a")
    await api.json("PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "3"}}, headers=MERGE)
    refused = await api.json("PUT", f"{CONFIG_MAPS}/a", old, status=409)
    assert refused["reason"] == "Conflict"
    del old["metadata"]["resourceVersion"]
    assert "data" not in await api.json("PUT", f"{CONFIG_MAPS}/a", old)


async def test_replacing_another_incarnation_is_a_conflict(api: Api) -> None:
    await api.config_map("a")
    other = {"metadata": {"name": "a", "uid": "00000000-0000-0000-0000-000000000000"}}
    refused = await api.json("PUT", f"{CONFIG_MAPS}/a", other, status=409)
    assert "Key: /registry/configmaps/default/a" in refused["message"]


async def test_a_write_without_change_is_no_event(api: Api) -> None:
    made = await api.config_map("a", data={"x": "1"})
    watch = await api.watch(CONFIG_MAPS, resourceVersion=made["metadata"]["resourceVersion"])
    await asyncio.sleep(5)
    again = await api.json("PUT", f"{CONFIG_MAPS}/a", {"metadata": {"name": "a"}, "data": {"x": "1"}})
    patched = await api.json("PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "1"}}, headers=MERGE)
    await watch.end()
    assert again == made == patched
    assert watch.events == []


async def test_a_dry_run_changes_nothing(api: Api) -> None:
    query = {"dryRun": "All"}
    tried = await api.json("POST", CONFIG_MAPS, {"metadata": {"name": "a"}}, status=201, query=query)
    assert "resourceVersion" not in tried["metadata"]
    await api.json("GET", f"{CONFIG_MAPS}/a", status=404)
    made = await api.config_map("a")
    tried = await api.json("PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "1"}}, headers=MERGE, query=query)
    assert tried["data"] == {"x": "1"}
    await api.json("DELETE", f"{CONFIG_MAPS}/a", query=query)
    assert await api.json("GET", f"{CONFIG_MAPS}/a") == made


async def test_apply_creates_and_then_owns(api: Api) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1'}\n"
    query = {"fieldManager": "me"}
    made = await api.json("PATCH", f"{CONFIG_MAPS}/a", body, headers=APPLY, query=query, status=201)
    assert made["metadata"]["managedFields"][0]["operation"] == "Apply"
    again = await api.json("PATCH", f"{CONFIG_MAPS}/a", body, headers=APPLY, query=query)
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    "how", [{"method": "PUT"}, {"method": "PATCH", "headers": APPLY, "query": {"fieldManager": "m"}}]
)
async def test_what_put_or_apply_creates_is_not_being_deleted(api: Api, how: dict[str, Any]) -> None:
    told = {"creationTimestamp": "2020-01-01T00:00:00Z", "deletionTimestamp": "2020-01-01T00:00:00Z"}
    meta = {"name": "l", "finalizers": ["a.b/c"], "deletionGracePeriodSeconds": 7, **told}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta}
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
    made = await api.json(path=path, body=body, status=201, **how)
    assert made["metadata"].keys() & {"deletionTimestamp", "deletionGracePeriodSeconds"} == set()
    assert made["metadata"]["creationTimestamp"] > "2029"
    assert await api.json("GET", path) == made


async def test_an_object_outlives_its_namespace_until_its_finalizer_is_removed(api: Api) -> None:
    path = f"/api/v1/namespaces/{await api.namespace(account=False)}"
    await api.make(f"{path}/configmaps", {"metadata": {"name": "a", "finalizers": ["a.b/c"]}})
    await api.delete(f"{path}/configmaps/a")
    store, name = api.server.store, path.rpartition("/")[2]
    store.delete(GVR("", "v1", "namespaces"), "", name)
    assert (await api.post(f"{path}/configmaps", {"metadata": {"name": "b"}})).status == 404
    await api.json("PATCH", f"{path}/configmaps/a", {"metadata": {"finalizers": None}}, headers=MERGE)
    assert (await api.get(f"{path}/configmaps/a")).status == 404


async def test_putting_a_new_name_needs_the_right_to_create(api: Api) -> None:
    rules = [{"apiGroups": [""], "resources": ["endpoints"], "verbs": ["update"]}]
    base = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    await api.json("POST", f"{base}/roles", {"metadata": {"name": "r"}, "rules": rules}, status=201)
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}],
    }
    await api.json("POST", f"{base}/rolebindings", binding, status=201)
    path, body = "/api/v1/namespaces/default/endpoints/e", {"metadata": {"name": "e"}}
    refused = await Api(api.server, User("eve")).json("PUT", path, body, status=403)
    assert 'cannot create resource "endpoints"' in refused["message"]
    await api.json("PUT", path, body, status=201)
    await Api(api.server, User("eve")).json("PUT", path, body)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("POST", CONFIG_MAPS, {"metadata": {}}, 422, "name or generateName is required"),
        ("POST", CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "x"}}, 400, "namespace of the provided object"),
        ("PUT", f"{CONFIG_MAPS}/a", {"metadata": {"name": "b"}}, 400, "(b) does not match the name on the URL (a)"),
        ("PUT", f"{CONFIG_MAPS}/a", {"metadata": {}}, 400, "(a based on URL) was undeterminable"),
        ("PATCH", f"{CONFIG_MAPS}/a", {}, 415, "415: Unsupported Media Type"),
        ("POST", f"{CONFIG_MAPS}/a", {}, 405, "does not allow this method"),
        ("DELETE", "/api/v1/configmaps", None, 405, "does not allow this method"),
        ("GET", "/api/v1/namespaces/default/pods/p/exec", None, 404, 'pods "p" not found'),
    ],
    ids=["no name", "namespace", "other name", "nameless put", "patch type", "post to object", "delete all", "kubelet"],
)
async def test_refusals(api: Api, method: str, path: str, body: object, status: int, message: str) -> None:
    assert message in (await api.json(method, path, body, status=status))["message"]


_UNKNOWN = "the body of the request was in an unknown format - accepted media types include: "


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ("application/merge-patch+json;x", ""),
        ("application/merge-patch+json ;x", _UNKNOWN),
        ("application/merge-patch+json,application/json", _UNKNOWN),
        ("application/json", "415: Unsupported Media Type"),
    ],
)
async def test_media_types_of_patches(api: Api, sent: str, message: str) -> None:
    await api.config_map("a")
    answer = await api.call("PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "y"}}, content_type=sent)
    assert (answer.status, answer.message[: len(message)] if message else "") == (415 if message else 200, message)


@pytest.mark.parametrize(
    ("metadata", "data", "why"),
    [
        ({"creationTimestamp": "x"}, {}, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ({}, {"a": "x"}, "error decoding from json: illegal base64 data at input byte 0"),
    ],
    ids=["time", "base64"],
)
async def test_an_applied_value_that_its_type_cannot_read(api: Api, metadata: Any, data: Any, why: str) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", **metadata}, "data": data}
    options = {"query": {"fieldManager": "m"}, "headers": {"content-type": "application/apply-patch+yaml"}}
    answer = await api.json("PATCH", "/api/v1/namespaces/default/secrets/s", body, status=500, **options)
    said = "unable to convert unstructured object to /v1, Kind=Secret"
    assert answer["message"] == f"failed to convert new object (/s; /v1, Kind=Secret) to proper version: {said}: {why}"


CLAIMS, JOBS = "/api/v1/namespaces/default/persistentvolumeclaims", "/apis/batch/v1/namespaces/default/jobs"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
JOB = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}


@pytest.mark.parametrize(
    ("path", "metadata", "spec", "writes"),
    [
        (CLAIMS, {}, CLAIM, 1),
        (JOBS, {}, JOB, 1),
        (JOBS, {"labels": {"own": "1"}}, JOB, 0),
        (CONFIG_MAPS, {}, None, 0),
    ],
    ids=["claim", "job", "labelled-job", "config-map"],
)
async def test_writing_back_an_object_completed_on_read_is_one_write(
    api: Api, path: str, metadata: dict[str, Any], spec: Any, writes: int
) -> None:
    made = await api.json("POST", path, {"metadata": {"name": "o", **metadata}, "spec": spec}, status=201)
    versions = [made["metadata"]["resourceVersion"]]
    for _ in range(3):
        same = await api.json("PATCH", f"{path}/o", {}, headers=MERGE)
        versions.append(same["metadata"]["resourceVersion"])
    assert len(set(versions)) == 1 + writes
    assert versions[1] == versions[-1]


async def test_the_labels_that_a_job_takes_from_its_template_are_not_checked_twice(api: Api) -> None:
    long = "n" * 64
    refused = await api.json("POST", JOBS, {"metadata": {"name": long}, "spec": JOB}, status=422)
    assert [one["field"] for one in refused["details"]["causes"]] == ["spec.template.labels"] * 2
    made = await api.json("POST", JOBS, {"metadata": {"name": "o"}, "spec": JOB}, status=201)
    assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"]
    assert made["metadata"]["labels"]["job-name"] == "o"


async def test_a_config_map_that_is_too_large(api: Api) -> None:
    body = {"metadata": {"name": "c"}, "data": {"a": "x" * (1 << 20), "b": "y"}}
    refused = await api.json("POST", CONFIG_MAPS, body, status=422)
    assert refused["message"] == 'ConfigMap "c" is invalid: []: Too long: may not be more than 1048576 bytes'


async def test_options_of_another_kind_are_of_the_group_of_options(api: Api) -> None:
    for said, version in (({}, "meta.k8s.io/v1"), ({"apiVersion": "v1"}, "v1")):
        refused = await api.json("DELETE", f"{CONFIG_MAPS}/c", {"kind": "Foo", **said}, status=400)
        assert refused["message"].startswith(f'no kind "Foo" is registered for version "{version}" in scheme')


async def test_a_dry_run_of_a_service_returns_addresses_that_are_not_allocated(api: Api) -> None:
    spec = {"type": "NodePort", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}
    path, query = "/api/v1/namespaces/default/services", {"dryRun": "All"}
    made = await api.json("POST", path, {"metadata": {"name": "s"}, "spec": spec}, status=201, query=query)
    assert made["spec"]["clusterIPs"] == ["10.0.0.0"]
    assert [port["nodePort"] for port in made["spec"]["ports"]] == [32769, 32770]
    taken = {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}
    body = {"metadata": {"name": "s"}, "spec": taken}
    assert (await api.json("POST", path, body, status=201, query=query))["spec"]["clusterIP"] == "10.0.0.1"
    assert "provided IP is already allocated" in (await api.json("POST", path, body, status=422))["message"]


SERVICE = "/api/v1/namespaces/default/services/s"


async def test_an_update_of_the_status_creates_a_service(api: Api) -> None:
    body = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    made = await api.json("PUT", f"{SERVICE}/status", body, status=201)
    assert "clusterIP" not in made["spec"], "as upstream"
    other = {**body, "metadata": {"name": "s", "uid": "u"}}
    assert (
        "in object meta: " + made["metadata"]["uid"]
        in (await api.json("PUT", f"{SERVICE}/status", other, status=409))["message"]
    )
    missing = f"{SERVICE}2/status"
    applied = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s2"}, "spec": {"type": "ExternalName"}}
    why = await api.json("PATCH", missing, applied, status=422, headers=APPLY, query={"fieldManager": "m"})
    assert why["details"]["causes"][0]["field"] == "spec.externalName"
    await api.json("PATCH", missing, {}, status=404, headers={"content-type": "application/merge-patch+json"})


@pytest.mark.parametrize(
    ("query", "key"), [({}, "/registry/services/specs/default/s"), ({"dryRun": "All"}, "/services/specs/default/s")]
)
async def test_a_missing_object_has_no_uid(api: Api, query: dict[str, str], key: str) -> None:
    body = {"metadata": {"name": "s", "uid": "u"}, "spec": {"ports": [{"port": 80}]}}
    responses = (await api.json("PUT", SERVICE, body, status=409, query=query))["message"]
    assert f"Key: {key}," in responses and responses.endswith("UID in precondition: u, UID in object meta: ")


@pytest.mark.parametrize("name", ["there", "new"])
async def test_a_resource_version_that_is_not_a_number(api: Api, name: str) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
    await api.json("POST", roles, {"metadata": {"name": "there"}}, status=201)
    body = {"metadata": {"name": name, "resourceVersion": "None"}, "rules": [{}]}
    responses = await api.json("PUT", f"{roles}/{name}", body, status=500)
    assert responses["message"] == 'strconv.ParseUint: parsing "None": invalid syntax'
    elsewhere = await api.json("PUT", f"{roles.replace('default', 'none')}/{name}", body, status=404)
    assert elsewhere["message"] == 'namespaces "none" not found', "admission comes first"


@pytest.mark.parametrize(("version", "status"), [("v1", 201), ("0", 201), (str(2**64), 201), ("7", 500)])
async def test_a_resource_version_of_a_new_object(api: Api, version: str, status: int) -> None:
    body = {"metadata": {"name": "a", "resourceVersion": version}}
    answer = await api.json("POST", CONFIG_MAPS, body, status=status)
    refused = "resourceVersion should not be set on objects to be created"
    assert answer.get("message") == (refused if status == 500 else None)
    assert status == 500 or answer["metadata"]["resourceVersion"] not in ("0", version)


async def test_a_status_update_keeps_the_template_generation(api: Api) -> None:
    path, generation = "/apis/apps/v1/namespaces/default/daemonsets", "deprecated.daemonset.template.generation"
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pod}}
    await api.json("POST", path, body, status=201)
    shown = await api.json("PUT", f"{path}/d/status", body)
    assert shown["metadata"]["annotations"] == {generation: "1"}


SCALERS = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"


async def test_fields_that_the_storage_version_adds_have_an_owner(api: Api) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"maxReplicas": 5, "scaleTargetRef": target}
    made = await api.json("POST", SCALERS, {"metadata": {"name": "h"}, "spec": spec}, status=201)
    assert made["spec"]["targetCPUUtilizationPercentage"] == 80
    assert "f:targetCPUUtilizationPercentage" in made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]


async def test_a_patch_of_nothing_is_no_write_in_another_version_either(api: Api) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    body = {"metadata": {"name": "h"}, "spec": {"maxReplicas": 5, "scaleTargetRef": target}}
    made = await api.json("POST", SCALERS, body, status=201)
    headers = {"content-type": "application/merge-patch+json"}
    for path in (f"{SCALERS}/h", f"{SCALERS}/h/status"):
        again = await api.json("PATCH", path, {"spec": {"maxReplicas": 5}}, headers=headers)
        assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@pytest.mark.parametrize(("query", "key"), [({}, "/registry/pods/default/p"), ({"dryRun": "All"}, "/pods/default/p")])
async def test_a_creation_has_a_location_header(api: Api, query: dict[str, str], key: str) -> None:
    pods, spec = "/api/v1/namespaces/default/pods", {"containers": [{"name": "c", "image": "i"}]}
    pod = {"metadata": {"name": "p"}, "spec": spec}
    await api.json("POST", pods, pod, status=201)
    binding = {"metadata": {"name": "p", "uid": "u"}, "target": {"kind": "Node", "name": "n"}}
    for method, path, body in (
        ("POST", f"{pods}/p/binding", binding),
        ("PUT", f"{pods}/p", {**pod, "metadata": {"name": "p", "uid": "u"}}),
    ):
        assert f"Key: {key}," in (await api.json(method, path, body, status=409, query=query))["message"]


REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize(
    ("path", "body", "owned"),
    [
        (
            "serviceaccounts/default/token",
            {"spec": {"audiences": ["a"]}},
            {"f:audiences": {}, "f:expirationSeconds": {}},
        ),
        ("pods/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 0}}, None),
        (REVIEW, {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}, None),
    ],
)
async def test_admission_sees_owners_of_fields_that_are_dropped(
    api: Api, monkeypatch: pytest.MonkeyPatch, path: str, body: Any, owned: Any
) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await api.json("POST", "/api/v1/namespaces/default/pods", pod, status=201)
    seen: list[Attributes] = []
    mutate = api.server.api.core.admission.mutate

    async def noted(attrs: Attributes) -> None:
        seen.append(attrs)
        await mutate(attrs)

    monkeypatch.setattr(api.server.api.core.admission, "mutate", noted)
    full = path if path.startswith("/") else f"/api/v1/namespaces/default/{path}"
    await api.json("POST", full, body, status=201)
    asked = seen[0]
    assert asked.obj is not None
    entry = asked.obj["metadata"]["managedFields"][0]
    assert (asked.operation, entry["operation"]) == ("CREATE", "Update")
    assert entry.get("subresource", "") == asked.subresource
    assert owned is None or entry["fieldsV1"] == {"f:spec": owned}


SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


async def test_an_empty_list_is_owned_and_stored_as_null(api: Api) -> None:
    doc = {"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": [], "ports": None}
    made = await api.json("POST", SLICES, doc, status=201)
    assert (made["endpoints"], made["ports"]) == (None, None)
    (owner,) = made["metadata"]["managedFields"]
    assert owner["fieldsV1"] == {"f:addressType": {}, "f:endpoints": {}}
    again = await api.json("PUT", f"{SLICES}/s", doc)
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"], "nothing has changed"
    assert again["metadata"]["generation"] == 1


async def test_empty_managed_fields_of_a_template_are_ignored(api: Api) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    template: Any = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    doc: Any = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    await api.json("POST", path, doc, status=201)
    template["metadata"]["managedFields"] = []
    changed = await api.json("PUT", f"{path}/d", doc)
    assert changed["metadata"]["generation"] == 1
    assert "managedFields" not in changed["spec"]["template"]["metadata"]
    doc["metadata"]["managedFields"] = []
    assert "managedFields" not in (await api.json("PUT", f"{path}/d", doc))["metadata"], "an object's own does"
