"""Slices that would be deleted are used for new ones."""

from kcm_cli.api.discovery import IPV4, IPV6, EndpointSlice
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.planning.endpoints.slices import Changes, Draft
from tests.kit.growth import grows_linearly


def draft(number, address_type=IPV4):
    return Draft(address_type, (), {"number": str(number)}, [])


def slice_(number, address_type=IPV4):
    return EndpointSlice(metadata=ObjectMeta(name=f"s{number}", uid=f"u{number}"), address_type=address_type)


def test_each_slice_is_reused_once_for_one_of_its_type():
    create = [draft(1), draft(2, IPV6), draft(3)]
    delete = [slice_(1), slice_(2), slice_(3), slice_(4, IPV6), slice_(5, IPV6)]
    changes = Changes(create=list(create), delete=list(delete))
    changes.recycle(delete[1:])
    assert changes.create == []
    assert [one.name for one in changes.delete] == ["s1", "s5"]
    found = [(one.labels["number"], one.existing.name, one.recycled) for one in changes.update if one.existing]
    assert found == [("3", "s2", True), ("1", "s3", True), ("2", "s4", True)]


def test_new_slices_beyond_the_reusable_ones_stay_new():
    changes = Changes(create=[draft(1), draft(2)], delete=[slice_(1)])
    changes.recycle(tuple(changes.delete))
    assert ([one.labels["number"] for one in changes.create], changes.delete) == (["1"], [])


def test_the_cost_is_linear():
    """One Endpoints object may have thousands of subsets, each with its own slice."""

    def prepare(count):
        slices = [slice_(number) for number in range(count)]

        def call():
            changes = Changes(create=[draft(number) for number in range(count)], delete=list(slices))
            changes.recycle(slices)

        return call

    assert grows_linearly(prepare, 500)
