"""Empty lists and maps in what is refused."""

from collections.abc import Iterator

import pytest

from kcm_cli.sandbox.apiserver.registry.empties import with_empty
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.types import Tree
from tests.unit.sandbox.asking import Api


@pytest.fixture(scope="module")
def api(certificates: Certificates) -> Iterator[Api]:
    made = Api(certificates)
    yield made
    made.close()


def test_empty_values_come_back_where_the_object_has_none():
    doc = {"spec": {"a": 1, "items": [{"name": "x"}, {"name": "y"}]}}
    stated = {"spec": {"a": 2, "none": None, "list": [], "map": {}, "items": [{"ports": []}, {"name": "z"}]}}
    assert with_empty(doc, stated) == {
        "spec": {"a": 1, "list": [], "map": {}, "items": [{"name": "x", "ports": []}, {"name": "y"}]}
    }
    assert doc == {"spec": {"a": 1, "items": [{"name": "x"}, {"name": "y"}]}}


def test_what_is_the_servers_own_stays():
    doc = {"metadata": {"name": "a"}, "status": {}}
    assert with_empty(doc, {"metadata": {"labels": {}}, "status": {"conditions": []}}) == doc


def test_lists_of_other_lengths_are_left_alone():
    assert with_empty({"spec": {"items": [{}]}}, {"spec": {"items": [{"ports": []}, {}]}}) == {"spec": {"items": [{}]}}


@pytest.mark.parametrize(
    ("method", "media"),
    [
        ("PUT", "application/json"),
        ("PATCH", "application/merge-patch+json"),
        ("PATCH", "application/strategic-merge-patch+json"),
    ],
)
def test_a_refusal_tells_what_was_emptied_from_what_was_left_out(api: Api, method: str, media: str) -> None:
    pods = f"/api/v1/namespaces/{api.namespace()}/pods"
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 80}]}
    api.post(pods, {"metadata": {"name": "p"}, "spec": {"containers": [container]}})
    container["ports"] = [] if media != "application/strategic-merge-patch+json" else [{"$patch": "replace"}]
    stated = {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
    answer = api.run(api.ask(method, f"{pods}/p", stated, content_type=media))
    assert answer.status == 422
    assert '"Ports": []' in answer.message


def test_an_empty_value_is_no_error_of_its_own(api: Api) -> None:
    namespace = api.namespace()
    pod = {"spec": {"containers": [{"name": "c", "image": "i"}]}, "metadata": {"name": "p", "labels": {"a": "b"}}}
    sets = {"metadata": {"name": "p"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pod}}
    for path, doc in (("/api/v1/{}/pods", pod), ("/apis/apps/v1/{}/statefulsets", sets)):
        objects = path.format(f"namespaces/{namespace}")
        spec = api.make(objects, doc)["spec"]
        wrong = {"metadata": {"name": "p", "labels": {"!": ""}}, "spec": {**spec, "nodeSelector": {}, "unknown": []}}
        answer = api.put(f"{objects}/p", wrong)
        assert {cause["field"] for cause in answer.causes} == {"metadata.labels"}


def test_a_refused_creation_tells_empty_from_absent(api: Api) -> None:
    template = {"metadata": {"labels": {}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    sets = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    answer = api.post(f"/apis/apps/v1/namespaces/{api.namespace()}/deployments", sets)
    assert "Invalid value: {}: `selector` does not match template `labels`" in answer.message


def test_some_kinds_count_an_empty_list_as_a_change_each_time(api: Api) -> None:
    path = f"/apis/networking.k8s.io/v1/namespaces/{api.namespace()}/networkpolicies"
    doc: Tree = {"metadata": {"name": "p"}, "spec": {"podSelector": {"matchLabels": {"a": "b"}}}}
    assert api.post(path, doc).doc["metadata"]["generation"] == 1
    assert api.put(f"{path}/p", doc).doc["metadata"]["generation"] == 1
    doc["spec"]["podSelector"]["matchExpressions"] = []
    for generation in (2, 3):
        changed = api.put(f"{path}/p", doc).doc
        assert changed["metadata"]["generation"] == generation
        assert changed["spec"]["podSelector"] == {"matchLabels": {"a": "b"}}
