"""Policies: validating and mutating, their bindings, parameters and matching."""

from typing import Any

import pytest

from kcm_cli.sandbox.apiserver.admission.dynamic import scope
from kcm_cli.sandbox.apiserver.types import User
from tests.kit.api import Answer, Api

Tree = dict[str, Any]
GROUP = "/apis/admissionregistration.k8s.io/v1"
MERGE = {"content-type": "application/merge-patch+json"}
RULE = {"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


async def policy(api: Api, kind: str, spec: Tree, *, binding: Tree | None = None, name: str = "p") -> None:
    spec = {"matchConstraints": {"resourceRules": [RULE]}, **spec}
    bound = {"policyName": name, **(binding or {})}
    if kind == "validating":
        bound.setdefault("validationActions", ["Deny"])
    await api.make(f"{GROUP}/{kind}admissionpolicies", {"metadata": {"name": name}, "spec": spec})
    await api.make(f"{GROUP}/{kind}admissionpolicybindings", {"metadata": {"name": "b"}, "spec": bound})


async def validating(api: Api, *validations: Tree, binding: Tree | None = None, **spec: Any) -> None:
    await policy(api, "validating", {"validations": list(validations), **spec}, binding=binding)


async def mutating(api: Api, *mutations: str, binding: Tree | None = None, name: str = "p", **spec: Any) -> None:
    """mutations: expressions of apply configurations; of JSON patches where they begin with a bracket."""
    made = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
        if text.startswith("[")
        else {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}
        for text in mutations
    ]
    spec = {"reinvocationPolicy": "Never", **spec}
    await policy(api, "mutating", {"mutations": made, **spec}, binding=binding, name=name)


async def create(api: Api, data: Tree | None = None, *, namespace: str = "", **options: Any) -> Answer:
    where = namespace or await api.namespace(account=False)
    doc: Tree = {"metadata": {"name": "m", "labels": options.pop("labels", {})}}
    if data is not None:
        doc["data"] = data
    return await api.post(f"/api/v1/namespaces/{where}/configmaps", doc, **options)


def denied(why: str, *, bound: str = "b") -> str:
    return f"configmaps \"m\" is forbidden: ValidatingAdmissionPolicy 'p' with binding '{bound}' denied request: {why}"


@pytest.mark.parametrize(
    ("validation", "code", "reason", "why"),
    [
        pytest.param(
            {"expression": "size(object.data) < 2"},
            422,
            "Invalid",
            "failed expression: size(object.data) < 2",
            id="plain",
        ),
        pytest.param({"expression": "false", "message": "no "}, 422, "Invalid", "no", id="message"),
        pytest.param(
            {"expression": "false", "messageExpression": "'has ' + string(size(object.data))", "message": "m"},
            422,
            "Invalid",
            "has 2",
            id="computed message",
        ),
        pytest.param(
            {"expression": "false", "messageExpression": "string(object.data.nope)", "message": "m"},
            422,
            "Invalid",
            "m",
            id="a message that fails gives way",
        ),
        pytest.param(
            {"expression": "false", "reason": "Forbidden", "message": "m"}, 403, "Forbidden", "m", id="reason"
        ),
        pytest.param(
            {"expression": "object.data.nope == 'x'"},
            422,
            "Invalid",
            "expression 'object.data.nope == 'x'' resulted in error: no such key: nope",
            id="error",
        ),
    ],
)
async def test_an_expression_that_is_false_refuses(
    api: Api, validation: Tree, code: int, reason: str, why: str
) -> None:
    await validating(api, validation)
    answer = await create(api, {"a": "1", "b": "2"})
    assert (answer.status, answer.doc["reason"], answer.message) == (code, reason, denied(why))


async def test_a_failing_expression_is_skipped_with_failure_policy_ignore(api: Api) -> None:
    await validating(api, {"expression": "object.data.nope == 'x'"}, failurePolicy="Ignore")
    assert (await create(api, {})).status == 201


async def test_a_policy_is_compiled_again_when_it_changes(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    program = scope.cel.Program
    monkeypatch.setattr(scope.cel, "Program", lambda text: made.append(text) or program(text))
    place = f"{GROUP}/validatingadmissionpolicies"
    await validating(api, {"expression": "object.metadata.name != 'x'"})
    assert (await create(api)).status == 201
    made.clear()
    spec = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "false"}]}
    await api.make(place, {"metadata": {"name": "q"}, "spec": spec})
    binding = {"policyName": "q", "validationActions": ["Deny"]}
    bindings = f"{GROUP}/validatingadmissionpolicybindings"
    await api.make(bindings, {"metadata": {"name": "c"}, "spec": binding})
    made.clear()
    assert (await create(api)).message.endswith("denied request: failed expression: false")
    assert made == ["false"]
    await api.json("PATCH", f"{place}/q", {"spec": {"validations": [{"expression": "true"}]}}, headers=MERGE)
    made.clear()
    assert (await create(api)).status == 201
    assert made == ["true"]
    await api.json("PATCH", f"{bindings}/b", {"metadata": {"labels": {"l": "1"}}}, headers=MERGE)
    made.clear()
    assert (await create(api)).status == 201
    assert made == []


async def test_a_binding_may_warn(api: Api) -> None:
    await validating(api, {"expression": "false", "message": "hm"}, binding={"validationActions": ["Warn", "Audit"]})
    answer = await create(api)
    assert answer.status == 201
    assert answer.warnings == ("Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': hm",)


@pytest.mark.parametrize(
    "expression",
    [
        "object.metadata.name == 'm'",
        "oldObject == null",
        "request.operation == 'CREATE' && request.resource.resource == 'configmaps' && !request.dryRun",
        "request.userInfo.username == 'kubernetes-admin' && 'system:masters' in request.userInfo.groups",
        "namespaceObject.metadata.name == request.namespace",
        "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == request.namespace",
        "authorizer.group('').resource('pods').namespace('x').check('delete').allowed()",
        "!authorizer.serviceAccount('default', 'nobody').group('').resource('pods').check('delete').allowed()",
        "authorizer.requestResource.check('create').allowed()",
        "variables.twice == 2 && variables.thrice == 3",
        "object.kind == 'ConfigMap' && object.apiVersion == 'v1'",
        "quantity('1Gi').isGreaterThan(quantity('1G'))",
    ],
)
async def test_functions_and_variables_of_expressions(api: Api, expression: str) -> None:
    variables = [
        {"name": "twice", "expression": "1 + 1"},
        {"name": "unused", "expression": "object.nope.nope"},
        {"name": "thrice", "expression": "variables.twice + 1"},
    ]
    await validating(api, {"expression": expression}, variables=variables)
    answer = await create(api, {})
    assert answer.status == 201, answer.message


async def test_updates_show_the_old_object(api: Api) -> None:
    await validating(api, {"expression": "oldObject == null || object.data.a == oldObject.data.a"})
    made = await create(api, {"a": "1"})
    path = f"/api/v1/namespaces/{made.doc['metadata']['namespace']}/configmaps/m"
    assert (await api.merge(path, {"metadata": {"labels": {"x": "y"}}})).status == 200
    assert (await api.merge(path, {"data": {"a": "2"}})).status == 422


@pytest.mark.parametrize(
    ("constraints", "matches"),
    [
        pytest.param({}, True, id="rules"),
        pytest.param({"excludeResourceRules": [RULE]}, False, id="excluded"),
        pytest.param({"objectSelector": {"matchLabels": {"l": "1"}}}, True, id="object"),
        pytest.param({"objectSelector": {"matchLabels": {"l": "2"}}}, False, id="other object"),
        pytest.param({"namespaceSelector": {"matchLabels": {"n": "1"}}}, True, id="namespace"),
        pytest.param({"namespaceSelector": {"matchLabels": {"n": "2"}}}, False, id="other namespace"),
        pytest.param({"resourceRules": [{**RULE, "resourceNames": ["m"]}]}, True, id="name"),
        pytest.param({"resourceRules": [{**RULE, "resourceNames": ["o"]}]}, False, id="other name"),
        pytest.param({"resourceRules": [{**RULE, "operations": ["UPDATE"]}]}, False, id="other operation"),
        pytest.param({"resourceRules": [{**RULE, "scope": "Cluster"}]}, False, id="other scope"),
        pytest.param({"resourceRules": [{**RULE, "resources": ["*/status"]}]}, False, id="subresource"),
    ],
)
async def test_resources_that_a_policy_matches(api: Api, constraints: Tree, matches: bool) -> None:
    await validating(api, {"expression": "false"}, matchConstraints={"resourceRules": [RULE], **constraints})
    namespace = await api.namespace(account=False, n="1")
    assert (await create(api, namespace=namespace, labels={"l": "1"})).status == (422 if matches else 201)


async def test_a_binding_may_narrow(api: Api) -> None:
    binding = {"matchResources": {"namespaceSelector": {"matchLabels": {"n": "1"}}}}
    await validating(api, {"expression": "false"}, binding=binding)
    assert (await create(api, namespace=await api.namespace(account=False, n="1"))).status == 422
    assert (await create(api, namespace=await api.namespace(account=False, n="2"))).status == 201


async def test_match_conditions_are_evaluated_first(api: Api) -> None:
    conditions = [{"name": "c", "expression": "request.userInfo.username != 'friend'"}]
    await validating(api, {"expression": "false"}, matchConditions=conditions)
    assert (await create(api)).status == 422
    assert (await create(api, user=User("friend", groups=("system:masters",)))).status == 201


PARAMS: Tree = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "matchConditions": []}
LIMITED = [{"name": "c", "expression": "object.metadata.name != 'params'"}]


@pytest.mark.parametrize(
    ("ref", "data", "status"),
    [
        pytest.param({"name": "params", "parameterNotFoundAction": "Deny"}, {"a": "1"}, 201, id="within"),
        pytest.param({"name": "params", "parameterNotFoundAction": "Deny"}, {"a": "1", "b": "2"}, 422, id="beyond"),
        pytest.param(
            {"name": "none", "parameterNotFoundAction": "Allow"}, {"a": "1", "b": "2"}, 201, id="none, allowed"
        ),
        pytest.param({"name": "none", "parameterNotFoundAction": "Deny"}, {}, 422, id="none, denied"),
        pytest.param(
            {"selector": {"matchLabels": {"is": "param"}}, "parameterNotFoundAction": "Deny"},
            {"a": "1", "b": "2"},
            422,
            id="selected",
        ),
    ],
)
async def test_parameters_come_from_the_namespace_of_the_object(api: Api, ref: Tree, data: Tree, status: int) -> None:
    namespace = await api.namespace(account=False)
    params = {"metadata": {"name": "params", "labels": {"is": "param"}}, "data": {"max": "1"}}
    await api.make(f"/api/v1/namespaces/{namespace}/configmaps", params)
    await validating(
        api,
        {"expression": "size(object.data) <= int(params.data.max)"},
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        binding={"paramRef": ref},
    )
    answer = await create(api, data, namespace=namespace)
    assert answer.status == status, answer.message
    if ref.get("name") == "none" and status == 422:
        assert answer.message == denied(
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
        )


async def test_an_equivalent_version_matches(api: Api) -> None:
    rule = {**RULE, "apiGroups": ["events.k8s.io"], "resources": ["events"]}
    expression = (
        "object.apiVersion == 'events.k8s.io/v1' && object.note == 'hello' && request.kind.group == 'events.k8s.io'"
    )
    await validating(
        api, {"expression": expression}, matchConstraints={"resourceRules": [rule], "matchPolicy": "Equivalent"}
    )
    namespace = await api.namespace(account=False)
    event = {
        "metadata": {"name": "m"},
        "involvedObject": {"namespace": namespace},
        "message": "hello",
    }
    assert (await api.post(f"/api/v1/namespaces/{namespace}/events", event)).status == 201
    event["metadata"]["name"], event["message"] = "n", "other"  # type: ignore[index]
    assert (await api.post(f"/api/v1/namespaces/{namespace}/events", event)).status == 422


async def test_a_scale_is_matched_as_a_scale(api: Api) -> None:
    rule = {**RULE, "apiGroups": ["apps"], "resources": ["deployments/scale"]}
    await validating(
        api,
        {"expression": "object.kind == 'Scale' && object.spec.replicas < 5 && oldObject.spec.replicas == 1"},
        matchConstraints={"resourceRules": [rule]},
    )
    namespace = await api.namespace(account=False)
    labels = {"a": "b"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    await api.make(
        path, {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    )
    assert (await api.merge(f"{path}/d/scale", {"spec": {"replicas": 7}})).status == 422
    assert (await api.merge(f"{path}/d/scale", {"spec": {"replicas": 3}})).status == 200


@pytest.mark.parametrize(
    ("selector", "refused"),
    [
        ({"matchLabels": {"app": "x"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, True),
    ],
    ids=["labels", "no label"],
)
async def test_a_scale_has_no_labels_to_select_by(api: Api, selector: Tree, refused: bool) -> None:
    rule = {**RULE, "apiGroups": ["apps"], "resources": ["deployments/scale"]}
    constraints = {"resourceRules": [rule], "objectSelector": selector}
    await validating(api, {"expression": "false"}, matchConstraints=constraints)
    namespace = await api.namespace(account=False)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await api.make(path, {"metadata": {"name": "d", "labels": {"app": "x"}}, "spec": spec})
    answer = await api.merge(f"{path}/d/scale", {"spec": {"replicas": 2}})
    assert answer.status == (422 if refused else 200)


async def test_an_applied_object_that_is_renamed_is_found_by_its_first_name(api: Api) -> None:
    await mutating(api, "Object{metadata: Object.metadata{name: 'renamed'}}")
    namespace = await api.namespace(account=False)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for name in ("a", "b"):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        query = {"fieldManager": "me"}
        answer = await api.call(
            "PATCH", f"{path}/{name}", body, query=query, content_type="application/apply-patch+yaml"
        )
        assert (answer.status, answer.doc["metadata"]["name"]) == (201, "renamed")
        assert (await api.get(f"{path}/{name}")).doc == answer.doc
    assert (await api.get(f"{path}/renamed")).status == 404


@pytest.mark.parametrize(("node", "period_s"), [("n", 7), ("", 0)], ids=["bound", "unbound"])
async def test_the_grace_period_of_a_deletion_is_known_to_admission(api: Api, node: str, period_s: int) -> None:
    rule = {**RULE, "operations": ["DELETE"], "resources": ["pods"]}
    expression = f"request.options.gracePeriodSeconds == {period_s}"
    await validating(api, {"expression": expression}, matchConstraints={"resourceRules": [rule]})
    pods = f"/api/v1/namespaces/{await api.namespace()}/pods"
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": node, "terminationGracePeriodSeconds": 7}
    await api.make(pods, {"metadata": {"name": "p"}, "spec": spec})
    assert (await api.delete(f"{pods}/p")).status == 200


async def test_the_period_of_each_object_of_a_collection_is_not_known_to_admission(api: Api) -> None:
    rule = {**RULE, "operations": ["DELETE"], "resources": ["pods"]}
    expression = "!has(request.options.gracePeriodSeconds)"
    await validating(api, {"expression": expression}, matchConstraints={"resourceRules": [rule]})
    pods = f"/api/v1/namespaces/{await api.namespace()}/pods"
    await api.make(pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    assert (await api.delete(pods)).status == 200


async def test_the_phase_of_a_new_claim_is_not_known_to_admission(api: Api) -> None:
    rule = {**RULE, "resources": ["persistentvolumeclaims"]}
    await validating(api, {"expression": "!has(object.status.phase)"}, matchConstraints={"resourceRules": [rule]})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = f"/api/v1/namespaces/{await api.namespace()}/persistentvolumeclaims"
    assert (await api.make(claims, {"metadata": {"name": "c"}, "spec": spec}))["status"] == {"phase": "Pending"}


@pytest.mark.parametrize(
    ("mutation", "status", "replicas"),
    [
        ("Object{spec: Object.spec{replicas: 3}}", 403, 1),
        ("[JSONPatch{op: 'replace', path: '/spec/replicas', value: 3}]", 200, 3),
    ],
    ids=["configuration", "patch"],
)
async def test_no_configuration_is_applied_to_a_scale(api: Api, mutation: str, status: int, replicas: int) -> None:
    rule = {**RULE, "apiGroups": ["apps"], "resources": ["deployments/scale"]}
    await mutating(api, mutation, matchConstraints={"resourceRules": [rule]}, failurePolicy="Fail")
    path = f"/apis/apps/v1/namespaces/{await api.namespace(account=False)}/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await api.make(path, {"metadata": {"name": "d"}, "spec": spec})
    answer = await api.merge(f"{path}/d/scale", {"spec": {"replicas": 2}})
    assert answer.status == status
    if status == 403:
        why = "failed to convert patch object to typed object: no corresponding type for autoscaling/v1, Kind=Scale"
        assert answer.message == f"policy 'p' with binding 'b' denied request: error applying patch: {why}"
    assert (await api.get(f"{path}/d")).doc["spec"]["replicas"] == replicas


async def test_the_policies_themselves_are_exempt(api: Api) -> None:
    everything = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    await validating(api, {"expression": "false"}, matchConstraints={"resourceRules": [everything]})
    assert (await create(api, namespace="default")).status == 422
    assert (await api.delete(f"{GROUP}/validatingadmissionpolicies/p")).status == 200


@pytest.mark.parametrize(
    ("mutation", "data", "expected"),
    [
        pytest.param("Object{data: {'x': 'y'}}", {"a": "b"}, {"a": "b", "x": "y"}, id="apply adds"),
        pytest.param("Object{}", {"a": "b"}, {"a": "b"}, id="apply nothing"),
        pytest.param(
            "Object{metadata: Object.metadata{generation: 9007199254740993}, data: {'x': type(1)}}",
            {"a": "b"},
            {"a": "b", "x": "int"},
            id="apply large numbers and types",
        ),
        pytest.param(
            "Object{apiVersion: 'v9', kind: 'X', data: {'x': 'y'}}", {"a": "b"}, {"a": "b", "x": "y"}, id="kind"
        ),
        pytest.param(
            "[JSONPatch{op: 'add', path: '/data/x', value: 'y'}]", {"a": "b"}, {"a": "b", "x": "y"}, id="patch adds"
        ),
        pytest.param(
            "[JSONPatch{op: 'remove', path: '/data/a'}]", {"a": "b", "c": "d"}, {"c": "d"}, id="patch removes"
        ),
        pytest.param(
            "[JSONPatch{op: 'test', path: '/data/a', value: 'z'}, JSONPatch{op: 'remove', path: '/data/a'}]",
            {"a": "b"},
            {"a": "b"},
            id="a test that fails changes nothing",
        ),
        pytest.param(
            "[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('k'), value: variables.v}]",
            {"a": "b"},
            {"a": "b", "k": "b!"},
            id="variables and escapes",
        ),
        pytest.param(
            "[JSONPatch{op: 'replace', path: '/data', value: {'b': dyn(b'hi'), 'd': dyn(duration('90s')), "
            "'i': dyn(9007199254740993), 'o': dyn(optional.of('x')), 't': dyn(timestamp('2020-01-01T00:00:00Z'))}}]",
            {"a": "b"},
            {"b": "aGk=", "d": "90s", "i": "9007199254740993", "o": "x", "t": "2020-01-01T00:00:00Z"},
            id="values of other types",
        ),
        pytest.param(
            "[JSONPatch{op: 'add', path: '/metadata/generation', value: 3u},"
            " JSONPatch{op: 'copy', from: '/metadata/generation', path: '/metadata/deletionGracePeriodSeconds'},"
            " JSONPatch{op: 'replace', path: '/metadata/deletionGracePeriodSeconds', value: 5.0}]",
            {"a": "b"},
            {"a": "b"},
            id="numbers",
        ),
    ],
)
async def test_a_mutation(api: Api, mutation: str, data: Tree, expected: Tree) -> None:
    await mutating(api, mutation, variables=[{"name": "v", "expression": "object.data.a + '!'"}])
    answer = await create(api, data)
    assert answer.status == 201, answer.message
    assert answer.doc["data"] == expected


async def test_a_patch_to_an_unknown_field_is_refused_whatever_the_failure_policy(api: Api) -> None:
    await mutating(api, "[JSONPatch{op: 'add', path: '/odd', value: 5}]", failurePolicy="Ignore")
    answer = await create(api, {"a": "b"})
    assert (answer.status, answer.message) == (
        500,
        'Internal error occurred: strict decoding error: unknown field "odd"',
    )


async def test_lists_with_keys_are_merged_and_defaults_are_set(api: Api) -> None:
    rule = {**RULE, "resources": ["pods"], "operations": ["CREATE"]}
    await mutating(
        api,
        "Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: 'side', image: 'x', "
        "restartPolicy: 'Always'}]}}",
        matchConstraints={"resourceRules": [rule]},
    )
    namespace = await api.namespace()
    containers = [{"name": "c", "image": "i"}]
    init = [{"name": "first", "image": "i"}]
    made = await api.make(
        f"/api/v1/namespaces/{namespace}/pods",
        {"metadata": {"name": "p"}, "spec": {"containers": containers, "initContainers": init}},
    )
    assert [(each["name"], each.get("imagePullPolicy")) for each in made["spec"]["initContainers"]] == [
        ("first", "Always"),
        ("side", "Always"),
    ]
    tokens = [mount["name"] for mount in made["spec"]["initContainers"][1].get("volumeMounts", ())]
    assert len(tokens) == 1, "in-tree plugins saw the new container in the second round"


async def test_each_mutation_sees_earlier_ones(api: Api) -> None:
    await mutating(
        api,
        "Object{data: {'n': '1'}}",
        "Object{data: {'m': object.data.n + '2'}}",
        "[JSONPatch{op: 'add', path: '/data/o', value: object.data.m + '3'}]",
    )
    assert (await create(api)).doc["data"] == {"n": "1", "m": "12", "o": "123"}


async def test_a_reinvoked_policy_sees_its_own_change(api: Api) -> None:
    text = "'a' in object.data ? Object{data: {'b': '2'}} : Object{data: {'a': '1'}}"
    await mutating(api, text, reinvocationPolicy="IfNeeded")
    assert (await create(api, {"x": "y"})).doc["data"] == {"x": "y", "a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("mutation", "why"),
    [
        pytest.param(
            "Object{data: {'x': object.data.nope}}",
            "expression 'Object{data: {'x': object.data.nope}}' resulted in error: no such key: nope",
            id="error",
        ),
        pytest.param(
            "[JSONPatch{op: 'remove', path: '/data/nope'}]",
            "JSON Patch: error in remove for path: '/data/nope': Unable to remove nonexistent key: nope: missing value",
            id="patch",
        ),
        *(
            pytest.param(
                f"[JSONPatch{{op: 'add', path: '/data/x', value: {value}}}]",
                f"JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}",
                id=value,
            )
            for value, why in (
                ("{1: 'a'}", "unsupported type conversion from 'int' to string"),
                ("type(1)", "type conversion not supported for 'type'"),
                ("quantity('1')", "type conversion error from 'kubernetes.Quantity' to '*structpb.Value'"),
                (
                    "1.0 / 0.0",
                    "json: error calling MarshalJSON for type *structpb.Value: proto: "
                    "google.protobuf.Value.number_value: invalid +Inf value",
                ),
            )
        ),
        *(
            pytest.param(
                f"Object{{{fields}}}",
                f"error applying patch: failed to convert patch object to typed object: {why}",
                id=fields,
            )
            for fields, why in (
                ("data: {'x': null}", ".data.x: expected string, got &value.valueUnstructured{Value:0}"),
                ("data: null", ".data: expected map, got &{NULL_VALUE}"),
                ("immutable: null", ".immutable: expected boolean, got &{NULL_VALUE}"),
                (
                    "metadata: Object.metadata{finalizers: [null]}",
                    ".metadata.finalizers[={{undefined}}]: expected string, got &value.valueUnstructured{Value:0}",
                ),
                (
                    "binaryData: {'x': b'abc'}",
                    ".binaryData.x: expected string, got &value.valueUnstructured{Value:[]uint8{0x61, 0x62, 0x63}}",
                ),
                (
                    "metadata: Object.metadata{generation: 1u}",
                    ".metadata.generation: expected numeric (int or float), got uint64",
                ),
                (
                    "metadata: Object.metadata{creationTimestamp: timestamp('2020-01-01T00:00:01.5Z')}",
                    ".metadata.creationTimestamp: expected any scalar, got &{2020-01-01 00:00:01.5 +0000 UTC}",
                ),
                (
                    "data: {'x': timestamp('2020-01-01T00:00:01.5Z')}",
                    ".data.x: expected string, got &value.valueUnstructured{Value:"
                    "time.Date(2020, time.January, 1, 0, 0, 1, 500000000, time.UTC)}",
                ),
                (
                    "data: {'x': duration('90s')}",
                    ".data.x: expected string, got &value.valueUnstructured{Value:90000000000}",
                ),
            )
        ),
        pytest.param("Object{data: {1: 'x'}}", "invalid return type: *dynamic.ObjectVal", id="a number as key"),
        pytest.param(
            "[JSONPatch{op: 'add', path: '/data', value: Object.data{a: Object.data.b{}}}]",
            'type mismatch: unexpected type name "Object.data.b", expected "Object.data.a", which matches field name '
            "path from root Object type",
            id="an object of another type",
        ),
    ],
)
async def test_a_failed_mutation_refuses(api: Api, mutation: str, why: str) -> None:
    await mutating(api, mutation)
    answer = await create(api, {"a": "b"})
    assert (answer.status, answer.doc["reason"]) == (403, "Invalid")
    assert answer.message == f"policy 'p' with binding 'b' denied request: {why}"


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_a_patch_must_leave_an_object(api: Api, policy: str) -> None:
    await mutating(api, "[JSONPatch{op: 'replace', path: '', value: ['a']}]", failurePolicy=policy)
    answer = await create(api, {"a": "b"})
    assert answer.status == 500
    assert answer.message.startswith(
        "Internal error occurred: couldn't get version/kind; json parse error: json: cannot unmarshal array into"
    )


async def test_failures_of_mutations_may_be_ignored(api: Api) -> None:
    await mutating(api, "Object{data: {'x': object.data.nope}}", failurePolicy="Ignore")
    assert (await create(api, {"a": "b"})).doc["data"] == {"a": "b"}


async def test_an_unknown_kind_of_parameters_is_an_error_of_the_policy(api: Api) -> None:
    kind = {"apiVersion": "nope.test/v1", "kind": "Nope"}
    await validating(api, {"expression": "true"}, paramKind=kind)
    refused = await api.post(f"/api/v1/namespaces/{await api.namespace()}/configmaps", {"metadata": {"name": "c"}})
    assert refused.message.endswith(
        "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource "
        "referenced by paramKind: 'nope.test/v1, Kind=Nope'"
    )


async def test_a_policy_without_parameters_evaluates_no_binding(api: Api) -> None:
    kind = {"apiVersion": "nope.test/v1", "kind": "Nope"}
    elsewhere = {"matchResources": {"namespaceSelector": {"matchLabels": {"no": "where"}}}}
    await validating(api, {"expression": "true"}, paramKind=kind, binding=elsewhere)
    assert "'p' denied request: failed to configure policy" in (await create(api)).message
    await mutating(api, "Object{}", paramKind=kind, binding=elsewhere, name="q")
    why = "failed to find resource referenced by paramKind: 'nope.test/v1, Kind=Nope'"
    assert (await create(api)).message == f'policy "q" denied request: failed to configure policy: {why}'


async def test_all_types_of_an_object_are_named_by_their_paths(api: Api) -> None:
    await mutating(api, "Object{metadata: Object.meta{labels: Object.metadata.labels{a: 'b'}}, data: Object.x{}}")
    why = "which matches field name path from root Object type"
    wrong = (("Object.meta", "Object.metadata"), ("Object.x", "Object.data"))
    problem = "\n".join(f'unexpected type name "{name}", expected "{path}", {why}' for name, path in wrong)
    assert (await create(api)).message == f"policy 'p' with binding 'b' denied request: type mismatch: {problem}"


async def test_deletions_of_a_collection_are_validated_without_a_name(api: Api) -> None:
    path = f"/api/v1/namespaces/{await api.namespace()}/configmaps"
    await api.make(path, {"metadata": {"name": "c"}})
    rule = {**RULE, "operations": ["DELETE"]}
    await validating(
        api,
        {"expression": "oldObject.metadata.name != 'c'", "message": "kept"},
        matchConstraints={"resourceRules": [rule]},
    )
    assert (await api.delete(f"{path}/c")).message.startswith('configmaps "c" is forbidden: ')
    refused = await api.delete(path)
    assert refused.message.startswith('configmaps "Unknown" is forbidden: ')
    assert refused.message.endswith("denied request: kept")


COSTLY = "object.data.all(k, object.data.all(l, object.data.all(m, object.data[k].size() < 100)))"


async def test_an_expression_that_costs_too_much_is_cancelled(api: Api) -> None:
    await validating(api, {"expression": COSTLY})
    path = f"/api/v1/namespaces/{await api.namespace()}/configmaps"
    refused = await api.post(path, {"metadata": {"name": "c"}, "data": {f"k{i}": "v" for i in range(70)}})
    assert refused.message.endswith(
        f"expression '{COSTLY}' resulted in error: operation cancelled: actual cost limit exceeded"
    )
    await api.make(path, {"metadata": {"name": "c"}, "data": {"k": "v"}})


async def test_the_expressions_of_a_policy_share_a_budget(api: Api) -> None:
    """12 times 810,000, and the variable once more, are more than 10,000,000."""
    search = "object.data.t.contains(object.data.t)"
    variables = [{"name": "v", "expression": search}]
    await validating(api, *[{"expression": f"{search} && variables.v"} for _ in range(12)], variables=variables)
    path = f"/api/v1/namespaces/{await api.namespace()}/configmaps"
    await api.make(path, {"metadata": {"name": "less"}, "data": {"t": "x" * 8_000}})
    refused = await api.post(path, {"metadata": {"name": "c"}, "data": {"t": "x" * 9_000}})
    assert refused.message.endswith(
        "denied request: validation failed due to running out of cost budget, no further validation rules will be run"
    )


_ALLOWED = [{"name": "v", "expression": "string(authorizer.path('/x').check('get').allowed())"}]


async def test_messages_have_no_authorizer(api: Api) -> None:
    await validating(api, {"expression": "variables.v == 'x'", "messageExpression": "variables.v"}, variables=_ALLOWED)
    assert (await create(api)).message == denied("failed expression: variables.v == 'x'")


async def test_annotations_have_no_authorizer(api: Api) -> None:
    annotations = [{"key": "a", "valueExpression": "variables.v"}]
    await validating(api, variables=_ALLOWED, auditAnnotations=annotations)
    why = 'composited variable "v" fails to evaluate: no such attribute(s): authorizer'
    assert (await create(api)).message == denied(f"expression 'variables.v' resulted in error: {why}")


async def test_messages_of_valid_objects_cost_too(api: Api) -> None:
    search = "string(object.data.t.contains(object.data.t))"
    await validating(api, *[{"expression": "true", "messageExpression": search} for _ in range(13)])
    path = f"/api/v1/namespaces/{await api.namespace()}/configmaps"
    await api.make(path, {"metadata": {"name": "less"}, "data": {"t": "x" * 8_000}})
    refused = await api.post(path, {"metadata": {"name": "c"}, "data": {"t": "x" * 9_000}})
    assert refused.message.endswith(
        "denied request: failed messageExpression: validation failed due to running out of cost budget, "
        "no further validation rules will be run"
    )


async def test_expressions_see_the_options_of_the_request(api: Api) -> None:
    shown = "request.options.kind + ' ' + request.options[?'fieldManager'].orValue('-') + string(size(request.options))"
    await validating(api, {"expression": "object.data.a == 'b'", "messageExpression": shown})
    path = f"/api/v1/namespaces/{await api.namespace()}/configmaps"
    await api.make(path, {"metadata": {"name": "c"}, "data": {"a": "b"}})
    other = {"metadata": {"name": "c"}, "data": {"a": "c"}}
    assert (await api.post(path, other)).message.endswith("denied request: CreateOptions -2")
    assert (await api.put(f"{path}/c?fieldManager=m&dryRun=All", other)).message.endswith("UpdateOptions m4")
    assert (await api.merge(f"{path}/c?fieldValidation=Strict", other)).message.endswith("UpdateOptions -3")
