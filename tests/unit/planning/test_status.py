"""The patches by which statuses are applied."""

from typing import Any

import pytest

from kcm_cli.api.core import NODES, PODS
from kcm_cli.machinery.meta import ObjectMeta, PartialObject
from kcm_cli.planning.status import applied_status


@pytest.mark.parametrize(("resource", "namespace"), [(PODS, "ns"), (NODES, "")])
def test_an_apply_has_the_uid(resource: Any, namespace: str) -> None:
    obj = PartialObject(metadata=ObjectMeta(name="x", namespace=namespace, uid="u"))
    patch = applied_status(resource, obj, {"phase": "p"}, "me")
    metadata = {"name": "x", "uid": "u"} | ({"namespace": namespace} if namespace else {})
    expected = {"apiVersion": "v1", "kind": resource.kind, "metadata": metadata, "status": {"phase": "p"}}
    assert (patch.body, patch.manager, patch.subresource) == (expected, "me", "status")
    assert (patch.namespace, patch.name) == (namespace, "x")
