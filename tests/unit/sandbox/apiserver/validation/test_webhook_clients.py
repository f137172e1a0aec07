"""Addresses of webhooks: the same texts for definitions, configurations and APIServices."""

from collections.abc import Callable

import pytest

from kcm_cli.sandbox.apiserver.crd.checks.names import check_conversion
from kcm_cli.sandbox.apiserver.validation import webhook_clients
from tests.kit.growth import grows_linearly

FORM = "; desired format: https://host[/path]"


@pytest.mark.parametrize(
    ("url", "messages"),
    [
        ("https://a/b", []),
        ("://", [f'Required value: url must be a valid URL: parse "://": missing protocol scheme{FORM}']),
        ("http://a", [f"Invalid value: \"http\": 'https' is the only allowed URL scheme{FORM}"]),
        (
            "https://u:p@",
            [
                f'Invalid value: "": host must be specified{FORM}',
                'Invalid value: "u:p": user information is not permitted in the URL',
            ],
        ),
        (
            "https://a?b#c",
            [
                'Invalid value: "c": fragments are not permitted in the URL',
                'Invalid value: "b": query parameters are not permitted in the URL',
            ],
        ),
    ],
)
def test_urls(url: str, messages: list[str]) -> None:
    found = webhook_clients.client({"url": url}, "clientConfig")
    assert [(error.field, error.message) for error in found] == [("clientConfig.url", text) for text in messages]


def test_a_url_that_cannot_be_read_is_named_as_by_go() -> None:
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://[x"}}}
    first, second = check_conversion(conversion, "spec.conversion", known_review=True, any_ca=True)
    assert first.field == "spec.conversion.webhookClientConfig.url"
    assert first.message.startswith('Required value: url must be a valid URL: parse "https://[x": ')
    assert second.field == "spec.conversion.conversionReviewVersions"


@pytest.mark.parametrize(
    ("path", "messages"),
    [
        ("", []),
        ("/", []),
        ("/a/b/", []),
        ("//", ["segment[0] may not be empty"]),
        ("/a//b", ["segment[1] may not be empty"]),
    ],
)
def test_paths_of_services(path: str, messages: list[str]) -> None:
    service = {"namespace": "n", "name": "s", "port": 443, "path": path}
    found = webhook_clients.client({"service": service}, "clientConfig")
    expected = [("clientConfig.service.path", f'Invalid value: "{path}": {text}') for text in messages]
    assert [(error.field, error.message) for error in found] == expected


def test_a_service_without_a_name_is_reported_as_one_without_a_namespace() -> None:
    found = webhook_clients.client({"service": {"namespace": "n", "port": 0}}, "c")
    assert [error.field for error in found] == ["c.service.namespace", "c.service.port"]


def test_versions_of_reviews_are_named_once() -> None:
    found = webhook_clients.reviews(["v1", "v2", "v1", "V3", "v2"], "r")
    assert [(error.field, error.type) for error in found] == [
        ("r[2]", "FieldValueInvalid"),
        ("r[3]", "FieldValueInvalid"),
        ("r[4]", "FieldValueInvalid"),
    ]


def test_many_versions_of_reviews_take_linear_time() -> None:
    def review(size: int) -> Callable[[], object]:
        versions = [f"v{number}" for number in range(size)]
        return lambda: list(webhook_clients.reviews(versions, "r"))

    assert grows_linearly(review, 1000)
