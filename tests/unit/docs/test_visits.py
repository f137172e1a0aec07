"""A value is followed through few files: what docs/visits.md shows is at most this."""

from tests.generate.visits import most_of_a_folder, ways


def test_a_value_passes_few_files() -> None:
    key, pod, option = ways()
    assert len(key) <= 14
    assert len({stop.folder for stop in key}) <= 8
    assert len(pod) <= 15
    assert most_of_a_folder(option) <= 2
    # where each must pass, so that the moments are the right ones
    assert {"runtime/informer.py", "runtime/workqueue.py", "engine/door.py"} <= {stop.file for stop in key}
    assert pod[-1].file == "sandbox/apiserver/store/store.py"
    assert option[-1].file == "engine/context.py"
