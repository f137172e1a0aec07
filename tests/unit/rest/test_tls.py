"""TLS contexts of clients, rebuilt when their files change."""

import logging
from pathlib import Path

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest import tls
from kcm_cli.rest.tls import ReloadedContext, TLSFiles
from tests.trust.cases import LEAF, ROOT, sign


def test_a_new_certificate_is_used_once_the_ca_file_exists(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "RETRY_S", 0.0)
    ca, leaf = sign(ROOT).pem, sign(LEAF)
    path = tmp_path / "ca.crt"
    path.write_bytes(ca)
    shown: list[tuple[bytes, bytes]] = []
    reloaded = ReloadedContext(TLSFiles(ca_file=path), LoopClock(), certificate=lambda: shown[-1] if shown else None)
    before = reloaded.current()
    shown.append((leaf.pem, leaf.secret))
    path.unlink()
    with caplog.at_level(logging.WARNING):
        assert reloaded.current() is before
    assert "Cannot take over a client certificate" in caplog.text
    path.write_bytes(ca)
    after = reloaded.current()
    assert after is not before
    assert reloaded.current() is after
