import pytest

from kcm_cli.controllers.daemonset.plan import pod as rules
from kcm_cli.machinery import codec
from tests.unit.controllers.daemonset.conftest import TEMPLATE, pod_of, set_of

GENERATION = "deprecated.daemonset.template.generation"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", "3"), ("-3", "-3"), ("+3", "3"), ("007", "7"), ("", None), ("x", None), ("9" * 5000, None), ("²", None)],
)
def test_the_template_generation_is_a_number(text, expected):
    assert rules.template_generation(set_of(annotations={GENERATION: text})) == expected


@pytest.mark.parametrize(
    ("hash_", "generation", "expected"),
    [("new", None, True), ("other", None, False), ("other", "7", True), ("", None, False), ("other", "8", False)],
)
def test_a_pod_is_updated_by_hash_or_by_generation(hash_, generation, expected):
    pod = pod_of("n1", labels={"controller-revision-hash": "new", "pod-template-generation": "7"})
    assert rules.is_updated(pod, hash_, generation) is expected


def test_the_pod_of_a_node():
    body = codec.decode_doc(rules.PodBodies(set_of(annotations={GENERATION: "5"}), "abc").for_node("n7"))
    assert body["metadata"]["generateName"] == "agent-"
    assert body["metadata"]["labels"] == {
        "app": "agent",
        "pod-template-generation": "5",
        "controller-revision-hash": "abc",
    }
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    assert body["spec"]["affinity"] == {"nodeAffinity": required}
    assert len(body["spec"]["tolerations"]) == 6


def test_affinity_of_the_template_is_kept_except_for_required_nodes():
    affinity = {
        "podAntiAffinity": {"x": 1},
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [2],
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]},
        },
    }
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "affinity": affinity}}
    bodies = rules.PodBodies(set_of(template=template), "abc")
    found = codec.decode_doc(bodies.for_node("n1"))["spec"]["affinity"]
    assert found["podAntiAffinity"] == {"x": 1}
    assert found["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == [2]
    terms = found["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [term["matchFields"][0]["values"] for term in terms] == [["n1"]]
    assert affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == {
        "nodeSelectorTerms": [{"matchExpressions": []}]
    }
