import pytest

from kcm_cli.planning.endpoints.pods import affected, published_hostname, should_be_in_endpoints
from tests.unit.planning.endpoints.making import pod, service


@pytest.mark.parametrize(
    ("subject", "terminating", "wanted"),
    [
        pytest.param(pod("a"), False, True, id="running"),
        pytest.param(pod("a", ready=False), False, True, id="unready"),
        pytest.param(pod("a", ""), True, False, id="no address"),
        pytest.param(pod("a", phase="Succeeded"), True, False, id="succeeded"),
        pytest.param(pod("a", phase="Failed"), True, False, id="failed"),
        pytest.param(pod("a", deleted=True), True, True, id="terminating, included"),
        pytest.param(pod("a", deleted=True), False, False, id="terminating, not included"),
    ],
)
def test_pods_that_are_endpoints(subject, terminating, wanted):
    assert should_be_in_endpoints(subject, terminating=terminating) is wanted


def test_hostname_is_published_in_the_subdomain_of_the_service_only():
    assert published_hostname(pod("a", hostname="h", subdomain="web"), service()) == "h"
    assert published_hostname(pod("a", hostname="h", subdomain="other"), service()) == ""


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        pytest.param(pod("a"), pod("a"), set(), id="nothing"),
        pytest.param(pod("a"), pod("a", ready=False), {"web"}, id="readiness"),
        pytest.param(pod("a"), pod("a", "10.0.0.2"), {"web"}, id="address"),
        pytest.param(pod("a"), pod("a", deleted=True), {"web"}, id="deletion"),
        pytest.param(pod("a"), pod("a", ready=False, phase="Failed"), {"web"}, id="end of a ready pod"),
        pytest.param(
            pod("a", ready=False), pod("a", ready=False, phase="Failed"), {"web"}, id="end of a pod that was not ready"
        ),
        pytest.param(
            pod("a", ready=False, deleted=True),
            pod("a", ready=False, deleted=True, phase="Failed"),
            {"web"},
            id="end of a pod that is being deleted",
        ),
        pytest.param(pod("a"), pod("a", labels={"app": "db"}), {"web", "db"}, id="other labels"),
        pytest.param(pod("a"), pod("a", labels={"app": "web", "x": "y"}), set(), id="labels that select nothing else"),
        pytest.param(
            pod("a"), pod("a", ready=False, labels={"app": "web", "x": "y"}), {"web"}, id="readiness and labels"
        ),
    ],
)
def test_affected(old, new, wanted):
    assert affected(lambda subject: [subject.labels["app"]], old, new) == wanted
