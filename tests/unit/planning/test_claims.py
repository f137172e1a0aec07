import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.apps import REPLICA_SETS
from kcm_cli.api.core import PODS
from kcm_cli.machinery import labels
from kcm_cli.machinery.meta import Object, ObjectMeta, OwnerReference
from kcm_cli.planning import claims

SELECTOR = labels.parse("app=web")


def owner(deleting=False):
    return Object(
        metadata=ObjectMeta("web", "ns", "u1", deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None)
    )


def pod(app="web", controller=None, deleting=False, namespace="ns"):
    references = (OwnerReference("apps/v1", "ReplicaSet", "x", controller, controller=True),) if controller else ()
    return Object(
        metadata=ObjectMeta(
            "p",
            namespace,
            "p1",
            resource_version="7",
            labels={"app": app},
            owner_references=references,
            deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
        )
    )


@pytest.mark.parametrize(
    ("candidate", "owner_deleting", "expected"),
    [
        (pod(controller="u1"), False, "kept"),
        (pod(controller="u1", deleting=True), False, "kept"),
        (pod(controller="u1"), True, "kept"),
        (pod("db", controller="u1"), False, "release"),
        (pod("db", controller="u1"), True, None),
        (pod(controller="u2"), False, None),
        (pod("db", controller="u2"), False, None),
        (pod(), False, "adopt"),
        (pod(), True, None),
        (pod(deleting=True), False, None),
        (pod("db"), False, None),
        (pod(namespace="other"), False, None),
    ],
)
def test_decides(candidate, owner_deleting, expected):
    decided = claims.decide(owner(owner_deleting), SELECTOR, [candidate])
    for field in ("kept", "adopt", "release"):
        assert getattr(decided, field) == ((candidate,) if field == expected else ()), field


_pods = st.builds(
    pod,
    st.sampled_from(["web", "db"]),
    st.sampled_from([None, "u1", "u2"]),
    st.booleans(),
    st.sampled_from(["ns", "n2"]),
)


@given(st.lists(_pods), st.booleans())
def test_every_candidate_is_named_at_most_once(candidates, deleting):
    decided = claims.decide(owner(deleting), SELECTOR, candidates)
    named = [id(obj) for obj in (*decided.kept, *decided.adopt, *decided.release)]
    assert len(named) == len(set(named))
    assert set(named) <= {id(obj) for obj in candidates}


def test_writes_have_the_uid():
    adopt = claims.adopt_action(REPLICA_SETS, owner(), PODS, pod(), ("batch.kubernetes.io/job-tracking",))
    assert adopt.body == {
        "metadata": {
            "uid": "p1",
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web",
                    "uid": "u1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "finalizers": ["batch.kubernetes.io/job-tracking"],
        }
    }
    release = claims.release_action(owner(), PODS, pod(), ("f",))
    assert release.body == {
        "metadata": {
            "uid": "p1",
            "resourceVersion": "7",
            "ownerReferences": [{"$patch": "delete", "uid": "u1"}],
            "$deleteFromPrimitiveList/finalizers": ["f"],
        }
    }
