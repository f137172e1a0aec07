"""Hashes equal those that the recorded Go binary computed."""

import json
from collections.abc import Iterator

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery import go_json, hashes
from kcm_cli.machinery.go_dump import dump_pod_template
from kcm_cli.machinery.patches import copy, merge_patch
from tests.kit.places import GOLDEN

_POD_DEFAULTS = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
_CONTAINER_DEFAULTS = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
    "resources": {},
}


def with_defaults(template):
    """The template as an API server returns it (as far as the recordings need)."""
    template = copy(template)
    template.pop("$patch", None)
    template.setdefault("metadata", {}).get("labels", {}).pop("pod-template-hash", None)
    spec = template["spec"] = {**_POD_DEFAULTS, **template["spec"]}
    for container in spec["containers"]:
        for key, value in _CONTAINER_DEFAULTS.items():
            container.setdefault(key, value)
        for port in container.get("ports", []):
            port.setdefault("protocol", "TCP")
    return template


def templates_in(value: object) -> Iterator[dict]:
    if isinstance(value, dict):
        template = value.get("template")
        if isinstance(template, dict) and "containers" in (template.get("spec") or {}):
            yield template
        for item in value.values():
            yield from templates_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from templates_in(item)


def with_patches(documents: list[dict]) -> Iterator[dict]:
    """Every template, and every one with the image that another names: what the scenarios' patches lead to."""
    templates = list(templates_in(documents))
    images = {container.get("image") for template in templates for container in template["spec"]["containers"]}
    for template in templates:
        for image in images:
            changed = copy(template)
            changed["spec"]["containers"][0]["image"] = image
            yield changed


def recorded_hashes():
    for path in sorted(GOLDEN.glob("expected/*.json")):
        recorded = json.loads(path.read_bytes())
        if recorded["rawHashes"]:
            yield pytest.param(path.stem, recorded, id=path.stem)


@pytest.mark.parametrize(("name", "recorded"), list(recorded_hashes()))
def test_every_recorded_hash_is_computed_equally(name, recorded):
    text = (GOLDEN / "scenarios" / f"{name}.yaml").read_text().replace("$SCENARIO", name)
    computed = set()
    for template in with_patches([recorded["snapshots"], yaml.safe_load(text)]):
        template = with_defaults(template)
        patch = {"spec": {"template": {**template, "$patch": "replace"}}}
        computed.add(hashes.pod_template_hash(template, None))
        computed.add(hashes.controller_revision_hash(go_json.encode(patch), 0))
    assert set(recorded["rawHashes"].values()) <= computed


MINIMAL = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "img:1"}]}}


def test_a_recorded_deployment_hash():
    assert hashes.pod_template_hash(with_defaults(MINIMAL), None) == "5d9f7f9569"


def test_collision_counts_change_the_hash():
    template = with_defaults(MINIMAL)
    found = {hashes.pod_template_hash(template, count) for count in (None, 0, 1, 2)}
    found |= {hashes.controller_revision_hash(b"{}", count) for count in (None, 0, 1, 2)}
    assert len(found) == 8


@pytest.mark.parametrize(
    ("data", "expected_a", "expected"),
    [(b"", 0x811C9DC5, 0x811C9DC5), (b"a", 0xE40C292C, 0x050C5D7E), (b"foobar", 0xBF9CF968, 0x31F0B262)],
)
def test_fnv_reference_values(data, expected_a, expected):
    assert hashes.fnv32a(data) == expected_a
    assert hashes.fnv32(data) == expected


def test_safe_encoding_uses_the_alphabet_of_names():
    assert hashes.safe_encode("0123456789") == "456789bcdf"


@pytest.mark.parametrize(
    ("path", "value", "shown"),
    [
        ("metadata/labels", {"b": "1", "a": "2"}, "Labels:(map[string]string)map[a:2 app:web b:1]"),
        ("metadata/annotations", {}, "Annotations:(map[string]string)<nil>"),
        (
            "metadata/creationTimestamp",
            None,
            "CreationTimestamp:(v1.Time){Time:(time.Time){wall:(uint64)0 ext:(int64)0",
        ),
        ("metadata/uid", "u", "UID:(types.UID)u"),
        ("spec/hostNetwork", True, "HostNetwork:(bool)true"),
        ("spec/runtimeClassName", "r", "RuntimeClassName:(*string)r"),
        ("spec/priority", None, "Priority:(*int32)<nil>"),
        (
            "spec/securityContext",
            {},
            "SecurityContext:(*v1.PodSecurityContext){SELinuxOptions:(*v1.SELinuxOptions)<nil>",
        ),
        (
            "spec/volumes",
            [{"name": "v", "emptyDir": {}}],
            "Volumes:([]v1.Volume)[{Name:(string)v VolumeSource:(v1.VolumeSource){"
            "HostPath:(*v1.HostPathVolumeSource)<nil> EmptyDir:(*v1.EmptyDirVolumeSource)"
            "{Medium:(v1.StorageMedium) SizeLimit:(*resource.Quantity)<nil>}",
        ),
        (
            "spec/tolerations",
            [{"key": "a", "tolerationSeconds": 5}],
            "Tolerations:([]v1.Toleration)[{Key:(string)a Operator:(v1.TolerationOperator) Value:(string) "
            "Effect:(v1.TaintEffect) TolerationSeconds:(*int64)5}]",
        ),
        (
            "spec/overhead",
            {"cpu": "1500m"},
            "Overhead:(v1.ResourceList)map[cpu:{i:(resource.int64Amount){value:(int64)1500 scale:(resource.Scale)-3} "
            "d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>} s:(string)1500m Format:(resource.Format)DecimalSI}]",
        ),
        (
            "spec/overhead",
            {"memory": "512Mi"},
            "map[memory:{i:(resource.int64Amount){value:(int64)536870912 scale:(resource.Scale)0} "
            "d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>} s:(string) Format:(resource.Format)BinarySI}]",
        ),
        (
            "spec/overhead",
            {"memory": "1Pi"},
            "Dec:(*inf.Dec){unscaled:(big.Int){neg:(bool)false abs:(big.nat)[2882303761517117440 61035]} "
            "scale:(inf.Scale)9}} s:(string) Format:(resource.Format)BinarySI}]",
        ),
        (
            "spec/containers",
            [{"name": "c", "livenessProbe": {"httpGet": {"port": "http"}}}],
            "LivenessProbe:(*v1.Probe){ProbeHandler:(v1.ProbeHandler){Exec:(*v1.ExecAction)<nil> "
            "HTTPGet:(*v1.HTTPGetAction){Path:(string) Port:(intstr.IntOrString){Type:(intstr.Type)1 "
            "IntVal:(int32)0 StrVal:(string)http} Host:(string)",
        ),
    ],
)
def test_dumps_each_kind_of_field(path, value, shown):
    parent, field = path.split("/")
    assert shown in dump_pod_template(merge_patch(MINIMAL, {parent: {field: value}} if value is not None else {}))


def test_json_is_serialised_as_in_go():
    assert go_json.encode({"b": "<&>\u2028", "a": [1, None, True]}) == (
        b'{"a":[1,null,true],"b":"\\u003c\\u0026\\u003e\\u2028"}'
    )


@given(st.dictionaries(st.text(), st.text() | st.integers(-(2**53), 2**53) | st.lists(st.text())))
def test_escaping_keeps_the_value(value):
    encoded = go_json.encode(value)
    assert json.loads(encoded) == value
    assert not set(encoded) & set(b"<>&")


_names = st.text("abc", min_size=1, max_size=3)
_templates = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"labels": st.dictionaries(_names, _names)}),
        "spec": st.fixed_dictionaries(
            {"containers": st.lists(st.fixed_dictionaries({"name": _names, "image": _names}))}
        ),
    }
)


@given(_templates, _templates)
def test_the_dump_distinguishes_templates(left, right):
    assert (dump_pod_template(left) == dump_pod_template(right)) == (left == right)
