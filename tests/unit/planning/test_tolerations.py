import pytest

from kcm_cli.api.core import Taint, Toleration
from kcm_cli.planning.tolerations import tolerates, untolerated

TAINT = Taint("key", "5", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("key", "", "5", "NoSchedule"), True),
        (Toleration("key", "Equal", "5", "NoSchedule"), True),
        (Toleration("key", "Equal", "6", "NoSchedule"), False),
        (Toleration("key", "Exists", "", "NoSchedule"), True),
        (Toleration("key", "Exists", "", ""), True),
        (Toleration("key", "Exists", "", "NoExecute"), False),
        (Toleration("other", "Exists", "", ""), False),
        (Toleration("", "Exists", "", ""), True),
        (Toleration("", "Equal", "5", ""), True),
        (Toleration("key", "Sometimes", "5", ""), False),
        (Toleration("key", "Lt", "6", ""), False),
    ],
)
def test_tolerations(toleration, expected):
    assert tolerates(toleration, TAINT) is expected


@pytest.mark.parametrize(
    ("operator", "bound", "value", "expected"),
    [
        ("Lt", "6", "5", True),
        ("Lt", "5", "5", False),
        ("Gt", "4", "5", True),
        ("Gt", "-4", "-3", True),
        ("Gt", "5", "5", False),
        ("Gt", "4", "x", False),
        ("Gt", "04", "5", False),
        ("Gt", "+4", "5", False),
        ("Gt", "1", "9" * 30, False),
    ],
)
def test_comparisons_take_plain_numbers(operator, bound, value, expected):
    assert tolerates(Toleration("k", operator, bound), Taint("k", value, "NoExecute"), comparisons=True) is expected


def test_the_first_untolerated_taint_of_the_requested_effects():
    taints = [Taint("a", "", "PreferNoSchedule"), Taint("b", "", "NoSchedule"), Taint("c", "", "NoSchedule")]
    found = untolerated(taints, [Toleration("b", "Exists")], ("NoSchedule", "NoExecute"))
    assert found is taints[2]
    assert untolerated(taints, [Toleration(operator="Exists")], ("NoSchedule",)) is None
