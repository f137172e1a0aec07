"""The flags of kube-apiserver in the sandbox."""

from pathlib import Path

import pytest

from kcm_cli.cli.kube_apiserver_flags import flags
from kcm_cli.cli.kube_apiserver_options import Command, read
from kcm_cli.component.user_headers import ProxyHeaders
from kcm_cli.component.version import GIT_VERSION
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.settings import Proxies
from kcm_cli.sandbox.apiserver.types import User
from tests.kit.simulation import EPOCH

ETCD = "--etcd-servers=http://127.0.0.1:1"


def asked(*arguments: str) -> Command:
    return read([ETCD, *arguments])


def test_flags_of_envtest(tmp_path: Path) -> None:
    made = Certificates.load(None, EPOCH)
    serving, ca, signer = made.serving, made.ca.certificate, made.service_account_key
    files = {"apiserver.crt": serving.certificate, "apiserver.key": serving.key, "client-cert-auth-ca.crt": ca}
    for name, content in {**files, "sa-signer.crt": ca, "sa-signer.key": signer}.items():
        (tmp_path / name).write_bytes(content)
    command = asked(
        "--allow-privileged=true",
        "--authorization-mode=RBAC",
        "--bind-address=127.0.0.1",
        f"--cert-dir={tmp_path}",
        f"--client-ca-file={tmp_path}/client-cert-auth-ca.crt",
        "--disable-admission-plugins=ServiceAccount",
        "--insecure-port=0",
        "--secure-port=41234",
        "--service-account-issuer=https://127.0.0.1:41234/",
        f"--service-account-key-file={tmp_path}/sa-signer.crt",
        f"--service-account-signing-key-file={tmp_path}/sa-signer.key",
        "--service-cluster-ip-range=10.0.0.0/24",
    )
    assert (command.problems, command.notes, command.certificates) == ((), (), None)
    assert (command.address, command.port) == ("127.0.0.1", 41234)
    assert command.keys.serving is not None
    assert (command.keys.serving.certificate, command.keys.serving.key) == (serving.certificate, serving.key)
    assert command.keys.service_account == signer
    settings = command.settings
    assert (settings.client_cas, settings.token_keys) == (ca, (ca,))
    assert settings.issuers == ("https://127.0.0.1:41234/",)
    assert settings.disabled_plugins == {"ServiceAccount"}
    assert settings.service_ranges == ("10.0.0.0/24",)


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        ("client-ca-file", "not a PEM certificate: "),
        ("service-account-key-file", "data does not contain any valid RSA or ECDSA public keys"),
        ("service-account-signing-key-file", "not an unencrypted PEM key: "),
        ("tls-cert-file", "not a PEM certificate: "),
        ("tls-private-key-file", "not an unencrypted PEM key: "),
    ],
)
def test_files_that_are_no_keys_or_certificates_are_named(tmp_path: Path, flag: str, why: str) -> None:
    made = Certificates.load(None, EPOCH).serving
    text = tmp_path / "text"
    text.write_text("text")
    (tmp_path / "crt").write_bytes(made.certificate)
    (tmp_path / "key").write_bytes(made.key)
    pair = {"tls-cert-file": tmp_path / "crt", "tls-private-key-file": tmp_path / "key"} if "tls" in flag else {}
    (problem,) = asked(*(f"--{name}={path}" for name, path in {**pair, flag: text}.items())).problems
    assert problem.startswith(f"--{flag}: {text}: {why}")


def test_a_key_of_another_certificate_is_named(tmp_path: Path) -> None:
    (tmp_path / "crt").write_bytes(Certificates.load(None, EPOCH).serving.certificate)
    (tmp_path / "key").write_bytes(Certificates.load(None, EPOCH).serving.key)
    (problem,) = asked(f"--tls-cert-file={tmp_path}/crt", f"--tls-private-key-file={tmp_path}/key").problems
    assert problem == f"--tls-private-key-file: {tmp_path}/key: it is not the key of {tmp_path}/crt"


def test_a_folder_without_a_certificate_gets_one(tmp_path: Path) -> None:
    command = asked(f"--cert-dir={tmp_path}")
    assert command.certificates == tmp_path
    assert command.keys.serving is None


def test_a_folder_that_cannot_be_searched_is_reported_when_it_is_written_to(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 300)
    assert asked(f"--cert-dir={folder}").certificates == folder


def test_authenticating_proxies(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(Certificates.load(None, EPOCH).ca.certificate)
    command = asked(
        f"--requestheader-client-ca-file={file}",
        "--requestheader-username-headers=X-Remote-User,X-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-allowed-names=front",
    )
    assert (command.problems, command.notes) == ((), ())
    headers = ProxyHeaders(("X-Remote-User", "X-User"), (), ("X-Remote-Group",), ("X-Remote-Extra-",), ("front",))
    assert command.settings.proxies == Proxies(file.read_bytes(), headers)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--requestheader-group-headers= "], 'empty value in "requestheader-group-headers"'),
        (["--requestheader-uid-headers=X-Mine"], "without specifying the standard X-Remote-Uid header"),
        (["--requestheader-client-ca-file=/none"], "--requestheader-client-ca-file: cannot read /none"),
        (["--requestheader-client-ca-file={text}"], "not a PEM certificate"),
    ],
)
def test_proxies_that_are_refused(tmp_path: Path, arguments: list[str], problem: str) -> None:
    text = tmp_path / "text"
    text.write_text("text")
    (found,) = asked(*(each.format(text=text) for each in arguments)).problems
    assert problem in found


def test_static_tokens_and_issuers_that_are_repeated(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text('abc,me,u1,"a,b"\n\ndef,you,u2\n')
    issuers = ("--service-account-issuer=https://a", "--service-account-issuer=https://b,c")
    settings = asked(f"--token-auth-file={file}", *issuers).settings
    assert settings.tokens == {"abc": User("me", "u1", ("a", "b")), "def": User("you", "u2")}
    assert settings.issuers == ("https://a", "https://b,c")


@pytest.mark.parametrize(
    ("argument", "note"),
    [
        ("--audit-log-path=-", "--audit-log-path has no effect without --audit-policy-file"),
        ("--event-ttl=2h", "--event-ttl has no effect"),
        ("--allow-privileged=false", "--allow-privileged=false has no effect: privileged containers are allowed"),
        ("--enable-admission-plugins=NodeRestriction", "--enable-admission-plugins: NodeRestriction has no effect"),
        (
            "--authorization-mode=Node,RBAC",
            "--authorization-mode: Node has no effect, nodes have the rights that RBAC gives them",
        ),
        (
            "--disable-admission-plugins=JobValidation",
            "--disable-admission-plugins: JobValidation cannot be turned off",
        ),
        ("--runtime-config=api/alpha=true", "--runtime-config: api/alpha=true has no effect"),
        (
            "--feature-gates=MutablePodResourcesForSuspendedJobs=true,AllBeta=true,APIServerTracing=true",
            "--feature-gates: AllBeta is passed to the controllers; the API server keeps its default",
        ),
    ],
)
def test_flags_without_effect_are_reported(argument: str, note: str) -> None:
    command = asked(argument)
    assert command.problems == ()
    assert note in command.notes


@pytest.mark.parametrize(
    "argument",
    [
        *("--v=4", "-v=2", "--watch-cache", "--event-ttl=1h", "--profiling=false", "--runtime-config=api/v1"),
        *("--runtime-config=api/all=true,apps/v1", "--runtime-config=apps/v1=, batch/v1=T"),
    ],
)
def test_flags_that_make_no_difference_are_accepted(argument: str) -> None:
    assert asked(argument).problems == ()


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("--no-such-flag", "unknown flag: --no-such-flag"),
        ("word", 'unknown command "word" for "kube-apiserver"'),
        ("--secure-port=0", "--secure-port 0 must be between 1 and 65535, inclusive"),
        ("--insecure-port=8080", "--insecure-port: Kubernetes serves no plain HTTP since 1.24"),
        ("--oidc-client-id=a", "--oidc-client-id: the sandbox does not support OIDC; use --token-auth-file"),
        ("--authorization-mode=RBAC,Webhook", '"Webhook" is not one of RBAC, Node, AlwaysAllow, AlwaysDeny'),
        ("--enable-admission-plugins=PodNodeSelector", "the sandbox has no PodNodeSelector"),
        ("--enable-admission-plugins=Nothing", '--enable-admission-plugins plugin "Nothing" is unknown'),
        ("--runtime-config=batch/v2alpha1=true", "--runtime-config: batch/v2alpha1 is not served by the sandbox"),
        ("--runtime-config=batch/v1=false", "--runtime-config: batch/v1 cannot be turned off by the sandbox"),
        ("--runtime-config=batch/v1=x", "--runtime-config: batch/v1=x: "),
        ("--runtime-config=nonsense", "--runtime-config: nonsense is not served by the sandbox"),
        ("--version=v1.35.0-x", "must begin with v1.36."),
        ("--feature-gates=NoSuchGate=true", "unrecognized feature gate: NoSuchGate (kcm --help lists them)"),
        ("--service-cluster-ip-range=10.0.0.0/24,10.1.0.0/24", "two CIDRs are of different families"),
        ("--service-cluster-ip-range=here", '"here" is no CIDR, such as 10.0.0.0/16'),
        ("--client-ca-file=/no/such/file", "--client-ca-file: cannot read /no/such/file: No such file or directory"),
        ("--tls-cert-file=a", "--tls-cert-file and --tls-private-key-file must be specified together"),
        ("--emulated-version=1.33", "--emulated-version: the sandbox is 1.36"),
    ],
)
def test_unsupported_flags_are_refused(argument: str, problem: str) -> None:
    assert any(problem in found for found in asked(argument).problems), asked(argument).problems


def test_a_version_with_a_suffix_is_reported() -> None:
    assert asked(f"--version={GIT_VERSION}-custom").settings.version == f"{GIT_VERSION}-custom"
    assert asked().settings.version == GIT_VERSION


def test_etcd_servers_are_required() -> None:
    assert read([]).problems == ("--etcd-servers must be specified",)


def test_help_does_not_offer_what_envtest_would_use() -> None:
    assert not [flag.name for flag in flags() if flag.name.startswith("insecure") and not flag.hidden]


def test_an_audit_log(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
    command = asked("--audit-log-path=log", f"--audit-policy-file={path}")
    assert command.audit is not None
    assert (command.audit.path, command.audit.most_bytes) == ("log", 100 << 20)
    assert [rule.level for rule in command.audit.policy.rules] == ["Metadata"]
    path.write_text("kind: Policy")
    problems = asked("--audit-log-path=log", f"--audit-policy-file={path}").problems
    assert problems == (f"--audit-policy-file: {path}: a policy needs apiVersion: audit.k8s.io/v1 and kind: Policy",)
