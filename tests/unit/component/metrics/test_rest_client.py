from kcm_cli.component.metrics import Registry, RestClientMetrics


def test_requests_are_counted_by_host_method_and_code() -> None:
    registry = Registry()
    metrics = RestClientMetrics(registry)
    get = metrics.verb("h:6443", "GET")
    get.result("200")
    get.result("200")
    get.retried("429")
    get.duration.observe(0.3)
    assert metrics.verb("h:6443", "GET") is get
    text = registry.expose().decode()
    assert 'rest_client_requests_total{code="200",host="h:6443",method="GET"} 2\n' in text
    assert 'rest_client_request_retries_total{code="429",host="h:6443",verb="GET"} 1\n' in text
    bucket = 'rest_client_request_duration_seconds_bucket{host="h:6443",verb="GET",le="0.5"}'
    assert f"{bucket} 1\n" in text
    assert "rest_client_exec_plugin_ttl_seconds +Inf\n" in text
