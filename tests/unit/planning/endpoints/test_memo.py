"""What a memo returns equals what would be computed, whatever changed since the last sync."""

from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import Pod, Service
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.planning.endpoints.memo import Memo

UIDS = [f"u{number}" for number in range(4)]
changes = st.sampled_from(["pod", "note", "service", "delete", "recreate", "nothing"])


def pod(uid: str, version: int) -> Pod:
    return Pod(metadata=ObjectMeta(name=uid, uid=uid, resource_version=str(version)))


@given(st.lists(st.lists(st.tuples(changes, st.sampled_from(UIDS)), max_size=4), max_size=12))
def test_values_are_those_of_the_present_pods(syncs: list[list[tuple[str, str]]]) -> None:
    memo: Memo[tuple[str, str, str | None, int], list[Service]] = Memo(lambda one: [one])
    service, services, version = Service(), 0, 0
    pods = {uid: pod(uid, 0) for uid in UIDS}
    notes: dict[str, str | None] = dict.fromkeys(UIDS)
    made = 0

    def make(one: Pod, note: str | None) -> tuple[str, str, str | None, int]:
        nonlocal made
        made += 1
        return one.uid, one.metadata.resource_version, note, services

    for happening in syncs:
        for what, uid in happening:
            version += 1
            match what:
                case "pod" | "recreate":
                    pods[uid] = pod(uid, version)
                case "note":
                    notes[uid] = None if notes[uid] else f"zone{version}"
                case "service":
                    service, services = Service(), services + 1
                case "delete":
                    pods.pop(uid, None)
        shared = memo.start(service)
        found = [memo.get(one, notes[uid], make) for uid, one in pods.items()]
        assert found == [(one.uid, one.metadata.resource_version, notes[uid], services) for uid, one in pods.items()]
        before = made
        assert shared[0] is service and memo.start(service) is shared
        assert [memo.get(one, notes[uid], make) for uid, one in pods.items()] == found
        assert made == before  # nothing changed, and nothing was computed
