"""Which requests are due, and which are refused."""

import base64
from ipaddress import ip_address

import pytest
from cryptography import x509

from kcm_cli.api.certificates import CERTIFICATE_SIGNING_REQUESTS
from kcm_cli.controllers.certificatesigningrequest_signing import plan
from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from tests.unit.controllers.certificatesigningrequest_signing.conftest import in_base64, name, request

NODE = name("system:node:n1", "system:nodes")
SIGN, CIPHER, CLIENT, SERVER = "digital signature", "key encipherment", "client auth", "server auth"
DNS, IP = x509.DNSName("n1"), x509.IPAddress(ip_address("10.0.0.1"))
MAIL, URI = x509.RFC822Name("a@example.com"), x509.UniformResourceIdentifier("spiffe://x")


def stored(text="", certificate="", **conditions):
    status = {"conditions": [{"type": kind, "status": value} for kind, value in conditions.items()]}
    doc = {"metadata": {"name": "r"}, "spec": {"request": text}, "status": {**status, "certificate": certificate}}
    return CERTIFICATE_SIGNING_REQUESTS.decode(codec.encode(doc))


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(stored(), False, id="new"),
        pytest.param(stored(Approved="True"), True, id="approved"),
        pytest.param(stored(Approved="True", Denied="True"), False, id="denied, too"),
        pytest.param(stored(Approved="True", Failed="True"), False, id="given up"),
        pytest.param(stored(Approved="True", Failed=""), False, id="given up in an old way"),
        pytest.param(stored(Approved="True", Failed="False"), True, id="not given up"),
        pytest.param(stored(Approved="True", certificate="eA=="), False, id="signed"),
    ],
)
def test_which_requests_are_due(request_, expected):
    assert plan.is_due(request_) is expected


@pytest.mark.parametrize(
    ("asked_s", "expected"), [(None, 3600.0), (1800, 1800.0), (7200, 3600.0), (60, 600.0)], ids=str
)
def test_how_long_a_certificate_lasts(asked_s, expected):
    assert plan.duration_s(asked_s, 3600.0) == expected


@pytest.mark.parametrize("text", ["", base64.b64encode(b"x").decode()], ids=["nothing", "no PEM"])
def test_a_request_that_cannot_be_read(text):
    with pytest.raises(FormatError, match="unable to parse csr 'r'"):
        plan.parse(stored(text))


def test_a_request_that_can_be_read():
    asked = request()
    assert plan.parse(stored(in_base64(asked))) == asked


@pytest.mark.parametrize(
    ("usages", "expected"),
    [
        ([CLIENT], ""),
        ([CLIENT, SIGN, CIPHER], ""),
        ([SIGN], "missing required usage for client certificate: client auth"),
        ([CLIENT, SERVER], "invalid usage for client certificate: server auth"),
    ],
    ids=str,
)
def test_usages_of_clients(usages, expected):
    assert plan.problem(plan.CLIENT, request(), usages) == expected


@pytest.mark.parametrize(
    ("subject", "names", "usages", "expected"),
    [
        pytest.param(NODE, [DNS], [SIGN, SERVER], "", id="ECDSA"),
        pytest.param(NODE, [IP], [SERVER, CIPHER, SIGN], "", id="RSA"),
        pytest.param(name("system:node:n1"), [IP], [], "subject organization is not system:nodes", id="organization"),
        pytest.param(NODE, [], [], "DNS or IP subjectAltName is required", id="no names"),
        pytest.param(NODE, [DNS, MAIL], [], "Email subjectAltNames are not allowed", id="mail"),
        pytest.param(NODE, [DNS, URI], [], "URI subjectAltNames are not allowed", id="URI"),
        pytest.param(
            NODE,
            [DNS],
            [SIGN, CLIENT],
            "usages did not match [digital signature key encipherment server auth]",
            id="usages",
        ),
        pytest.param(
            name("n1", "system:nodes"),
            [DNS],
            [SIGN, SERVER],
            "subject common name does not begin with system:node:",
            id="name",
        ),
    ],
)
def test_serving_certificates_of_kubelets(subject, names, usages, expected):
    assert plan.problem(plan.KUBELET_SERVING, request(subject, *names), usages) == expected


@pytest.mark.parametrize(
    ("subject", "names", "usages", "expected"),
    [
        pytest.param(NODE, [], [SIGN, CLIENT], "", id="ECDSA"),
        pytest.param(NODE, [], [SIGN, CLIENT, CIPHER], "", id="RSA"),
        pytest.param(name("x", "system:nodes", "y"), [], [], "subject organization is not system:nodes", id="group"),
        pytest.param(NODE, [DNS], [], "DNS subjectAltNames are not allowed", id="DNS"),
        pytest.param(NODE, [IP], [], "IP subjectAltNames are not allowed", id="IP"),
        pytest.param(
            name("x", "system:nodes"), [], [], "subject common name does not begin with system:node:", id="name"
        ),
        pytest.param(
            NODE, [], [CLIENT], "usages did not match [client auth digital signature key encipherment]", id="usages"
        ),
    ],
)
def test_client_certificates_of_kubelets(subject, names, usages, expected):
    assert plan.problem(plan.KUBELET_CLIENT, request(subject, *names), usages) == expected


def test_the_legacy_signer_takes_everything():
    assert plan.problem(plan.LEGACY_UNKNOWN, request(name("")), ["any"]) == ""
