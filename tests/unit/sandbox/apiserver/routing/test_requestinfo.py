"""The parsing of methods and paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.sandbox.apiserver.registry.options import truthy
from kcm_cli.sandbox.apiserver.routing.requestinfo import resolve, selected_name


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", ("list", "", "v1", "pods", "", "", "")),
        ("GET", "/api/v1/namespaces/a/pods", ("list", "", "v1", "pods", "", "a", "")),
        ("GET", "/api/v1/namespaces/a/pods/b", ("get", "", "v1", "pods", "", "a", "b")),
        ("HEAD", "/api/v1/namespaces/a/pods/b", ("get", "", "v1", "pods", "", "a", "b")),
        ("GET", "/api/v1/watch/namespaces/a/pods", ("watch", "", "v1", "pods", "", "a", "")),
        ("GET", "/apis/apps/v1/watch/deployments", ("watch", "apps", "v1", "deployments", "", "", "")),
        ("POST", "/apis/apps/v1/namespaces/a/deployments", ("create", "apps", "v1", "deployments", "", "a", "")),
        (
            "PUT",
            "/apis/apps/v1/namespaces/a/deployments/b/scale",
            ("update", "apps", "v1", "deployments", "scale", "a", "b"),
        ),
        ("PATCH", "/api/v1/nodes/n/status", ("patch", "", "v1", "nodes", "status", "", "n")),
        ("DELETE", "/api/v1/namespaces/a/pods", ("deletecollection", "", "v1", "pods", "", "a", "")),
        ("DELETE", "/api/v1/namespaces/a/pods/b", ("delete", "", "v1", "pods", "", "a", "b")),
        ("GET", "/api/v1/namespaces", ("list", "", "v1", "namespaces", "", "", "")),
        ("GET", "/api/v1/namespaces/a", ("get", "", "v1", "namespaces", "", "a", "a")),
        ("PUT", "/api/v1/namespaces/a/finalize", ("update", "", "v1", "namespaces", "finalize", "a", "a")),
        ("PUT", "/api/v1/namespaces/a/status", ("update", "", "v1", "namespaces", "status", "a", "a")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_of_resources(method: str, path: str, expected: tuple[str, ...]) -> None:
    info, rest = resolve(method, path, {})
    assert info.is_resource
    found = (info.verb, info.group, info.version, info.plural, info.subresource, info.namespace, info.name)
    assert (*found, rest) == (*expected, "")


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/readyz/ping"]
)
def test_of_other_paths(path: str) -> None:
    info, rest = resolve("GET", path, {})
    assert (info.is_resource, info.verb, info.path, rest) == (False, "get", path, "")


@pytest.mark.parametrize(
    ("query", "verb", "name"),
    [
        ({"watch": "true"}, "watch", ""),
        ({"watch": "1"}, "watch", ""),
        ({"watch": "false"}, "list", ""),
        ({"watch": "0"}, "list", ""),
        ({"watch": ""}, "watch", ""),
        ({"fieldSelector": "metadata.name=x"}, "list", "x"),
        ({"fieldSelector": "a=b,metadata.name==x", "watch": "1"}, "watch", "x"),
        ({"fieldSelector": "metadata.name!=x"}, "list", ""),
    ],
    ids=str,
)
def test_a_query_changes_what_a_get_means(query: dict[str, str], verb: str, name: str) -> None:
    info, _ = resolve("GET", "/api/v1/pods", query)
    assert (info.verb, info.name) == (verb, name)
    named, _ = resolve("GET", "/api/v1/namespaces/a/pods/p", query)
    assert (named.verb, named.name) == ("get", "p")


def test_a_proxied_path_is_kept() -> None:
    info, rest = resolve("GET", "/api/v1/namespaces/a/services/s/proxy/x/y", {})
    assert (info.subresource, info.name, rest) == ("proxy", "s", "x/y")


@given(st.text(alphabet="/apisv1nmec?%. ", max_size=40), st.sampled_from(["GET", "PUT", "BREW"]))
def test_any_path_can_be_parsed(path: str, method: str) -> None:
    info, _ = resolve(method, "/" + path, {})
    assert info.path == "/" + path


@pytest.mark.parametrize(("text", "expected"), [("", True), ("1", True), ("FALSE", False), ("0", False), ("no", True)])
def test_booleans(text: str, expected: bool) -> None:
    assert truthy(text) is expected


def test_only_an_equality_names_an_object() -> None:
    texts = ("", "metadata.name", "metadata.name=x", "metadata.namespace=x", r"metadata.name=a\,b", "metadata.name=a/b")
    assert [selected_name(text) for text in texts] == [
        "",
        "",
        "x",
        "",
        "a,b",
        "",
    ]
