"""The owners of fields after creates, updates, patches and applies; conflicts; and properties of apply."""

import copy
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.apply import fieldset
from kcm_cli.sandbox.apiserver.apply.patching import Applied, Patching
from kcm_cli.sandbox.apiserver.apply.tracking import settle_times
from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.schema import Schemas
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo

STATUS = frozenset({"status", "scale"})
CONFIG_MAPS = ResourceInfo(GVR("", "v1", "configmaps"), "ConfigMap", "configmap", True, frozenset())
SERVICES = ResourceInfo(GVR("", "v1", "services"), "Service", "service", True, frozenset(), subresources=STATUS)
PODS = ResourceInfo(GVR("", "v1", "pods"), "Pod", "pod", True, frozenset(), subresources=STATUS)
DEPLOYMENTS = ResourceInfo(
    GVR("apps", "v1", "deployments"), "Deployment", "deployment", True, frozenset(), subresources=STATUS
)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = datetime(2026, 1, 2, 3, 4, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def patching():
    return Patching(Schemas(), KINDS.writable)


class Live:
    """A stored object, without defaults and admission."""

    def __init__(self, patching, resource=CONFIG_MAPS):
        self.patching, self.resource, self.doc = patching, resource, None

    def apply(self, manager, config, *, force=False, now=NOW, subresource=""):
        full = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        full = {**full, "metadata": {"name": "x"}, **copy.deepcopy(config)}
        before = copy.deepcopy(self.doc)
        doc = self.patching.apply(self.resource, subresource, self.doc, Applied(full, manager, force), now)
        assert self.doc == before, "the live object is not changed"
        doc["metadata"]["uid"] = "u"
        if self.doc is not None:
            settle_times(self.doc, doc)
        self.doc = doc
        return self

    def put(self, manager, content, *, now=NOW, subresource=""):
        new = {"apiVersion": self.resource.api_version, "kind": self.resource.kind, "metadata": {"name": "x"}}
        new = self.patching._schemas.normalizers.run(
            self.patching.place(self.resource, "").node, {**new, **copy.deepcopy(content)}
        )
        self.patching.track((self.resource, subresource), self.doc, new, manager, now)
        new["metadata"]["uid"] = "u"
        self.doc = new
        return self

    @property
    def owners(self):
        entries = (self.doc or {}).get("metadata", {}).get("managedFields", [])
        return {(e["manager"], e["operation"], e.get("subresource", "")): e["fieldsV1"] for e in entries}

    @property
    def times(self):
        return {e["manager"]: e.get("time") for e in self.doc["metadata"].get("managedFields", [])}


def data(*names):
    return {"f:data": {f"f:{name}": {} for name in names}}


# --- create, update, patch -------------------------------------------------------------------------------


def test_a_create_owns_its_fields(patching):
    live = Live(patching).put("tool", {"metadata": {"name": "x", "labels": {"l": "1"}}, "data": {"a": "1"}})
    assert live.doc["metadata"]["managedFields"] == [
        {
            "manager": "tool",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-02T03:04:05Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:data": {".": {}, "f:a": {}},
                "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
            },
        }
    ]


def test_items_are_owned_by_key_and_embedded_structs_have_no_owner(patching):
    live = Live(patching, PODS).put("tool", {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}})
    assert live.owners["tool", "Update", ""] == {
        "f:spec": {
            "f:containers": {
                'k:{"name":"c"}': {
                    ".": {},
                    "f:name": {},
                    "f:resources": {},
                    "f:ports": {".": {}, 'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                }
            }
        }
    }


def test_an_update_takes_over_the_fields_that_it_changes(patching):
    live = (
        Live(patching)
        .put("tool", {"data": {"a": "1", "b": "1"}})
        .put("other", {"data": {"a": "2", "b": "1"}}, now=LATER)
    )
    assert live.owners == {
        ("other", "Update", ""): data("a"),
        ("tool", "Update", ""): {"f:data": {".": {}, "f:b": {}}},
    }
    assert live.times == {"tool": "2026-01-02T03:04:05Z", "other": "2026-01-02T03:04:09Z"}


def test_an_update_that_changes_nothing_changes_no_owner(patching):
    live = Live(patching).put("tool", {"data": {"a": "1"}})
    before = live.owners
    assert live.put("other", {"data": {"a": "1"}}, now=LATER).owners == before


def test_any_update_removes_managers_of_versions_that_are_not_served(patching):
    live = Live(patching).put("tool", {"data": {"a": "1"}})
    live.doc["metadata"]["managedFields"][0]["apiVersion"] = "v9"
    assert live.put("other", {"data": {"a": "1"}}).owners == {}


def test_an_entry_without_fields_is_removed(patching):
    live = Live(patching).put("tool", {"data": {"a": "1"}}).put("other", {"immutable": False})
    assert live.owners == {("other", "Update", ""): {"f:immutable": {}}}


def test_status_is_owned_apart_and_only_through_its_path(patching):
    pod = {"spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Pending"}}
    live = Live(patching, PODS).put("tool", pod)
    assert "f:status" not in live.owners["tool", "Update", ""]
    live.put("kubelet", {**pod, "spec": {"containers": [{"name": "c", "image": "x"}]}, "status": {"phase": "Running"}},
             subresource="status")  # fmt: skip
    assert live.owners["kubelet", "Update", "status"] == {"f:status": {"f:phase": {}}}


def test_empty_managed_fields_remove_all_managers_and_stop_tracking(patching):
    live = Live(patching).put("tool", {"data": {"a": "1"}})
    live.put("other", {"metadata": {"name": "x", "managedFields": []}, "data": {"a": "2"}})
    assert "managedFields" not in live.doc["metadata"]
    assert live.put("other", {"data": {"a": "3"}}).owners == {}


def test_managed_fields_without_fields_keep_tracking(patching):
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    live = Live(patching).put("tool", {"data": {"a": "1"}})
    live.put("other", {"metadata": {"name": "x", "managedFields": [entry]}, "data": {"a": "2"}})
    assert live.owners == {("other", "Update", ""): {"f:data": {"f:a": {}}}}


def test_managed_fields_that_are_no_entries_are_ignored_in_an_apply(patching):
    live = Live(patching).apply("alice", {"metadata": {"name": "x", "managedFields": [None]}, "data": {"a": "1"}})
    assert live.owners == {("alice", "Apply", ""): data("a")}


def test_the_oldest_updaters_are_merged_when_there_are_too_many(patching):
    live = Live(patching)
    content = {}
    for number in range(14):
        content[f"k{number:02}"] = "1"
        live.put(f"m{number:02}", {"data": content})
    owners = live.owners
    assert len(owners) == 10
    assert set(owners["ancient-changes", "Update", ""]["f:data"]) == {"."} | {f"f:k{n:02}" for n in range(5)}


# --- apply -----------------------------------------------------------------------------------------------


def test_fields_of_an_apply_are_written_in_upstreams_order(patching):
    live = Live(patching).apply("alice", {"data": {"b": "1", "a": "1"}, "binaryData": {"c": "AA=="}})
    (entry,) = live.doc["metadata"]["managedFields"]
    assert list(entry["fieldsV1"]) == ["f:binaryData", "f:data"]
    assert list(entry["fieldsV1"]["f:data"]) == ["f:a", "f:b"]


def test_apply_owns_leaves_but_no_maps(patching):
    assert Live(patching).apply("alice", {"data": {"a": "1"}}).owners == {("alice", "Apply", ""): data("a")}


def test_fields_that_are_no_longer_applied_are_removed(patching):
    live = Live(patching).apply("alice", {"data": {"a": "1", "b": "1"}}).apply("alice", {"data": {"b": "1"}})
    assert live.doc["data"] == {"b": "1"} and live.owners == {("alice", "Apply", ""): data("b")}
    live.apply("alice", {})
    assert "data" not in live.doc and live.owners == {}


def test_fields_of_other_managers_are_kept(patching):
    live = Live(patching).apply("alice", {"data": {"a": "1"}}).apply("bob", {"data": {"a": "1"}})
    assert set(live.owners) == {("alice", "Apply", ""), ("bob", "Apply", "")}
    assert live.apply("alice", {}).doc["data"] == {"a": "1"}


def test_conflicts_name_managers_and_fields(patching):
    live = Live(patching).apply("alice", {"data": {"a": "1", "b": "1"}})
    with pytest.raises(ApiError) as caught:
        live.apply("bob", {"data": {"a": "2", "b": "2"}})
    assert caught.value.code == 409 and caught.value.status["reason"] == "Conflict"
    assert str(caught.value) == 'Apply failed with 2 conflicts: conflicts with "alice":\n- .data.a\n- .data.b'
    assert caught.value.status["details"] == {
        "causes": [
            {"reason": "FieldManagerConflict", "message": 'conflict with "alice"', "field": ".data.a"},
            {"reason": "FieldManagerConflict", "message": 'conflict with "alice"', "field": ".data.b"},
        ]
    }


def test_conflicts_name_versions_of_updates_and_subresources(patching):
    live = Live(patching).put("editor", {"data": {"a": "1"}})
    with pytest.raises(ApiError, match='^Apply failed with 1 conflict: conflict with "editor" using v1: .data.a$'):
        live.apply("alice", {"data": {"a": "2"}})
    deployment = Live(patching, DEPLOYMENTS).apply("a", {"spec": {"selector": {"matchLabels": {"x": "y"}}}})
    deployment.apply("ctl", {"status": {"replicas": 3}}, subresource="status")
    with pytest.raises(ApiError, match='conflict with "ctl" with subresource "status": .status.replicas'):
        deployment.apply("other", {"status": {"replicas": 4}}, subresource="status")


def test_conflicts_with_a_subresource_come_first(patching):
    live = Live(patching, DEPLOYMENTS).put("editor", {"spec": {"replicas": 1, "paused": True}})
    live.put("editor", {"spec": {"replicas": 2, "paused": True}}, subresource="scale")
    with pytest.raises(ApiError) as caught:
        live.apply("alice", {"spec": {"replicas": 3, "paused": False}})
    assert str(caught.value).splitlines()[::2] == [
        'Apply failed with 2 conflicts: conflicts with "editor" with subresource "scale" using apps/v1:',
        'conflicts with "editor" using apps/v1:',
    ]


def test_force_takes_over(patching):
    live = Live(patching).apply("alice", {"data": {"a": "1", "b": "1"}}).apply("bob", {"data": {"a": "2"}}, force=True)
    assert live.doc["data"] == {"a": "2", "b": "1"}
    assert live.owners == {("alice", "Apply", ""): data("b"), ("bob", "Apply", ""): data("a")}


def test_applying_what_is_there_shares_without_a_time(patching):
    live = Live(patching).put("editor", {"data": {"a": "1"}}).apply("alice", {"data": {"a": "1"}}, now=LATER)
    assert live.owners["alice", "Apply", ""] == data("a")
    assert live.times == {"alice": None, "editor": "2026-01-02T03:04:05Z"}


def test_applying_the_same_again_keeps_the_time(patching):
    live = Live(patching).apply("alice", {"data": {"a": "1"}})
    before = copy.deepcopy(live.doc)
    assert live.apply("alice", {"data": {"a": "1"}}, now=LATER).doc == before


def test_an_untracked_object_is_owned_by_before_first_apply(patching):
    live = Live(patching).put("tool", {"data": {"a": "1"}})
    del live.doc["metadata"]["managedFields"]
    live.apply("alice", {"data": {"b": "1"}})
    assert live.owners == {
        ("alice", "Apply", ""): data("b"),
        ("before-first-apply", "Update", ""): {"f:data": {".": {}, "f:a": {}}},
    }


def test_keyed_lists_merge_between_managers_with_defaults_in_keys(patching):
    live = Live(patching, SERVICES)
    live.apply("alice", {"spec": {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80, "protocol": "UDP"}]}})
    assert set(live.owners["alice", "Apply", ""]["f:spec"]["f:ports"]) == {
        'k:{"port":80,"protocol":"TCP"}',
        'k:{"port":80,"protocol":"UDP"}',
    }
    live.apply("bob", {"spec": {"ports": [{"name": "c", "port": 90}]}})
    live.apply("alice", {"spec": {"ports": [{"name": "b", "port": 80, "protocol": "UDP"}]}})
    assert [port["name"] for port in live.doc["spec"]["ports"]] == ["b", "c"]


def test_a_reference_to_no_name_is_an_item_too(patching):
    live = Live(patching, PODS).put("alice", {"spec": {"imagePullSecrets": [{}, {"name": "s"}]}})
    owned = live.owners["alice", "Update", ""]["f:spec"]["f:imagePullSecrets"]
    assert set(owned) == {".", 'k:{"name":""}', 'k:{"name":"s"}'}


def test_sets_have_owners_per_value(patching):
    live = Live(patching).apply("alice", {"metadata": {"name": "x", "finalizers": ["x/a"]}})
    live.apply("bob", {"metadata": {"name": "x", "finalizers": ["x/b"]}})
    assert live.doc["metadata"]["finalizers"] == ["x/a", "x/b"]
    assert live.owners["bob", "Apply", ""] == {"f:metadata": {"f:finalizers": {'v:"x/b"': {}}}}
    assert live.apply("alice", {}).doc["metadata"]["finalizers"] == ["x/b"]


def test_atomic_fields_have_one_owner(patching):
    live = Live(patching, DEPLOYMENTS).apply("alice", {"spec": {"selector": {"matchLabels": {"a": "b"}}}})
    assert live.owners["alice", "Apply", ""] == {"f:spec": {"f:selector": {}}}
    with pytest.raises(ApiError, match='conflict with "alice": .spec.selector'):
        live.apply("bob", {"spec": {"selector": {"matchLabels": {"c": "d"}}}})


def _template(*containers):
    return {"spec": {"template": {"spec": {"containers": list(containers)}}}}


@pytest.mark.parametrize(
    "config, code, text",
    [
        (
            _template({"name": "a"}, {"name": "a"}),
            500,
            "failed to create typed patch object (/x; apps/v1, Kind=Deployment):"
            ' .spec.template.spec.containers: duplicate entries for key [name="a"]',
        ),
        (
            {"spec": {"nope": 1}},
            500,
            "failed to create typed patch object (/x; apps/v1, Kind=Deployment):"
            " .spec.nope: field not declared in schema",
        ),
        (
            _template({"name": 1, "image": 2}),
            500,
            "failed to create typed patch object (/x; apps/v1, Kind=Deployment): errors:\n"
            "  .spec.template.spec.containers[name=1].name: expected string, got &value.valueUnstructured{Value:1}\n"
            "  .spec.template.spec.containers[name=1].image: expected string, got &value.valueUnstructured{Value:2}",
        ),
        (
            {"spec": {"replicas": "x"}},
            500,
            "failed to create typed patch object (/x; apps/v1, Kind=Deployment):"
            " .spec.replicas: expected numeric (int or float), got string",
        ),
        ({"kind": "ReplicaSet"}, 400, "invalid object type: apps/v1, Kind=ReplicaSet"),
        ({"kind": 1}, 400, "invalid object type: apps/v1, Kind="),
        ({"apiVersion": "a/b/c"}, 400, "invalid object type: /, Kind="),
        (
            {"metadata": {"name": 5}},
            500,
            "failed to create typed patch object (/; apps/v1, Kind=Deployment):"
            " .metadata.name: expected string, got &value.valueUnstructured{Value:5}",
        ),
        ({"metadata": {"name": "x", "managedFields": [{}]}}, 400, "metadata.managedFields must be nil"),
    ],
    ids=["duplicate", "unknown", "types", "number", "kind", "no kind", "version", "name", "managed"],
)  # fmt: skip
def test_errors_have_upstreams_texts(patching, config, code, text):
    with pytest.raises(ApiError) as caught:
        Live(patching, DEPLOYMENTS).apply("alice", config)
    assert (caught.value.code, str(caught.value)) == (code, text)


def test_kubectl_takes_over_fields_of_client_side_apply(patching):
    last = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"1"}}'
    note = {"kubectl.kubernetes.io/last-applied-configuration": last}
    live = Live(patching).put(
        "kubectl-client-side-apply", {"metadata": {"name": "x", "annotations": note}, "data": {"a": "1"}}
    )
    live.apply("kubectl", {"data": {"a": "2"}})
    assert live.doc["data"] == {"a": "2"}
    assert '"a":"2"' in live.doc["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]


@pytest.mark.parametrize(("notes", "recorded"), [({"b": None}, '"annotations":{"b":""}'), (None, '"metadata":{"name"')])
def test_a_null_annotation_is_an_empty_text_in_the_one_of_kubectl(patching, notes, recorded):
    name = "kubectl.kubernetes.io/last-applied-configuration"
    live = Live(patching).put("kubectl-client-side-apply", {"metadata": {"name": "x", "annotations": {name: "{}"}}})
    live.apply("kubectl", {"metadata": {"name": "x", "annotations": notes}})
    assert recorded in live.doc["metadata"]["annotations"][name]


# --- laws ------------------------------------------------------------------------------------------------

names = st.sampled_from("abc")
values = st.sampled_from(["1", "2"])
ports = st.dictionaries(st.sampled_from([80, 81, 82]), values, max_size=2).map(
    lambda d: [{"port": port, "name": f"n{name}{port}"} for port, name in d.items()]
)
configs = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {"name": st.just("x")},
            optional={
                "labels": st.dictionaries(names, values, min_size=1, max_size=3),
                "finalizers": st.lists(st.sampled_from(["x/a", "x/b"]), unique=True, min_size=1),
            },
        ),
        "spec": st.fixed_dictionaries(
            {}, optional={"ports": ports, "selector": st.dictionaries(names, values, min_size=1, max_size=2)}
        ),
    },
)
managers = st.sampled_from(["alice", "bob", "carol"])
histories = st.lists(st.tuples(managers, configs, st.booleans()), max_size=5)


def replayed(patching, history):
    live = Live(patching, SERVICES)
    for manager, config, applies in history:
        if applies or live.doc is None:
            live.apply(manager, config, force=True)
        else:
            live.put(manager, config)
    return live


@given(histories, managers, configs)
def test_applying_twice_is_applying_once(history, manager, config):
    live = replayed(_SHARED, history).apply(manager, config, force=True)
    once = timeless(live.doc)
    assert timeless(live.apply(manager, config, force=True, now=LATER).doc) == once


def timeless(doc):
    """Without times, and without the order of managers that they determine: an empty list is applied each time."""
    doc = copy.deepcopy(doc)
    entries = doc["metadata"].get("managedFields", [])
    for entry in entries:
        entry.pop("time", None)
    entries.sort(key=lambda entry: (entry["manager"], entry["operation"]))
    return doc


@given(histories, managers, configs)
def test_what_is_applied_is_there_and_owned(history, manager, config):
    live = replayed(_SHARED, history).apply(manager, config, force=True)
    doc, owned = live.doc, set(fieldset.paths(live.owners.get((manager, "Apply", ""), {})))
    for key, value in config.get("metadata", {}).get("labels", {}).items():
        assert doc["metadata"]["labels"][key] == value
        assert ("f:metadata", "f:labels", f"f:{key}") in owned
    for port in config.get("spec", {}).get("ports", []):
        assert port in doc["spec"]["ports"]
    if "selector" in config.get("spec", {}):
        assert doc["spec"]["selector"] == config["spec"]["selector"]
        assert ("f:spec", "f:selector") in owned


@example(
    [("bob", {"spec": {}}, True), ("alice", {"spec": {"selector": {"a": "1"}}}, True)], "alice", {"spec": {"ports": []}}
)
@given(histories, managers, configs)
def test_fields_of_others_change_only_with_force(history, manager, config):
    live = replayed(_SHARED, history)
    if live.doc is None:
        return
    before, owners = copy.deepcopy(live.doc), live.owners
    try:
        live.apply(manager, config)
    except ApiError:
        assert live.doc == before
        return
    own = fieldset.paths(owners.get((manager, "Apply", ""), {}))
    above = {path[:end] for path in own for end in range(len(path))}  # removed, as upstream, with its last field
    for who, fields in owners.items():
        if who != (manager, "Apply", ""):
            assert set(fieldset.paths(fields)) - above <= set(fieldset.paths(live.owners.get(who, {})))


@given(histories, managers, configs, configs)
def test_dropping_a_field_removes_it_unless_it_is_shared(history, manager, first, second):
    live = replayed(_SHARED, history).apply(manager, first, force=True)
    others = [set(fieldset.paths(f)) for who, f in live.owners.items() if who != (manager, "Apply", "")]
    live.apply(manager, second, force=True)
    kept = live.doc["metadata"].get("labels", {})
    for key in first.get("metadata", {}).get("labels", {}):
        path = ("f:metadata", "f:labels", f"f:{key}")
        if key not in second.get("metadata", {}).get("labels", {}) and not any(path in each for each in others):
            assert key not in kept


@given(histories)
def test_owned_fields_exist(history):
    live = replayed(_SHARED, history)
    if live.doc is None:
        return
    labels = live.doc["metadata"].get("labels", {})
    for fields in live.owners.values():
        for path in fieldset.paths(fields):
            if path[:2] == ("f:metadata", "f:labels") and len(path) == 3:
                assert path[2][2:] in labels


_SHARED = Patching(Schemas(), KINDS.writable)
