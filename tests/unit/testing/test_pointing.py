"""The environment leads clients to one cluster, and then to where it led before."""

import os
import sys
import types

import pytest

from kcm_cli.testing.pointing import environment as environment_for
from kcm_cli.testing.pointing import pointing_to


@pytest.fixture
def environment(monkeypatch):
    """The environment of a pod of a CI system, behind a proxy."""
    for name in ("NO_PROXY", "no_proxy", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    known = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "HTTPS_PROXY": "http://proxy:1"}
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    return {name: os.environ.get(name) for name in (*known, "NO_PROXY", "no_proxy", "KUBECONFIG")}


def kube_config(value):
    module = types.ModuleType("kube_config")
    module.KUBE_CONFIG_DEFAULT_LOCATION = value
    return module


@pytest.mark.parametrize("first_to_end", [0, 1])
def test_operators_that_end_in_any_order_leave_the_environment_as_it_was(environment, first_to_end):
    two = [pointing_to("/one"), pointing_to("/two")]
    for each in two:
        each.__enter__()
    assert os.environ["KUBECONFIG"] == "/two"
    two.pop(first_to_end).__exit__(None, None, None)
    assert os.environ["KUBECONFIG"] == ("/two", "/one")[first_to_end]
    two.pop().__exit__(None, None, None)
    assert {name: os.environ.get(name) for name in environment} == environment


@pytest.mark.parametrize("first_to_end", [0, 1])
def test_what_clients_have_read_at_their_import_ends_with_the_operator(environment, monkeypatch, first_to_end):
    earlier, later = "kubernetes.config.kube_config", "kubernetes_asyncio.config.kube_config"
    monkeypatch.setitem(sys.modules, earlier, kube_config("/home/config"))
    monkeypatch.delitem(sys.modules, later, raising=False)
    two = [pointing_to("/one"), pointing_to("/two")]
    for each in two:
        each.__enter__()
    monkeypatch.setitem(sys.modules, later, kube_config("/two"))  # it is imported now
    read = [sys.modules[name] for name in (earlier, later)]
    assert [one.KUBE_CONFIG_DEFAULT_LOCATION for one in read] == ["/two", "/two"]
    two.pop(first_to_end).__exit__(None, None, None)
    assert [one.KUBE_CONFIG_DEFAULT_LOCATION for one in read] == [("/two", "/one")[first_to_end]] * 2
    two.pop().__exit__(None, None, None)
    assert [one.KUBE_CONFIG_DEFAULT_LOCATION for one in read] == ["/home/config", "~/.kube/config"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}),
        ({"no_proxy": "example.com"}, {"NO_PROXY": None, "no_proxy": "example.com,127.0.0.1"}),
        ({"NO_PROXY": "localhost, 127.0.0.1"}, {"NO_PROXY": "localhost, 127.0.0.1", "no_proxy": None}),
        ({"NO_PROXY": "*"}, {"NO_PROXY": "*", "no_proxy": None}),
        ({"HTTPS_PROXY": ""}, {"NO_PROXY": None, "no_proxy": None}),
    ],
)
def test_no_client_asks_the_pods_own_cluster_or_a_proxy(environment, monkeypatch, given, found):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pointing_to("/here"):
        assert not any(name.startswith("KUBERNETES_SERVICE") for name in os.environ)
        assert {name: os.environ.get(name) for name in found} == found
    assert os.environ["KUBERNETES_SERVICE_HOST"] == "10.0.0.1"
    assert {name: environment_for("/here").get(name) for name in found} == found


@pytest.mark.parametrize("library", ["kubernetes.config", "kubernetes_asyncio.config"])
def test_clients_that_look_for_a_file_find_that_of_the_sandbox(library):
    """load_config of a client library, which takes the file if there is one, and otherwise the cluster of its pod."""
    config = pytest.importorskip(library)
    before = config.KUBE_CONFIG_DEFAULT_LOCATION
    with pointing_to("/here"):
        assert config.KUBE_CONFIG_DEFAULT_LOCATION == config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION == "/here"
    assert before == config.KUBE_CONFIG_DEFAULT_LOCATION
