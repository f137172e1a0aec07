"""The search finds a valid solution if and only if there is one."""

from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.sandbox.scheduler.devices.making import claim, device, devices_of, slice_of, used, wanted

KINDS = ("a", "b")
requests = st.tuples(st.sampled_from((None, *KINDS)), st.integers(1, 2))
claims = st.lists(st.tuples(st.lists(requests, min_size=1, max_size=2), st.booleans()), min_size=1, max_size=2)
devices = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 1)), max_size=4)


def asking(kind: str | None, count: int) -> dict[str, Any]:
    selectors = [] if kind is None else [f'device.attributes["gpu.x"].kind == "{kind}"']
    return wanted(*selectors, count=count)


def solvable(asked: Any, found: Any, taken: set[int]) -> bool:
    """Brute force: each free device is tried for each request."""
    slots = [(c, kind) for c, (wishes, _) in enumerate(asked) for kind, count in wishes for _ in range(count)]
    free = [index for index in range(len(found)) if index not in taken]
    for choice in product(free, repeat=len(slots)):
        if len(set(choice)) < len(choice):
            continue
        if any(kind is not None and found[d][0] != kind for d, (_, kind) in zip(choice, slots, strict=True)):
            continue
        same = [{found[d][1] for d, (c, _) in zip(choice, slots, strict=True) if c == own} for own in range(len(asked))]
        if all(not alike or len(values) < 2 for values, (_, alike) in zip(same, asked, strict=True)):
            return True
    return False


@given(claims, devices, st.sets(st.integers(0, 3), max_size=2))
def test_found_where_there_is_one(asked: Any, found: Any, taken: set[int]) -> None:
    docs = [device(f"d{n}", attributes={"kind": kind, "numa": numa}) for n, (kind, numa) in enumerate(found)]
    alike = {"constraints": [{"matchAttribute": "gpu.x/numa"}]}
    made = [
        claim(*(asking(*wish) for wish in wishes), name=f"c{number}", **(alike if same else {}))
        for number, (wishes, same) in enumerate(asked)
    ]
    usage = used(*(f"d{n}" for n in taken))
    got = devices_of(made, [slice_of(*docs)], usage=usage)
    assert (got is not None) == solvable(asked, found, taken)
    if got is not None:
        names = [name for each in got for name in each]
        assert len(set(names)) == len(names)
        assert not set(names) & {f"d{n}" for n in taken}
        for each, (wishes, _) in zip(got, asked, strict=True):
            kinds = [kind for kind, count in wishes for _ in range(count)]
            assert all(kind in (None, found[int(name[1:])][0]) for kind, name in zip(kinds, each, strict=True))
