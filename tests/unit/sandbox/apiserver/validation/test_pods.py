"""Rules of pods beyond the table of refused values (``kinds/test_pod.py``)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.sandbox.apiserver.strategy import kit


def test_a_volume_without_a_source_is_an_empty_directory():
    assert kit.problems(kit.PODS, kit.pod({"volumes": [{"name": "v"}]})) == []


@pytest.mark.parametrize(
    ("value", "good"),
    [
        pytest.param("-5", True, id="negative"),
        pytest.param("0", True, id="zero"),
        pytest.param("007", False, id="leading-zeros"),
        pytest.param("+1", False, id="plus"),
        pytest.param("2147483648", False, id="too-large"),
    ],
)
def test_deletion_cost(value, good):
    key = "controller.kubernetes.io/pod-deletion-cost"
    found = kit.problems(kit.PODS, kit.pod(annotations={key: value}))
    expected = f'metadata.annotations[{key}]: Invalid value: "{value}": must be a 32bit integer'
    assert found == ([] if good else [expected])


@given(st.integers(-10, 70010))
def test_a_port_is_a_port_or_is_named_in_the_refusal(number):
    found = kit.problems(kit.PODS, kit.pod(container={"ports": [{"containerPort": number}]}))
    assert bool(found) is not (1 <= number <= 65535)
    assert all(text.startswith("spec.containers[0].ports[0].containerPort: ") for text in found)


def test_a_template_names_the_image_of_a_volume_as_a_pod_does():
    deployment = kit.deployment()
    volumes = [{"name": "v", "image": {"pullPolicy": "Always"}}]
    assert kit.problems(kit.DEPLOYMENTS, kit.changed(deployment, spec__template__spec__volumes=volumes)) == [
        "spec.template.spec.volumes[0].image.reference: Required value"
    ]
