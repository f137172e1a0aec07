"""The requests that are approved, and the permissions that they need."""

import msgspec
import pytest
from cryptography import x509

from kcm_cli.controllers.certificatesigningrequest_approving import plan
from kcm_cli.planning.certificate_requests import CLIENT, KUBELET_CLIENT
from tests.unit.planning.certificates import name, read, request, stored

USAGES = ("digital signature", "client auth")
NODE = name("system:node:n1", "system:nodes")


def asking(username="system:node:n1", signer=KUBELET_CLIENT, usages=USAGES):
    known = stored()
    spec = msgspec.structs.replace(known.spec, username=username, signer_name=signer, usages=usages, groups=("g",))
    return msgspec.structs.replace(known, spec=spec)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(stored(), True, id="new"),
        pytest.param(stored(Failed="True"), True, id="given up"),
        pytest.param(stored(Approved="True"), False, id="approved"),
        pytest.param(stored(Denied="True"), False, id="denied"),
        pytest.param(stored(certificate="eA=="), False, id="signed"),
    ],
)
def test_requests_that_are_open(request_, expected):
    assert plan.is_open(request_) is expected


@pytest.mark.parametrize(
    ("request_", "asked", "expected"),
    [
        pytest.param(asking(), read(request(NODE)), (plan.SELF, plan.NODE), id="its own"),
        pytest.param(asking("bootstrap"), read(request(NODE)), (plan.NODE,), id="another's"),
        pytest.param(asking(signer=CLIENT), read(request(NODE)), (), id="another signer"),
        pytest.param(asking(usages=("client auth",)), read(request(NODE)), (), id="other usages"),
        pytest.param(asking(), read(request(NODE, x509.DNSName("x"))), (), id="with a name"),
        pytest.param(asking(), read(request(name("ann"))), (), id="without a user"),
    ],
)
def test_the_permissions_that_suffice(request_, asked, expected):
    assert plan.permissions(request_, asked) == expected


def test_the_access_review_names_the_user():
    spec = plan.review(asking("bootstrap"), plan.NODE)["spec"]
    assert (spec["user"], spec["groups"], spec["extra"]) == ("bootstrap", ["g"], {})
    attributes = spec["resourceAttributes"]
    assert (attributes["verb"], attributes["subresource"]) == ("create", "nodeclient")
