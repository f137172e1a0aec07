from kcm_cli.component.metrics import Histogram, Registry
from kcm_cli.component.metrics.informers import HANDLING_BUCKETS, CacheState, InformerCollector


def took(*seconds: float) -> Histogram:
    histogram = Histogram(HANDLING_BUCKETS)
    for one in seconds:
        histogram.observe(one)
    return histogram


def test_caches_are_exposed_by_resource_with_the_newest_version() -> None:
    registry = Registry()
    informers = InformerCollector(registry)
    assert "informer_" not in registry.expose().decode()
    informers.add(
        lambda: [CacheState("", "v1", "pods", 7, took(0.002, 20)), CacheState("apps", "v1", "deployments", 5, took())]
    )
    informers.add(lambda: [CacheState("", "v1", "pods", 9, took(0.5))])
    text = registry.expose().decode()
    pods = 'group="",name="kube-controller-manager",resource="pods",version="v1"'
    assert f"informer_store_resource_version{{{pods}}} 9\n" in text
    assert f"informer_queued_items{{{pods}}} 0\n" in text
    assert f"informer_processing_latency_seconds_count{{{pods}}} 3\n" in text
    assert f"informer_processing_latency_seconds_sum{{{pods}}} 20.502\n" in text
    assert text.count("informer_store_resource_version{") == 2
