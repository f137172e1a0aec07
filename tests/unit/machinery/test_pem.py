"""PEM texts, read as Go reads them (``tests/generate/readings.py`` records its answers)."""

import json
import re

import pytest

from kcm_cli.machinery import pem
from tests.kit.places import ROOT

TABLE = json.loads((ROOT / "tests" / "recorded" / "readings" / "pem.json").read_text())


def blocks_of(text: bytes) -> list[object]:
    """The blocks in the form of the table: type, headers, content, and where the rest of the text begins."""
    found: list[object] = []
    for block in pem.blocks(text):
        headers = {_shown(key): _shown(value) for key, value in block.headers.items()}
        found.append([block.type.encode(errors="surrogateescape").hex(), headers, block.content.hex(), block.end])
    return found


def _shown(text: str) -> str:
    return text.encode(errors="surrogateescape").decode(errors="replace")


@pytest.mark.parametrize(("text", "expected"), [pytest.param(*row[1:], id=row[0]) for row in TABLE])
def test_a_text_has_the_blocks_that_go_reads(text: str, expected: list[object]) -> None:
    assert blocks_of(bytes.fromhex(text)) == expected


@pytest.mark.parametrize("content", [b"", b"a", bytes(range(256)), b"x" * 48], ids=len)
def test_what_is_encoded_is_read_again(content: bytes) -> None:
    (block,) = pem.blocks(b"text\n" + pem.encode("X", content) + b"more")
    assert (block.type, block.headers, block.content) == ("X", {}, content)


def _block(kind: str, content: str, header: str = "") -> str:
    return f"-----BEGIN {kind}-----\n{header}{content}\n-----END {kind}-----\n"


def test_certificates_with_headers_are_no_cas_and_those_of_servers() -> None:
    text = (_block("CERTIFICATE", "QQ==", "A: b\n\n") + _block("X", "QUE=") + _block("CERTIFICATE", "QUI=")).encode()
    assert list(pem.certificates(text)) == [b"AB"]
    assert pem.chain(text) == [b"A", b"AB"]


@pytest.mark.parametrize("kind", ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "ANY PRIVATE KEY"])
def test_the_first_private_key_counts(kind: str) -> None:
    text = _block("EC PARAMETERS", "QQ==") + _block("MYPRIVATE KEY", "QUE=") + _block(kind, "QUI=")
    assert pem.private_key((text + _block("PRIVATE KEY", "QUM=")).encode()) == b"AB"
    assert pem.private_key(_block("CERTIFICATE", "QQ==").encode()) is None


OTHER_READERS = re.compile(
    r"load_pem_|FILETYPE_PEM|PEM_cert_to_DER|-----BEGIN|\bcafile=|_(certificate|privatekey)_file\("
)


def test_nothing_else_reads_pem() -> None:
    package = ROOT / "kcm_cli"
    found = {str(path.relative_to(package)) for path in package.rglob("*.py") if OTHER_READERS.search(path.read_text())}
    assert found == {"machinery/pem.py", "cli/redaction.py"}, "the latter leaves out what may be a key"
