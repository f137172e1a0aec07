"""The pods that recycle volumes."""

import textwrap

import pytest

from kcm_cli.component.volume_config import VolumeConfig
from kcm_cli.controllers.persistentvolume_binder.recycler import RecyclerPods
from kcm_cli.engine.descriptor import StartError
from tests.unit.planning.volumes.objects import volume

NFS, HOST_PATH = {"nfs": {"server": "h", "path": "/x"}}, {"hostPath": {"path": "/tmp/x", "type": "Directory"}}
TEMPLATE = """
    apiVersion: v1
    kind: Pod
    metadata: {generateName: own-, namespace: kube-system, labels: {a: b}}
    spec:
      volumes: [{name: first, emptyDir: {}}, {name: second, emptyDir: {}}]
      containers: [{name: c, image: i}]
"""


def config_of(tmp_path, text):
    path = tmp_path / "pod.yaml"
    path.write_text(textwrap.dedent(text))
    return VolumeConfig(recycler_pod_template_file_nfs=str(path))


@pytest.mark.parametrize(
    ("given", "deadline", "source"),
    [
        pytest.param(volume(size="1Gi", **NFS), 300, NFS, id="at least"),
        pytest.param(volume(size="10500Mi", **NFS), 300, NFS, id="whole Gi count"),
        pytest.param(volume(size="100Gi", **NFS), 3000, NFS, id="per Gi"),
        pytest.param(volume(size="1Gi", **HOST_PATH), 60, {"hostPath": {"path": "/tmp/x"}}, id="hostPath"),
    ],
)
def test_the_timeout_of_a_pod_depends_on_the_size(given, deadline, source):
    pod = RecyclerPods(VolumeConfig()).pod(given)
    assert (pod.namespace, pod.name) == ("default", "recycler-for-v")
    assert pod.doc["spec"]["activeDeadlineSeconds"] == deadline
    assert pod.doc["spec"]["volumes"] == [{"name": "vol", **source}]


def test_a_template_keeps_all_but_its_name_and_first_volume(tmp_path):
    pods = RecyclerPods(config_of(tmp_path, TEMPLATE))
    pod = pods.pod(volume(**NFS))
    assert pod.namespace == "kube-system"
    assert pod.doc["metadata"] == {"name": "recycler-for-v", "namespace": "kube-system", "labels": {"a": "b"}}
    assert pod.doc["spec"]["volumes"] == [{"name": "first", **NFS}, {"name": "second", "emptyDir": {}}]
    assert pod.doc["spec"]["containers"] == [{"name": "c", "image": "i"}]
    assert pods.pod(volume(**HOST_PATH)).namespace == "default"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: [", "while parsing", id="no YAML"),
        pytest.param("kind: Pod", "apiVersion", id="no version"),
        pytest.param(TEMPLATE.replace("Pod", "Job"), "$.kind", id="no pod"),
        pytest.param(TEMPLATE.replace("namespace: kube-system, ", ""), "namespace", id="no namespace"),
        pytest.param(TEMPLATE.replace("volumes: [", "volumes: []\n      x: ["), "$.spec.volumes", id="no volume"),
    ],
)
def test_an_invalid_template_is_reported_with_flag_and_path(tmp_path, text, expected):
    with pytest.raises(StartError, match="--pv-recycler-pod-template-filepath-nfs: /.*pod.yaml: ") as caught:
        RecyclerPods(config_of(tmp_path, text))
    assert expected in str(caught.value)


def test_a_missing_template_is_reported(tmp_path):
    config = VolumeConfig(recycler_pod_template_file_host_path=str(tmp_path / "none"))
    with pytest.raises(StartError, match="--pv-recycler-pod-template-filepath-hostpath: .*No such file"):
        RecyclerPods(config)
