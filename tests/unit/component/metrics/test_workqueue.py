from kcm_cli.component.metrics import Registry, WorkqueueCollector


class Hand:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def test_an_items_way_through_the_queue() -> None:
    registry, hand = Registry(), Hand()
    queue = WorkqueueCollector(registry).queue("deployment", hand)
    queue.added("a")
    queue.added("b")
    hand.at = 0.5
    queue.taken("a")
    hand.at = 2.5
    text = registry.expose().decode()
    assert 'workqueue_adds_total{name="deployment"} 2\n' in text
    assert 'workqueue_depth{name="deployment"} 1\n' in text
    assert 'workqueue_longest_running_processor_seconds{name="deployment"} 2\n' in text
    assert 'workqueue_queue_duration_seconds_bucket{name="deployment",le="1"} 1\n' in text
    assert 'workqueue_queue_duration_seconds_bucket{name="deployment",le="0.1"} 0\n' in text
    assert 'workqueue_queue_duration_seconds_bucket{name="deployment",le="1e-08"} 0\n' in text
    assert 'workqueue_queue_duration_seconds_bucket{name="deployment",le="9.999999999999999e-06"} 0\n' in text
    queue.finished("a")
    queue.retried()
    text = registry.expose().decode()
    assert 'workqueue_work_duration_seconds_sum{name="deployment"} 2\n' in text
    assert 'workqueue_unfinished_work_seconds{name="deployment"} 0\n' in text
    assert 'workqueue_retries_total{name="deployment"} 1\n' in text


def test_an_item_added_while_in_work_waits_from_then_on() -> None:
    hand = Hand()
    queue = WorkqueueCollector(Registry()).queue("q", hand)
    queue.added("a")
    queue.taken("a")
    hand.at = 1.0
    queue.added("a")
    hand.at = 3.0
    queue.finished("a")
    queue.taken("a")
    assert (queue.worked.sum, queue.waited.sum) == (3.0, 2.0)
