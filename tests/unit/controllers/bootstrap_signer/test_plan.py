"""Tokens that sign, and the form of signatures."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from kcm_cli.api.core import CONFIG_MAPS, SECRETS, ConfigMap, Secret
from kcm_cli.controllers.bootstrap_signer.plan import may_sign, plan, signature
from kcm_cli.machinery import codec
from kcm_cli.planning import bootstrap_tokens
from kcm_cli.planning.actions import ABSENT
from tests.kit.bootstrap_tokens import token

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def secret(doc: Any) -> Secret:
    return SECRETS.decode(codec.encode(doc))


def info(**data: str) -> ConfigMap:
    return CONFIG_MAPS.decode(codec.encode({"metadata": {"name": "cluster-info"}, "data": data}))


def unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@pytest.mark.parametrize(
    ("doc", "may"),
    [
        pytest.param(token(), True, id="plain"),
        pytest.param({**token(), "data": {"token-id": "\u00e9", "token-secret": "x"}}, False, id="no base64"),
        pytest.param(token(expiration="2026-01-01T00:00:01Z"), True, id="not over"),
        pytest.param(token(expiration="2026-01-01T01:00:01+01:00"), True, id="not over elsewhere"),
        pytest.param(token(expiration="2026-01-01T00:00:00Z"), False, id="over"),
        pytest.param(token(expiration="tomorrow"), False, id="ends at no time"),
        pytest.param(token(usage_bootstrap_signing=""), False, id="not for signatures"),
        pytest.param(token(usage_bootstrap_signing="True"), False, id="true is true in small letters"),
        pytest.param(token(token_secret=""), False, id="no secret"),
        pytest.param(token(token_id=""), False, id="no id"),
        pytest.param(token(token_id="other1"), False, id="id of another name"),
        pytest.param(token("abcdef", name="bootstrap-token-abcdefg"), False, id="long name"),
        pytest.param(token("ABCDEF"), False, id="capital letters"),
        pytest.param(token(name="mine"), False, id="another name"),
    ],
)
def test_tokens_that_sign(doc: Any, may: bool) -> None:
    assert may_sign(secret(doc), NOW) is may


def test_a_value_that_is_not_base64_is_ignored() -> None:
    assert bootstrap_tokens.value(Secret(data={"token-id": "*"}), "token-id") == b""


@pytest.mark.parametrize("content", ["", "apiVersion: v1\nclusters: []\n", "größer"])
def test_a_signature_is_a_detached_jws(content: str) -> None:
    header, middle, last = signature(content, secret(token())).split(".")
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "HS256", "kid": "abcdef"}
    signed = f"{header}.{unpadded(content.encode())}".encode()
    assert (middle, last) == ("", unpadded(hmac.new(b"0123456789abcdef", signed, hashlib.sha256).digest()))


def test_signatures_are_added_updated_and_removed() -> None:
    kept, new = secret(token("aaaaaa")), secret(token("bbbbbb"))
    right = signature("text", kept)
    given = info(
        kubeconfig="text",
        other="mine",
        **{"jws-kubeconfig-aaaaaa": right, "jws-kubeconfig-bbbbbb": "old", "jws-kubeconfig-cccccc": "gone"},
    )
    update = plan(given, [kept, new], NOW)
    assert update is not None
    assert update.changes == {
        ("data", "jws-kubeconfig-bbbbbb"): signature("text", new),
        ("data", "jws-kubeconfig-cccccc"): ABSENT,
    }


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"jws-kubeconfig-cccccc": "x"}, id="nothing to sign"),
        pytest.param({"kubeconfig": "t", "jws-kubeconfig-abcdef": signature("t", secret(token()))}, id="signed"),
    ],
)
def test_nothing_to_do(data: dict[str, str]) -> None:
    assert plan(info(**data), [secret(token())], NOW) is None
