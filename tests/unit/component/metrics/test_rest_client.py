import gc

from kcm_cli.component.metrics import Registry, RestClientMetrics


def test_requests_are_counted_by_host_method_and_code() -> None:
    registry = Registry()
    metrics = RestClientMetrics(registry)
    host = metrics.host("h:6443")
    host.answered("GET", "429", 0, attempt=0)
    host.answered("GET", "200", 0, attempt=1)
    host.finished("GET", 0.3, 2000)
    host.answered("GET", "200", None, attempt=0)
    host.throttled("GET", 0.0)
    assert metrics.host("h:6443") is host
    text = registry.expose().decode()
    assert 'rest_client_requests_total{code="200",host="h:6443",method="GET"} 2\n' in text
    assert 'rest_client_request_size_bytes_count{host="h:6443",verb="GET"} 2\n' in text
    assert 'rest_client_requests_total{code="429",host="h:6443",method="GET"} 1\n' in text
    assert 'rest_client_request_retries_total{code="200",host="h:6443",verb="GET"} 1\n' in text
    bucket = 'rest_client_request_duration_seconds_bucket{host="h:6443",verb="GET",le="0.5"}'
    assert f"{bucket} 1\n" in text
    assert 'rest_client_response_size_bytes_sum{host="h:6443",verb="GET"} 2000\n' in text
    assert "rest_client_exec_plugin_ttl_seconds +Inf\n" in text


class Session:
    """Something that is opened and goes."""


def test_open_sessions_are_counted() -> None:
    registry = Registry()
    metrics = RestClientMetrics(registry)
    first, second = Session(), Session()
    metrics.transport.opened(first)
    metrics.transport.opened(second)
    del first
    gc.collect()
    text = registry.expose().decode()
    assert "rest_client_transport_cache_entries 1\n" in text
    assert 'rest_client_transport_create_calls_total{result="miss"} 2\n' in text


def test_runs_of_plugins_are_counted_by_result() -> None:
    registry = Registry()
    RestClientMetrics(registry).exec_plugin.called(7, "plugin_execution_error")
    series = 'rest_client_exec_plugin_call_total{call_status="plugin_execution_error",code="7"} 1\n'
    assert series in registry.expose().decode()
