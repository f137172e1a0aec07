"""Bodies are decoded to normalised documents, or to the error of a kube-apiserver."""

import json

import pytest

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.schema import Schemas, Target
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo

CONFIG_MAPS = ResourceInfo(GVR("", "v1", "configmaps"), "ConfigMap", "configmap", True, frozenset())
DEPLOYMENTS = ResourceInfo(GVR("apps", "v1", "deployments"), "Deployment", "deployment", True, frozenset())
PODS = ResourceInfo(GVR("", "v1", "pods"), "Pod", "pod", True, frozenset())
ROLES = ResourceInfo(GVR("rbac.authorization.k8s.io", "v1", "roles"), "Role", "role", True, frozenset())
SECRETS = ResourceInfo(GVR("", "v1", "secrets"), "Secret", "secret", True, frozenset())
SERVICES = ResourceInfo(GVR("", "v1", "services"), "Service", "service", True, frozenset())


@pytest.fixture(scope="module")
def schemas():
    return Schemas()


def decode(schemas, resource, body, mode="Warn", content_type="application/json"):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return schemas.decode_body(resource, data, content_type, mode)


def refusal(schemas, resource, body, mode="Warn", content_type="application/json"):
    with pytest.raises(ApiError) as caught:
        decode(schemas, resource, body, mode, content_type)
    assert (caught.value.code, caught.value.status["reason"]) == (400, "BadRequest")
    return str(caught.value)


def test_sets_kind_and_version_of_the_path(schemas):
    assert decode(schemas, CONFIG_MAPS, {"metadata": {"name": "a"}})[0] == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a"},
    }


@pytest.mark.parametrize(
    "given, kept",
    [
        ({"paused": False}, {}),
        ({"paused": True}, {"paused": True}),
        ({"replicas": 0}, {"replicas": 0}),
        ({"replicas": None}, {}),
        ({"minReadySeconds": 0}, {}),
        ({"revisionHistoryLimit": 0}, {"revisionHistoryLimit": 0}),
    ],
    ids=str,
)
def test_keeps_a_zero_only_where_it_differs_from_absence(schemas, given, kept):
    spec = decode(schemas, DEPLOYMENTS, {"spec": given})[0]["spec"]
    assert {key: spec[key] for key in spec if key not in ("selector", "template", "strategy")} == kept


def test_fills_in_embedded_structs_and_what_is_never_left_out(schemas):
    doc = decode(schemas, DEPLOYMENTS, {})[0]
    assert doc["metadata"] == {} and doc["status"] == {}
    assert doc["spec"] == {
        "selector": None,
        "strategy": {},
        "template": {"metadata": {}, "spec": {"containers": None}},
    }
    assert decode(schemas, ROLES, {})[0]["rules"] is None
    role = decode(schemas, ROLES, {"rules": []})[0]
    assert role["rules"] == []
    schemas.forget_empty(ROLES, role)
    assert role["rules"] is None


def test_writes_scalars_in_their_canonical_form(schemas):
    doc = decode(
        schemas,
        PODS,
        {
            "metadata": {"creationTimestamp": None, "deletionTimestamp": "2026-01-02T03:04:05.5+01:00"},
            "spec": {
                "containers": [{"name": "c", "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi", "x/y": 0.5}}}]
            },
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        },
    )[0]
    assert doc["metadata"] == {"deletionTimestamp": "2026-01-02T02:04:05Z"}
    assert doc["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi", "x/y": "500m"}
    assert doc["status"]["conditions"] == [
        {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
    ]


def test_nulls_in_maps_and_lists_are_zeros(schemas):
    doc = decode(schemas, CONFIG_MAPS, {"data": {"a": None}, "metadata": {"finalizers": ["x", None]}})[0]
    assert doc["data"] == {"a": ""} and doc["metadata"]["finalizers"] == ["x", ""]


def test_empty_managed_fields_are_kept(schemas):
    assert decode(schemas, CONFIG_MAPS, {"metadata": {"managedFields": []}})[0]["metadata"] == {"managedFields": []}


UNKNOWN = {"metadata": {"name": "c", "bogus": 1}, "nope": {"x": 1}}


def test_unknown_fields_are_refused_named_or_dropped(schemas):
    text = 'unknown field "metadata.bogus", unknown field "nope"'
    prefix = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
    assert refusal(schemas, CONFIG_MAPS, UNKNOWN, "Strict") == prefix + text
    doc, warnings = decode(schemas, CONFIG_MAPS, UNKNOWN, "Warn")
    assert doc["metadata"] == {"name": "c"} and "nope" not in doc
    assert ", ".join(warnings) == text
    assert decode(schemas, CONFIG_MAPS, UNKNOWN, "Ignore") == (doc, [])


def test_names_unknown_fields_in_lists(schemas):
    body = {"spec": {"template": {"spec": {"containers": [{"name": "c", "imag": "y"}]}}, "replcas": 1}}
    assert decode(schemas, DEPLOYMENTS, body)[1] == [
        'unknown field "spec.template.spec.containers[0].imag"',
        'unknown field "spec.replcas"',
    ]


REPEATED = b'{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"1","a":"2"},"data":{"b":"3"}}'


def test_repeated_fields_are_noted_and_merged(schemas):
    doc, warnings = decode(schemas, CONFIG_MAPS, REPEATED)
    assert doc["data"] == {"a": "2", "b": "3"}
    assert warnings == ['duplicate field "data.a"', 'duplicate field "data"']
    assert refusal(schemas, CONFIG_MAPS, REPEATED, "Strict").endswith(
        'strict decoding error: duplicate field "data.a", duplicate field "data"'
    )


def test_repeated_structs_and_items_are_decoded_into_the_previous_ones(schemas):
    container = b'{"name":"c","image":"i","env":[{"name":"A","value":"1"},{"name":"B"}]}'
    first = b'{"containers":[%s,{"name":"d"}],"securityContext":{"runAsUser":1},"nodeSelector":{"a":"b"}}' % container
    again = b'{"containers":[{"image":"j","env":[{"value":"2"}],"name":null}],"securityContext":{"runAsGroup":2},'
    again += b'"nodeSelector":{"c":"d"},"nodeName":"n","nodeName":null,"priority":1,"priority":null}'
    spec = decode(schemas, PODS, b'{"kind":"Pod","spec":%s,"spec":%s,"spec":null}' % (first, again))[0]["spec"]
    assert spec["containers"] == [{"name": "c", "image": "j", "env": [{"name": "A", "value": "2"}], "resources": {}}]
    assert spec["securityContext"] == {"runAsUser": 1, "runAsGroup": 2}
    assert spec["nodeSelector"] == {"a": "b", "c": "d"}
    assert spec["nodeName"] == "n" and "priority" not in spec, "null unsets pointers only"


@pytest.mark.parametrize(
    "spaced", [REPEATED.replace(b",", b", "), b" " + REPEATED, REPEATED + b"\n"], ids=["spaces", "indent", "newline"]
)
def test_repeated_fields_are_seen_however_the_body_is_written(schemas, spaced):
    assert len(decode(schemas, CONFIG_MAPS, spaced)[1]) == 2


def _containers(container):
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


@pytest.mark.parametrize(
    "body, text",
    [
        (
            {"spec": {"replicas": "x"}},
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"spec": {"replicas": 1.5}},
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"spec": {"replicas": 3000000000}},
            "json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            _containers({"name": 1}),
            "json: cannot unmarshal number into Go struct field"
            " Container.spec.template.spec.containers.name of type string",
        ),
        (
            _containers({"env": {}}),
            "json: cannot unmarshal object into Go struct field"
            " Container.spec.template.spec.containers.env of type []v1.EnvVar",
        ),
        (
            {"metadata": {"labels": {"a": 1}}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            {"metadata": {"creationTimestamp": "yesterday"}},
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
        ),
        (
            {**_containers({"name": 1, "resources": {"limits": {"cpu": "1x"}}})},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ],
    ids=["string", "fraction", "overflow", "in-list", "object", "map", "time", "quantity-wins"],
)
def test_wrong_types_have_the_decoders_texts(schemas, body, text):
    assert (
        refusal(schemas, DEPLOYMENTS, body) == f'Deployment in version "v1" cannot be handled as a Deployment: {text}'
    )


@pytest.mark.parametrize(
    "body, text",
    [
        (
            {"apiVersion": "v1", "kind": "Secret"},
            'Secret in version "v1" cannot be handled as a ConfigMap:'
            " converting (v1.Secret) to (core.ConfigMap): unknown conversion",
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMapList", "items": []},
            'ConfigMapList in version "v1" cannot be handled as a ConfigMap:'
            " converting (v1.ConfigMapList) to (core.ConfigMap): unknown conversion",
        ),
        (
            {"apiVersion": "v1", "kind": "List", "items": []},
            'List in version "v1" cannot be handled as a ConfigMap:'
            " converting (v1.List) to (core.ConfigMap): unknown conversion",
        ),
        (
            {"apiVersion": "v1", "kind": "APIResourceList"},
            'APIResourceList in version "v1" cannot be handled as a ConfigMap:'
            " converting (v1.APIResourceList) to (core.ConfigMap): unknown conversion",
        ),
        (
            {"apiVersion": "meta.k8s.io/v1", "kind": "Status"},
            'Status in version "v1" cannot be handled as a ConfigMap:'
            " converting (v1.Status) to (core.ConfigMap): unknown conversion",
        ),
        (
            {"apiVersion": "v1", "kind": "ListOptions"},
            'ListOptions in version "v1" cannot be handled as a ConfigMap:'
            " converting (v1.ListOptions) to (core.ConfigMap): unknown conversion",
        ),
        (
            {"apiVersion": "v1", "kind": "Secret", "data": {"a": "1"}},
            'Secret in version "v1" cannot be handled as a ConfigMap: illegal base64 data at input byte 0',
        ),
        (
            {"apiVersion": "v2", "kind": "ConfigMap"},
            'ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered'
            ' for version "v2" in scheme "pkg/api/legacyscheme/scheme.go:30"',
        ),
        (
            {"apiVersion": "a/b/c", "kind": "ConfigMap"},
            "the object provided is unrecognized (must be of type ConfigMap):"
            ' unexpected GroupVersion string: a/b/c ({"apiVersion": "a/b/c", "kind" ...)',
        ),
        (
            {"kind": 1},
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse"
            ' error: json: cannot unmarshal number into Go struct field .kind of type string ({"kind": 1})',
        ),
        (
            b"",
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind;"
            " json parse error: unexpected end of JSON input (<empty>)",
        ),
        (
            b'{"a" 1}',
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind;"
            " json parse error: invalid character '1' after object key ({\"a\" 1})",
        ),
    ],
    ids=[
        "other-kind",
        "list",
        "any-list",
        "list-of-discovery",
        "status",
        "options",
        "other-kind-wrong",
        "no-version",
        "bad-version",
        "kind-type",
        "empty",
        "syntax",
    ],
)
def test_bodies_that_are_not_an_object_of_the_kind_are_refused(schemas, body, text):
    assert refusal(schemas, CONFIG_MAPS, body) == text


def test_refuses_another_version_of_the_kind(schemas):
    assert refusal(schemas, DEPLOYMENTS, {"apiVersion": "apps/v1beta1", "kind": "Deployment"}) == (
        "the API version in the data (apps/v1beta1) does not match the expected API version (apps/v1)"
    )


@pytest.mark.parametrize(
    "group, kind, scheme",
    [
        ("apiextensions.k8s.io", "CustomResourceDefinition", "apiextensions-apiserver/pkg/apiserver/apiserver.go:55"),
        ("apiregistration.k8s.io", "APIService", "kube-aggregator/pkg/apiserver/scheme/scheme.go:28"),
    ],
)
def test_definitions_and_api_services_have_servers_of_their_own(schemas, group, kind, scheme):
    info = ResourceInfo(GVR(group, "v1", f"{kind.lower()}s"), kind, kind.lower(), False, frozenset())
    cannot = f"cannot be handled as a {kind}: no kind"
    assert refusal(schemas, info, {"apiVersion": f"{group}/v1beta1", "kind": kind}) == (
        f"the API version in the data ({group}/v1beta1) does not match the expected API version ({group}/v1)"
    )
    assert refusal(schemas, info, {"apiVersion": f"{group}/v2", "kind": kind}) == (
        f'{kind} in version "v2" {cannot} "{kind}" is registered for version "{group}/v2" in scheme "k8s.io/{scheme}"'
    )
    assert refusal(schemas, info, {"apiVersion": "v1", "kind": "ConfigMap"}) == (
        f'ConfigMap in version "v1" {cannot} "ConfigMap" is registered for version "v1" in scheme "k8s.io/{scheme}"'
    )
    assert refusal(schemas, CONFIG_MAPS, {"apiVersion": f"{group}/v1", "kind": kind}) == (
        f'{kind} in version "v1" cannot be handled as a ConfigMap: no kind "{kind}" is registered for version'
        f' "{group}/v1" in scheme "pkg/api/legacyscheme/scheme.go:30"'
    )


def test_a_subresource_may_accept_another_kind(schemas):
    doc, _ = schemas.decode_body(DEPLOYMENTS, b'{"spec":{"replicas":0}}', target=Target("autoscaling", "v1", "Scale"))
    assert doc == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {},
        "spec": {},
        "status": {"replicas": 0},
    }


def test_reads_yaml_as_the_server_does(schemas):
    text = b'metadata:\n  name: x\ndata:\n  a: "1"\n  day: 2020-01-01\n  1: one\n'
    doc, warnings = decode(schemas, CONFIG_MAPS, text, content_type="application/yaml")
    assert doc["data"] == {"a": "1", "day": "2020-01-01", "1": "one"} and warnings == []


def test_notes_repeated_keys_of_yaml(schemas):
    _, warnings = decode(schemas, CONFIG_MAPS, b"data:\n  a: x\n  a: z\n", content_type="application/yaml")
    assert warnings == ['yaml: unmarshal errors:\n  line 3: key "a" already set in map']


def test_a_normalised_document_decodes_to_itself(schemas):
    body = {
        "spec": {"ports": [{"port": 80, "targetPort": "http"}], "selector": {}, "externalIPs": []},
        "metadata": {"annotations": {"a": ""}},
    }
    once, _ = decode(schemas, SERVICES, body)
    assert decode(schemas, SERVICES, once) == (once, [])


def test_bytes_may_be_written_as_a_list_of_numbers(schemas):
    body = {"data": {"a": [104, 105], "b": [], "c": [None, 255]}}
    assert decode(schemas, SECRETS, body)[0]["data"] == {"a": "aGk=", "b": "", "c": "AP8="}


@pytest.mark.parametrize(
    "value, what",
    [
        (["b"], "string into Go struct field Secret.data of type uint8"),
        ([1, 300], "number 300 into Go struct field Secret.data of type uint8"),
        ([{}], "object into Go struct field Secret.data of type uint8"),
        ([True], "bool into Go struct field Secret.data of type uint8"),
        (3, "number into Go struct field Secret.data of type []uint8"),
        ({}, "object into Go struct field Secret.data of type []uint8"),
    ],
    ids=str,
)
def test_wrong_types_for_bytes_are_refused(schemas, value, what):
    assert refusal(schemas, SECRETS, {"data": {"a": value}}) == (
        f'Secret in version "v1" cannot be handled as a Secret: json: cannot unmarshal {what}'
    )


@pytest.mark.parametrize(
    "text, at",
    [
        ("YWRtaW4=!", 8),
        ("YWRtaW4=YWRtaW4=", 8),
        ("YQ==x", 4),
        ("YQ=x", 2),
        ("YQ=", 3),
        ("YQ===", 4),
        ("Y===", 1),
        ("=", 0),
        ("YWJjZ", 4),
        ("YWJjZGU", 4),
        ("YW\nRt\u00e9", 4),
    ],
)
def test_base64_errors_have_the_position(schemas, text, at):
    assert refusal(schemas, SECRETS, {"data": {"a": text}}) == (
        f'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte {at}'
    )
