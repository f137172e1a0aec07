"""Words for kinds."""

import pytest

from kcm_cli.api.short_names import kind_of, plural_of


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
        ("", ""),
    ],
)
def test_words(word: str, kind: str) -> None:
    assert kind_of(word) == kind


def test_plurals() -> None:
    assert [plural_of(kind) for kind in ("Gateway", "Ingress", "Endpoints", "NetworkPolicy")] == [
        "gateways",
        "ingresses",
        "endpoints",
        "networkpolicies",
    ]
