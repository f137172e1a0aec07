"""Words for kinds."""

import pytest

from kcm_cli.api.short_names import kind_in, kind_of, kind_of_reference, plural_of
from kcm_cli.plan.kinds import KINDS


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("deploy", "Deployment"),
        ("deployments.apps", "Deployment"),
        ("deployments.v1.apps", "Deployment"),
        ("services.", "Service"),
        ("services.serving.knative.dev", "Service.serving.knative.dev"),
        ("services.v1.serving.knative.dev", "Service.serving.knative.dev"),
        ("Job.batch.volcano.sh", "Job.batch.volcano.sh"),
        ("rollouts.argoproj.io", "rollouts"),
        ("Pods", "Pod"),
        ("po", "Pod"),
        ("networkpolicies", "NetworkPolicy"),
        ("ingresses", "Ingress"),
        ("endpoints", "Endpoints"),
        ("job", "Job"),
        ("Widget", "Widget"),
        ("ingressclasses.networking.k8s.io", "IngressClass"),
        ("quota.example.com", "quota"),
        ("Limits.example.com", "Limits"),
        ("", ""),
    ],
)
def test_words(word: str, kind: str) -> None:
    assert kind_of(word) == kind


@pytest.mark.parametrize(
    ("group", "kind", "shown"),
    [
        ("apps", "Deployment", "Deployment"),
        ("", "pod", "Pod"),
        ("serving.knative.dev", "Service", "Service.serving.knative.dev"),
        ("example.com", "Role", "Role.example.com"),
        ("example.com", "Quota", "Quota"),
        ("example.com", "Widget", "Widget"),
    ],
)
def test_kinds_of_groups(group: str, kind: str, shown: str) -> None:
    assert kind_in(group, kind) == kind_of(f"{kind}.{group}") == shown
    assert kind_of_reference(f"{group}/v1" if group else "v1", kind) == shown


@pytest.mark.parametrize("kind", [*(one.kind for one in KINDS), "ConfigMap", "Event", "Secret"])
def test_kinds_of_a_snapshot_are_known(kind: str) -> None:
    assert kind_in("example.com", kind) == f"{kind}.example.com"


def test_plurals() -> None:
    assert [plural_of(kind) for kind in ("Gateway", "Ingress", "Endpoints", "NetworkPolicy")] == [
        "gateways",
        "ingresses",
        "endpoints",
        "networkpolicies",
    ]
