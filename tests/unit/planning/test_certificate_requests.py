"""The requirements of signers."""

import base64
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from kcm_cli.machinery.errors import FormatError
from kcm_cli.planning import certificate_requests as rules
from tests.unit.planning.certificates import in_base64, name, read, request, stored

NODE = name("system:node:n1", "system:nodes")
SIGN, CIPHER, CLIENT, SERVER = "digital signature", "key encipherment", "client auth", "server auth"
DNS, IP = x509.DNSName("n1"), x509.IPAddress(ip_address("10.0.0.1"))
MAIL, URI = x509.RFC822Name("a@example.com"), x509.UniformResourceIdentifier("spiffe://x")


@pytest.mark.parametrize("text", ["", base64.b64encode(b"x").decode()], ids=["nothing", "no PEM"])
def test_an_invalid_request(text):
    with pytest.raises(FormatError, match="unable to parse csr 'r'"):
        rules.parse(stored(text))


@pytest.mark.parametrize(
    "spoilt",
    [
        pytest.param(lambda text: b"#" + text, id="a character before BEGIN"),
        pytest.param(lambda text: b"\t" + text, id="a tab before BEGIN"),
        pytest.param(lambda text: text[:-1] + b"junk\n", id="junk after END"),
        pytest.param(lambda text: text.replace(b"\n-----END", b"-----END"), id="END in the middle of a line"),
        pytest.param(lambda text: text.replace(b"-----\n", b"-----", 1), id="base64 on the line of BEGIN"),
        pytest.param(lambda text: text.replace(b"-----END CERTIFICATE REQUEST-----\n", b""), id="no END"),
    ],
)
def test_what_is_approved_is_what_is_read(spoilt):
    evil, tenant = (
        request(name(*parts)).public_bytes(Encoding.PEM) for parts in (("evil", "system:masters"), ("tenant",))
    )
    asked = rules.parse(stored(base64.b64encode(spoilt(evil) + tenant).decode()))
    assert (asked.common_name, asked.organizations) == ("tenant", ())


def test_a_valid_request():
    asked = request()
    assert rules.parse(stored(in_base64(asked))) == read(asked)


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
    assert rules.problem(rules.CLIENT, read(request()), usages) == expected


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
    assert rules.problem(rules.KUBELET_SERVING, read(request(subject, *names)), usages) == expected


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
    assert rules.problem(rules.KUBELET_CLIENT, read(request(subject, *names)), usages) == expected


def test_the_legacy_signer_takes_everything():
    assert rules.problem(rules.LEGACY_UNKNOWN, read(request(name(""))), ["any"]) == ""


def test_a_condition_is_added_to_existing_ones():
    request_ = stored(Approved="True")
    update = rules.with_condition(request_, {"type": "Failed"}, "status")
    assert update.changes == {("status", "conditions"): [{"type": "Approved", "status": "True"}, {"type": "Failed"}]}
