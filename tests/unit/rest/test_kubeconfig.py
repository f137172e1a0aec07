"""Kubeconfigs: their fields, and one clear line for each error."""

import base64
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery.quoting import quote
from kcm_cli.rest import access
from kcm_cli.rest.errors import AccessError, KubeconfigError, NotInCluster
from kcm_cli.rest.proxies import environment_proxy
from kcm_cli.rest.tls import TLSFiles

SERVER = "https://10.0.0.1:6443"


def config(cluster=None, user=None, **extra):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        **extra,
    }


@pytest.fixture
def load(tmp_path):
    """Loads a document, or a text, as a kubeconfig."""

    def run(doc, *, master="", environ=None):
        path = tmp_path / "kubeconfig"
        path.write_text(doc if isinstance(doc, str) else yaml.safe_dump(doc))
        return virtual.run(access.load(path=str(path), master=master, clock=LoopClock(), environ=environ or {}))

    return run


def header(loaded):
    return virtual.run(loaded.credentials.renew()).header


def test_token(load):
    loaded = load(config(user={"token": "abc"}))
    assert (loaded.server, header(loaded)) == (SERVER, "Bearer abc")


@pytest.mark.parametrize("kind", ["clusters", "users", "contexts"])
def test_of_two_of_one_name_none_is_meant(load, kind):
    doc = config()
    doc[kind] = [*doc[kind], doc[kind][0]]
    with pytest.raises(KubeconfigError, match=rf"{kind}: duplicate name"):
        load(doc)


def test_null_is_absent(load):
    doc = config(
        cluster={"insecure-skip-tls-verify": None, "tls-server-name": None}, user={"token": None}, preferences=None
    )
    loaded = load(doc)
    assert (loaded.server, loaded.tls.insecure, header(loaded)) == (SERVER, False, "")


@pytest.mark.parametrize(("told", "namespace"), [({}, ""), ({"namespace": None}, ""), ({"namespace": "shop"}, "shop")])
def test_the_namespace_of_the_context(load, told, namespace):
    doc = config()
    doc["contexts"][0]["context"] |= told
    assert load(doc).namespace == namespace
    assert load({**doc, "clusters": [{"name": "k", "cluster": {"server": "http://a:1"}}]}).namespace == namespace


def test_a_date_is_a_text(load):
    """As Go's YAML reads it; kubectl quotes it, people do not."""
    text = yaml.safe_dump(config(user={"token": "2024-01-01 10:00:00"})).replace("'", "")
    text = text.replace(": c\n", ": 2024-01-01\n")
    assert "name: 2024-01-01\n" in text
    assert header(load(text)) == "Bearer 2024-01-01 10:00:00"


def test_a_context_without_user(load):
    doc = config()
    doc["contexts"][0]["context"] = {"cluster": "k"}
    assert header(load(doc)) == ""


@pytest.mark.parametrize("other", [{"kind": "Pod"}, {"apiVersion": "v2"}, {"kind": 1}])
def test_another_kind_is_refused(load, other):
    with pytest.raises(KubeconfigError, match="is no Config of v1"):
        load(config(**other))


@pytest.mark.parametrize("empty", ["", None])
def test_a_kubeconfig_can_omit_its_kind(load, empty):
    assert load(config(kind=empty, apiVersion=empty)).server == SERVER


def several(folder, **docs):
    """Files in folders of their own, as KUBECONFIG names them."""
    for name, doc in docs.items():
        (folder / name).mkdir()
        (folder / name / "config").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **doc}))
    return os.pathsep.join(str(folder / name / "config") for name in docs)


def loaded_from(path):
    return virtual.run(access.load(path=path, master="", clock=LoopClock(), environ={}))


def test_several_files_are_one_kubeconfig(tmp_path):
    """As kubectl reads them: the first that has an entry of a name, or a current context, counts. kr8s#35"""
    path = several(
        tmp_path,
        empty={},
        chooses={"current-context": "d", "contexts": [{"name": "d", "context": {"cluster": "k", "user": "u"}}]},
        users={"current-context": "c", "users": [{"name": "u", "user": {"tokenFile": "token"}}]},
        clusters=config(cluster={"certificate-authority": "ca.crt"}, user={"token": "late"}),
    )
    (tmp_path / "users" / "token").write_text("abc")
    (tmp_path / "clusters" / "ca.crt").write_text("")
    loaded = loaded_from(path)
    assert (loaded.server, header(loaded), loaded.tls.ca_file) == (
        SERVER,
        "Bearer abc",
        tmp_path / "clusters" / "ca.crt",
    )


def test_a_missing_file_of_several_is_skipped(tmp_path):
    path = several(tmp_path, there=config(user={"token": "abc"}))
    assert header(loaded_from(f"{tmp_path}/gone{os.pathsep}{path}{os.pathsep}")) == "Bearer abc"


@pytest.mark.parametrize("text", ["", "# nothing yet\n"], ids=["empty", "a comment"])
def test_an_empty_file_of_several_says_nothing(tmp_path, text):
    (tmp_path / "empty").write_text(text)
    path = several(tmp_path, there=config(user={"token": "abc"}))
    assert header(loaded_from(f"{path}{os.pathsep}{tmp_path}/empty")) == "Bearer abc"
    with pytest.raises(KubeconfigError, match="has no current-context"):
        loaded_from(f"{tmp_path}/empty{os.pathsep}{tmp_path}/empty")


def test_an_invalid_file_of_several_is_an_error(tmp_path):
    path = several(tmp_path, bad={"kind": "Pod"}, good=config())
    with pytest.raises(KubeconfigError, match=re.escape(str(tmp_path / "bad" / "config"))):
        loaded_from(path)


def test_one_file_may_have_the_separator_in_its_name(tmp_path):
    (tmp_path / f"a{os.pathsep}b").write_text(yaml.safe_dump(config(user={"token": "abc"})))
    assert header(loaded_from(str(tmp_path / f"a{os.pathsep}b"))) == "Bearer abc"


def test_a_context_that_no_file_of_several_has(tmp_path):
    path = several(tmp_path, a=config(**{"current-context": "x"}), b={"contexts": [{"name": "d", "context": {}}]})
    with pytest.raises(KubeconfigError, match=r'has no context "x" \(it has: c, d\)'):
        loaded_from(path)


def test_user_and_password(load):
    expected = "Basic " + base64.b64encode(b"me:secret").decode()
    assert header(load(config(user={"username": "me", "password": "secret"}))) == expected


def test_token_file_relative_to_the_kubeconfig(load, tmp_path):
    (tmp_path / "token").write_text("from-file\n")
    assert header(load(config(user={"tokenFile": "token"}))) == "Bearer from-file"
    both = {"token": "fixed", "tokenFile": "token"}
    assert header(load(config(user=both))) == "Bearer from-file"
    (tmp_path / "token").unlink()
    assert header(load(config(user=both))) == "Bearer fixed"


def test_files_and_inline_data(load, tmp_path):
    (tmp_path / "ca.pem").write_text("CA")
    data = base64.b64encode(b"CERT").decode()
    user = {"client-certificate-data": data, "client-key-data": base64.b64encode(b"KEY").decode()}
    tls = load(config({"certificate-authority": "ca.pem"}, user)).tls
    assert tls.ca_file == tmp_path / "ca.pem"
    assert (tls.cert_file, tls.cert_data, tls.key_data) == (None, b"CERT", b"KEY")
    assert tls.anonymous.cert_data == tls.anonymous.key_data == b""
    assert "KEY" not in repr(tls)


def test_inline_data_leaves_no_files_behind(load, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    load(config({"certificate-authority-data": base64.b64encode(b"CA").decode()}))
    assert list((tmp_path / "tmp").iterdir()) == []


def test_server_options(load):
    cluster = {"insecure-skip-tls-verify": True, "tls-server-name": "api.local", "proxy-url": "http://proxy:3128"}
    loaded = load(config(cluster))
    assert (loaded.tls.insecure, loaded.server_name, loaded.proxy) == (True, "api.local", "http://proxy:3128")


@pytest.mark.parametrize(
    ("cluster", "server"),
    [
        ({"server": "10.0.0.1:8080"}, "http://10.0.0.1:8080"),
        ({"server": "10.0.0.1:6443", "insecure-skip-tls-verify": True}, "https://10.0.0.1:6443"),
        ({"server": "https://x/prefix/"}, "https://x/prefix"),
        ({"server": "HTTPS://x:6443"}, "https://x:6443"),
    ],
    ids=["plain", "tls", "path", "capitals"],
)
def test_scheme_and_path_of_the_server(load, cluster, server):
    assert load(config(cluster)).server == server


def test_credentials_are_not_sent_over_plain_http(load):
    loaded = load(config({"server": "http://x"}, {"token": "abc"}))
    assert (loaded.tls, header(loaded)) == (None, "")


def test_master_overrides_the_server_only(load):
    loaded = load(config(user={"token": "abc"}), master="https://other:6443")
    assert (loaded.server, header(loaded)) == ("https://other:6443", "Bearer abc")


async def test_master_alone():
    loaded = await access.load(path="", master="127.0.0.1:8080", clock=LoopClock(), environ={})
    assert (loaded.server, loaded.tls) == ("http://127.0.0.1:8080", None)


async def test_master_alone_can_use_tls_with_system_roots():
    environ = {"HTTPS_PROXY": "http://p:1"}
    loaded = await access.load(path="", master="https://api:6443", clock=LoopClock(), environ=environ)
    assert (loaded.server, loaded.tls, loaded.proxy) == ("https://api:6443", TLSFiles(), "http://p:1")


def test_impersonation(load):
    user = {"as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"Scopes/X": ["s"]}}
    assert load(config(user=user)).impersonation == (
        ("impersonate-user", "jane"),
        ("impersonate-uid", "7"),
        ("impersonate-group", "a"),
        ("impersonate-group", "b"),
        ("impersonate-extra-scopes%2Fx", "s"),
    )


def without(key):
    doc = config()
    del doc[key]
    return doc


PLUGIN = {"command": "cat", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
FAULTS = {
    "not YAML": ("a: [", "is not YAML: line "),
    "binary": ("\x00\x01", "is not YAML"),
    "empty": ("", "is empty"),
    "a list": ("- a", "expected a mapping"),
    "wrong type": (config({"server": 5}), "Expected `str`, got `int` - at `$.clusters[0].cluster.server`"),
    "no current context": (without("current-context"), "has no current-context"),
    "unknown context": (config(**{"current-context": "x"}), 'has no context "x" (it has: c)'),
    "no contexts": (config(**{"contexts": None}), 'has no context "c" (it has: none)'),
    "many contexts": (
        config(**{"current-context": "x", "contexts": [{"name": str(number)} for number in range(30)]}),
        'has no context "x" (it has: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …)',
    ),
    "a context without content": (config(contexts=[{"name": "c", "context": None}]), 'context "c" is empty'),
    "unknown cluster": (without("clusters"), 'names no known cluster ("k")'),
    "unknown user": (without("users"), 'names no known user ("u")'),
    "no server": (config({"server": ""}), "the cluster has no server"),
    "CA missing": (config({"certificate-authority": "/no/ca.pem"}), "/no/ca.pem"),
    "bad base64": (config({"certificate-authority-data": "x"}), "is not base64"),
    "base64 with other characters": (config({"certificate-authority-data": "-----BEGIN"}), "is not base64"),
    "base64 beyond ASCII": (config({"certificate-authority-data": "ä"}), "is not base64"),
    "a name of a file that is too long": (config({"certificate-authority": "x" * 5000}), "File name too long"),
    "a name of two lines": (config(**{"current-context": "a\nb"}), r'has no context "a\nb"'),
    "certificate without key": (config(user={"client-certificate": "/x"}), "without client-key"),
    "insecure with CA": (
        config({"certificate-authority": "/x", "insecure-skip-tls-verify": True}),
        "exclude each other",
    ),
    "two ways to log in": (config(user={"token": "a", "username": "b"}), "both a token and a username"),
    "plugin without command": (config(user={"exec": {"apiVersion": "v1"}}), "needs command and apiVersion"),
    "plugin with a NUL": (config(user={"exec": {**PLUGIN, "args": ["a\0"]}}), "a NUL in its command, args or env"),
    "a variable with a NUL": (config(user={"exec": {**PLUGIN, "env": [{"name": "A", "value": "\0"}]}}), "a NUL in its"),
    "a CA with a NUL": (config({"certificate-authority": "a\0b"}), "certificate-authority has a NUL"),
    "a key with a NUL": (config(user={"client-certificate": "a", "client-key": "\0"}), "client-key has a NUL"),
    "a token file with a NUL": (config(user={"tokenFile": "a\0"}), "tokenFile has a NUL, which no path has"),
    "proxy of another scheme": (
        config({"proxy-url": "ftp://p:1"}),
        'proxy-url: unsupported scheme "ftp", must be http, https, or socks5',
    ),
    "proxy without scheme": (config({"proxy-url": "p:1"}), 'proxy-url: unsupported scheme "p"'),
    "proxy that is no URL": (config({"proxy-url": "http://[p"}), 'proxy-url: "http://[p" is no URL'),
    "groups without user": (config(user={"as-groups": ["a"]}), "need as"),
}


@pytest.mark.parametrize(("doc", "text"), FAULTS.values(), ids=FAULTS.keys())
def test_each_error_is_one_line_that_names_the_file(load, tmp_path, doc, text):
    with pytest.raises(KubeconfigError) as raised:
        load(doc)
    message = str(raised.value)
    assert text in message
    assert str(tmp_path / "kubeconfig") in message
    assert "\n" not in message


async def test_a_missing_file(tmp_path):
    path = str(tmp_path / "none")
    with pytest.raises(KubeconfigError, match="cannot read kubeconfig .*none: No such file"):
        await access.load(path=path, master="", clock=LoopClock(), environ={})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_a_file_without_read_permission(tmp_path):
    path = tmp_path / "secret"
    path.touch(mode=0)
    with pytest.raises(KubeconfigError, match="Permission denied"):
        await access.load(path=str(path), master="", clock=LoopClock(), environ={})


async def test_a_relative_path_where_the_working_directory_is_gone(tmp_path, monkeypatch):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(KubeconfigError, match="cannot read kubeconfig none: No such file"):
        await access.load(path="none", master="", clock=LoopClock(), environ={})


async def test_a_directory_is_not_a_kubeconfig(tmp_path):
    with pytest.raises(KubeconfigError, match="Is a directory"):
        await access.load(path=str(tmp_path), master="", clock=LoopClock(), environ={})


IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def in_cluster(environ):
    return virtual.run(access.load(path="", master="", clock=LoopClock(), environ=environ))


def test_inline_data_can_have_line_breaks(load):
    data = base64.encodebytes(b"certificate" * 20).decode()
    assert load(config({"certificate-authority-data": data})).tls.ca_data == b"certificate" * 20


ADDRESSES_THAT_ARE_NONE = (
    *("://x", "https://", "ftp://a", "https://:6443"),
    *("foo:bar", "https://a:0", "https://a:70000", "https://[::1", "https://a b", "https://a\nb"),
)


@pytest.mark.parametrize("master", ADDRESSES_THAT_ARE_NONE)
def test_an_invalid_address(load, master):
    text = re.escape(f"must be a URL or host:port, and {quote(master)} is neither")
    with pytest.raises(AccessError, match=text):
        load(config(), master=master)
    with pytest.raises(AccessError, match=text):
        access.check(path="", master=master, environ={})


def test_the_server_address_is_checked_without_requests(tmp_path):
    path = tmp_path / "kubeconfig"
    user = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/no/such", "interactiveMode": "Never"}
    }
    path.write_text(yaml.safe_dump(config(user=user)))
    access.check(path=str(path), master="", environ={})
    with pytest.raises(KubeconfigError, match="cannot read kubeconfig /no/such"):
        access.check(path="/no/such", master="", environ={})
    with pytest.raises(NotInCluster):
        access.check(path="", master="", environ={})


def test_in_cluster(tmp_path, monkeypatch):
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", tmp_path)
    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "ca.crt").write_text("CA")
    loaded = in_cluster(IN_POD)
    assert (loaded.server, header(loaded)) == ("https://10.0.0.1:443", "Bearer pod-token")
    assert loaded.tls.ca_file == tmp_path / "ca.crt"


def test_in_cluster_over_ipv6(tmp_path, monkeypatch):
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", tmp_path)
    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "ca.crt").write_text("CA")
    assert in_cluster({**IN_POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}).server == "https://[fd00::1]:443"


def test_neither_kubeconfig_nor_pod():
    with pytest.raises(NotInCluster, match="neither --kubeconfig nor --master"):
        in_cluster({})


def test_a_pod_without_token(tmp_path, monkeypatch):
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", tmp_path)
    with pytest.raises(AccessError, match="cannot read token file"):
        in_cluster(IN_POD)


PROXIES = {
    "none set": ("https://a", {}, ""),
    "https": ("https://a", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
    "lower case": ("https://a", {"https_proxy": "p:1"}, "http://p:1"),
    "other scheme": ("https://a", {"HTTP_PROXY": "http://p:1"}, ""),
    "loopback": ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p:1"}, ""),
    "localhost": ("https://localhost:6443", {"HTTPS_PROXY": "http://p:1"}, ""),
    "star": ("https://a", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, ""),
    "host": ("https://a.b", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x, a.b"}, ""),
    "domain": ("https://x.a.b", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.b"}, ""),
    "dotted domain": ("https://x.a.b", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".a.b"}, ""),
    "dotted is not the host": ("https://a.b", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".a.b"}, "http://p:1"),
    "no suffix without dot": ("https://xa.b", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.b"}, "http://p:1"),
    "cidr": ("https://10.1.2.3:6443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, ""),
    "other cidr": ("https://11.1.2.3", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, "http://p:1"),
    "port": ("https://a:6443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a:6443"}, ""),
    "other port": ("https://a:6444", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a:6443"}, "http://p:1"),
    "ipv6": ("https://[fd00::1]:6443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "fd00::1"}, ""),
    "ipv6 with a port": ("https://[fd00::1]:6443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "[fd00::1]:6443"}, ""),
    "ipv6 in brackets": ("https://[fd00::1]:6443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "[fd00::1]"}, ""),
    "ipv6 other port": ("https://[fd00::1]:1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "[fd00::1]:2"}, "http://p:1"),
    "half brackets": ("https://a", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "[fd00::1, [, :, ]:1, a"}, ""),
    "capitals": ("HTTPS://a", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
    "socks5": ("https://a", {"HTTPS_PROXY": "socks5://p:1"}, "socks5://p:1"),
    "socks5h": ("https://a", {"HTTPS_PROXY": "socks5h://p:1"}, "socks5h://p:1"),
    "ipv6 cidr": ("https://[fd00::1]", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "fd00::/8"}, ""),
}


@pytest.mark.parametrize(("server", "environ", "proxy"), PROXIES.values(), ids=PROXIES.keys())
def test_proxy_of_the_environment(server, environ, proxy):
    assert environment_proxy(server, environ) == proxy


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({"HTTPS_PROXY": "ftp://p:1"}, 'HTTPS_PROXY: unsupported scheme "ftp", must be http, https, or socks5'),
        ({"https_proxy": "socks4://p:1"}, 'https_proxy: unsupported scheme "socks4"'),
        ({"HTTPS_PROXY": "http://u:secret@"}, r'HTTPS_PROXY: "http://u:\*\*\*@" names no host'),
        ({"HTTPS_PROXY": "http://u:se/cret@p:1"}, r'HTTPS_PROXY: "http://u:\*\*\*@p:1" is no URL'),
        ({"HTTPS_PROXY": "ftp://u:se@cret@p:1"}, 'HTTPS_PROXY: unsupported scheme "ftp"'),
        ({"HTTPS_PROXY": "http://u:se@cret@"}, r'HTTPS_PROXY: "http://u:\*\*\*@" names no host'),
        ({"HTTPS_PROXY": "http://p:x"}, 'HTTPS_PROXY: "http://p:x" is no URL'),
    ],
)
def test_an_unsupported_proxy_of_the_environment_is_named(environ, text):
    with pytest.raises(AccessError, match=text):
        environment_proxy("https://a", environ)


def fresh(code):
    """Run code in a new interpreter."""
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_token_needs_no_client_library(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config(user={"token": "abc"})))
    code = f"""
import asyncio, sys
from kcm_cli.component.clock import LoopClock
from kcm_cli.rest import access, builder, session
print(asyncio.run(access.load(path={str(path)!r}, master="", clock=LoopClock(), environ={{}})).server)
print([name for name in sys.modules if name.startswith(("kubernetes", "aiohttp", "urllib3"))])
"""
    assert fresh(code).splitlines() == [SERVER, "[]"]


def test_a_token_may_be_one_equals_sign(load):
    """PyYAML has a type of its own for it."""
    text = yaml.safe_dump(config()).replace("user: {}", "user: {token: =}")
    assert header(load(text)) == "Bearer ="


def test_entries_that_are_not_used_need_no_name(load):
    doc = config()
    for kind in ("clusters", "users", "contexts"):
        doc[kind].insert(0, {})
    assert load(doc).server == SERVER
