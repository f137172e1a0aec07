"""Contents of --root-ca-file."""

import pytest

from kcm_cli.controllers.shared.root_ca import read_root_ca
from kcm_cli.engine.descriptor import StartError


def test_a_bundle_is_returned_unchanged(tmp_path, certificates):
    pem = b"# ours\n" + certificates.ca.certificate
    (tmp_path / "ca.crt").write_bytes(pem)
    assert read_root_ca(str(tmp_path / "ca.crt")) == pem


@pytest.mark.parametrize(
    ("content", "text"),
    [(None, "cannot be read: No such file or directory"), (b"", "holds no certificate"), (b"\xff", "holds no certi")],
)
def test_an_invalid_file_is_an_error_at_the_start(tmp_path, content, text):
    path = tmp_path / "ca.crt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StartError, match=f"--root-ca-file {path} {text}"):
        read_root_ca(str(path))
