from kcm_cli.component.metrics import MetricsOptions, Registry, WorkqueueCollector


def test_a_key_in_the_queue() -> None:
    registry = Registry()
    queue = WorkqueueCollector(registry).queue("deployment", lambda: 2.5)
    queue.added("a", 1, 0.0)
    queue.added("b", 2, 0.0)
    queue.taken("a", 1, 0.5)
    text = registry.expose().decode()
    assert 'workqueue_adds_total{name="deployment"} 2\n' in text
    assert 'workqueue_depth{name="deployment"} 1\n' in text
    assert 'workqueue_longest_running_processor_seconds{name="deployment"} 2\n' in text
    assert 'workqueue_queue_duration_seconds_bucket{name="deployment",le="1"} 1\n' in text
    assert 'workqueue_queue_duration_seconds_bucket{name="deployment",le="0.1"} 0\n' in text
    assert 'workqueue_queue_duration_seconds_bucket{name="deployment",le="1e-08"} 0\n' in text
    assert 'workqueue_queue_duration_seconds_bucket{name="deployment",le="9.999999999999999e-06"} 0\n' in text
    queue.finished("a", 2.5)
    queue.retried()
    text = registry.expose().decode()
    assert 'workqueue_work_duration_seconds_sum{name="deployment"} 2\n' in text
    assert 'workqueue_unfinished_work_seconds{name="deployment"} 0\n' in text
    assert 'workqueue_retries_total{name="deployment"} 1\n' in text


def test_a_key_added_while_processing_waits_from_then_on() -> None:
    queue = WorkqueueCollector(Registry()).queue("q", lambda: 0.0)
    queue.added("a", 1, 0.0)
    queue.taken("a", 0, 0.0)
    queue.added("a", 0, 1.0)
    queue.finished("a", 3.0)
    queue.taken("a", 0, 3.0)
    assert (queue.worked.sum, queue.waited.sum) == (3.0, 2.0)


def test_names_outside_the_allowed_ones_are_unexpected() -> None:
    """kubernetes/kubernetes#126526"""
    names = {"name": frozenset({"deployment"})}
    shown = ("workqueue_adds_total", "workqueue_depth", "workqueue_queue_duration_seconds")
    registry = Registry(MetricsOptions(allowed_labels=dict.fromkeys(shown, names)))
    collector = WorkqueueCollector(registry)
    for name in ("cronjob", "deployment", "job"):
        queue = collector.queue(name, lambda: 2.0)
        queue.added("a", 1, 0.0)
        queue.added("b", 2, 0.0)
        queue.taken("a", 1, 2.0)
    registry.expose()
    text = registry.expose().decode()
    for line in (
        'workqueue_adds_total{name="deployment"} 2',
        'workqueue_adds_total{name="unexpected"} 4',
        'workqueue_depth{name="unexpected"} 2',
        'workqueue_queue_duration_seconds_bucket{name="deployment",le="1"} 0',
        'workqueue_queue_duration_seconds_bucket{name="unexpected",le="10"} 2',
        'workqueue_queue_duration_seconds_sum{name="unexpected"} 4',
        'workqueue_retries_total{name="job"} 0',
        "cardinality_enforcement_unexpected_categorizations_total 6",
    ):
        assert f"\n{line}\n" in text
    assert 'workqueue_depth{name="job"}' not in text
