"""The fields that a document has."""

from kcm_cli.sandbox.apiserver.apply.typed import field_set, problems
from kcm_cli.sandbox.apiserver.schema import Schemas, Target

POD = Schemas().node(Target("", "v1", "Pod"))


def test_items_that_share_their_key_are_owned_as_wholes():
    containers = [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}, {"name": "a", "image": "y"}]
    found = field_set(POD, {"spec": {"containers": containers}})
    stated = {".": {}, "f:image": {}, "f:name": {}}
    assert found == {"f:spec": {"f:containers": {'k:{"name":"a"}': {}, 'k:{"name":"b"}': stated}}}


def test_values_in_errors_are_quoted():
    (problem,) = problems(POD, {"spec": {"nodeName": {"a": 'b\n"c"'}}})
    shown = 'map[string]interface {}{"a":"b\\n\\"c\\""}'
    assert problem == f".spec.nodeName: expected string, got &value.valueUnstructured{{Value:{shown}}}"
