"""Defaults of writes of the status, which leave the stored spec as it is."""

import copy
from typing import Any

import pytest

from kcm_cli.sandbox.apiserver.kinds import KINDS

WITH_STATUS_DEFAULTS = [kind for kind in KINDS if kind.status_defaults is not None]
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SPECS = {"pods": TEMPLATE["spec"], "replicasets": {"template": TEMPLATE}, "deployments": {"template": TEMPLATE}}
STATUSES: list[dict[str, Any]] = [
    {},
    {"status": {}},
    {
        "status": {
            "replicas": 2,
            "podIP": "10.0.0.1",
            "containerStatuses": [{"resources": {"limits": {"cpu": "1000m"}}}],
        }
    },
    {"status": {"podIPs": [{"ip": "10.0.0.2"}], "allocatedResources": {"cpu": "0.0001"}}},
]


@pytest.mark.parametrize("kind", WITH_STATUS_DEFAULTS, ids=lambda kind: kind.resource)
@pytest.mark.parametrize("status", STATUSES)
def test_they_are_all_that_a_document_with_a_defaulted_spec_lacks(kind, status):
    annotations = {"pod.beta.kubernetes.io/init-containers": "[]", "kept": "x"}
    doc = {"metadata": {"name": "a", "annotations": annotations}, "spec": copy.deepcopy(SPECS[kind.resource])}
    kind.defaults(doc)
    doc = {**doc, "metadata": {"name": "a", "annotations": annotations}, **copy.deepcopy(status)}
    if not status:
        doc.pop("status", None)
    whole, part = copy.deepcopy(doc), copy.deepcopy(doc)
    kind.defaults(whole)
    kind.status_defaults(part)
    assert {"status": {}, **part} == whole | {"status": whole.get("status", {})}
