import pytest

from kcm_cli.planning.template_defaults import same_when_defaulted


def template(container=None, spec=None):
    return {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i:1", **(container or {})}], **(spec or {})},
    }


def volume(source):
    return {"volumes": [{"name": "v", **source}]}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (template(), template(), True),
        (template(), template(spec={"dnsPolicy": "ClusterFirst"}), True),
        (template(), template(spec={"dnsPolicy": "Default"}), False),
        (template(spec={"dnsPolicy": "ClusterFirst"}), template(), False),
        (template(), template({"imagePullPolicy": "IfNotPresent"}), True),
        (template(), template({"imagePullPolicy": "Always"}), False),
        (template({"image": "i"}), template({"image": "i", "imagePullPolicy": "Always"}), True),
        (template({"image": "h:5/i"}), template({"image": "h:5/i", "imagePullPolicy": "Always"}), True),
        (template({"image": "i@sha256:x"}), template({"image": "i@sha256:x", "imagePullPolicy": "IfNotPresent"}), True),
        (template(), template({"resources": {}}), True),
        (template(), template({"resources": {"limits": {}}}), False),
        (template(), template({"image": "i:2"}), False),
        (template(), template({"unheard": "of"}), False),
        (template({"ports": [{"containerPort": 1}]}), template({"ports": [{"containerPort": 1, "protocol": "TCP"}]}),
         True),
        (template({"livenessProbe": {"httpGet": {"port": 1}}}),
         template({"livenessProbe": {"httpGet": {"port": 1, "scheme": "HTTP"}, "periodSeconds": 10}}), True),
        (template({"livenessProbe": {}}), template({"livenessProbe": {"periodSeconds": 11}}), False),
        (template({"livenessProbe": {}}), template({"livenessProbe": {"periodSeconds": True}}), False),
        (template(spec=volume({"secret": {"secretName": "s"}})),
         template(spec=volume({"secret": {"secretName": "s", "defaultMode": 420}})), True),
        (template(spec=volume({"secret": {}})), template(spec=volume({"secret": {"defaultMode": 256}})), False),
        (template(spec=volume({})), template(spec=volume({"emptyDir": {}})), True),
        (template(spec={"serviceAccountName": "s"}),
         template(spec={"serviceAccountName": "s", "serviceAccount": "s"}), True),
        (template(), template(spec={"containers": []}), False),
    ],
)  # fmt: skip
def test_only_defaults_may_be_added(old, new, expected):
    assert same_when_defaulted(old, new) is expected
