import pytest

from kcm_cli.api.apps import CONTROLLER_REVISIONS
from kcm_cli.controllers.statefulset.plan import revisions as rules
from kcm_cli.controllers.statefulset.plan.snapshot import Revision
from kcm_cli.machinery import codec
from tests.unit.controllers.statefulset.conftest import OLD_TEMPLATE, TEMPLATE


def revision(name, number, template):
    doc = {
        "metadata": {"name": name, "namespace": "ns", "labels": {"app": "db"}},
        "revision": number,
        "data": {"spec": {"template": {**template, "$patch": "replace"}}},
    }
    return CONTROLLER_REVISIONS.decode(codec.encode(doc))


OLD, NEW = revision("r-old", 1, OLD_TEMPLATE), revision("r-new", 2, TEMPLATE)


def test_the_first_revision_is_number_one(make_set):
    missing = rules.wanted(make_set(), [], semantic=False)
    assert isinstance(missing, rules.Missing)
    assert missing.number == 1


def test_an_unknown_template_gets_the_next_number(make_set):
    assert rules.wanted(make_set(), [OLD], semantic=False).number == 2


def test_the_latest_revision_is_kept(make_set):
    assert rules.wanted(make_set(), [OLD, NEW], semantic=False) == rules.Existing(NEW)


def test_a_rollback_renumbers_an_old_revision(make_set):
    assert rules.wanted(make_set(template=OLD_TEMPLATE), [OLD, NEW], semantic=False) == rules.Existing(OLD, 3)


def test_a_duplicate_of_the_latest_revision_is_the_latest(make_set):
    double = revision("r-double", 3, TEMPLATE)
    assert rules.wanted(make_set(), [NEW, double], semantic=False) == rules.Existing(double)


def test_new_defaults_create_no_revision(make_set):
    spec = {"containers": [{"name": "c", "image": "i:2", "terminationMessagePolicy": "File"}]}
    set_ = make_set(template={"metadata": TEMPLATE["metadata"], "spec": spec})
    assert rules.wanted(set_, [OLD, NEW]) == rules.Existing(NEW)
    assert isinstance(rules.wanted(set_, [OLD, NEW], semantic=False), rules.Missing)


def test_names_and_labels_have_the_hash_and_names_change_on_collisions(make_set):
    missing = rules.wanted(make_set(), [], semantic=False)
    first, second = (rules.name_for(make_set(), missing.data, count) for count in (0, 1))
    assert first != second
    body = codec.decode_doc(rules.body_of(make_set(), missing, 0, second))
    assert body["metadata"]["name"] == second
    assert body["metadata"]["labels"] == {"app": "db", "controller.kubernetes.io/hash": first.removeprefix("db-")}


def test_hash_of_the_go_binary():
    """The hash in the name that the v1.36 binary gave to a revision with this template."""
    data = {
        "spec": {
            "template": {
                "$patch": "replace",
                "metadata": {"labels": {"app": "db"}},
                "spec": {
                    "containers": [
                        {
                            "image": "img:1",
                            "imagePullPolicy": "IfNotPresent",
                            "name": "c",
                            "resources": {},
                            "terminationMessagePath": "/dev/termination-log",
                            "terminationMessagePolicy": "File",
                        }
                    ],
                    "dnsPolicy": "ClusterFirst",
                    "restartPolicy": "Always",
                    "schedulerName": "default-scheduler",
                    "securityContext": {},
                    "terminationGracePeriodSeconds": 30,
                },
            }
        }
    }
    set_ = CONTROLLER_REVISIONS.decode(codec.encode({"metadata": {"name": "db"}}))
    assert rules.name_for(set_, data, 0) == "db-78d9749dbd"


@pytest.mark.parametrize(
    ("named", "expected"), [("r-old", "r-old"), ("r-new", "r-new"), ("gone", "r-new"), ("", "r-new")]
)
def test_the_current_revision_is_the_one_of_the_status(make_set, named, expected):
    set_ = make_set({"currentRevision": named})
    assert rules.current(set_, [OLD, NEW], Revision("r-new", TEMPLATE)).name == expected


@pytest.mark.parametrize(
    ("limit", "live", "used", "expected"),
    [
        (1, ["r4"], "r4", ["r1", "r2"]),
        (0, ["r4"], "r2", ["r1", "r3"]),
        (10, ["r4"], "r4", []),
        (-1, [], "r4", []),
        (2, ["r1", "r4"], "r4", []),
    ],
)
def test_history_beyond_the_limit_is_deleted_unless_it_is_in_use(make_set, make_pod, limit, live, used, expected):
    all_ = [revision(f"r{n}", n, {"n": n}) for n in (1, 2, 3, 4)]
    set_ = make_set(revisionHistoryLimit=limit)
    assert [r.name for r in rules.surplus(set_, all_, [make_pod(0, revision=used)], live)] == expected
