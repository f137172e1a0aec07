from kcm_cli.controllers.shared.failed_pods import MAXIMUM_S, FailedPods


def test_the_first_failed_pod_is_deleted_at_once_and_the_backoff_doubles():
    failed = FailedPods()
    now, waits = 0.0, []
    for _ in range(12):
        delay = failed.waits("k", now)
        assert delay is None
        failed.next("k", now)
        waits.append(failed.waits("k", now))
        now += waits[-1]
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, MAXIMUM_S, MAXIMUM_S]


def test_the_backoff_is_per_node():
    failed = FailedPods()
    failed.next("a", 0.0)
    assert failed.waits("b", 0.0) is None


def test_the_backoff_is_reset_after_an_idle_period():
    failed = FailedPods()
    for _ in range(5):
        failed.next("k", 0.0)
    failed.next("k", 2 * MAXIMUM_S + 1)
    assert failed.waits("k", 2 * MAXIMUM_S + 1) == 1


def test_collection_removes_only_expired_entries():
    failed = FailedPods()
    failed.next("old", 0.0)
    failed.next("young", 2 * MAXIMUM_S)
    failed.collect(2 * MAXIMUM_S + 0.5)
    assert failed.waits("young", 2 * MAXIMUM_S + 0.5) == 1
    failed.next("young", 2 * MAXIMUM_S + 0.5)
    assert failed.waits("young", 2 * MAXIMUM_S + 0.5) == 2


def test_the_longest_delay_can_be_set():
    failed = FailedPods(maximum_s=3)
    for _ in range(4):
        failed.next("k", 0.0)
    assert failed.waits("k", 0.0) == 3
    failed.collect(7)
    failed.next("k", 7)
    assert failed.waits("k", 7) == 1
