"""Logs at the start."""

from collections.abc import Iterator

import pytest

from kcm_cli.cli.manager import announce, lease_warning
from kcm_cli.manager.config import load
from tests.kit.restoring import unchanged_logging


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    with unchanged_logging():
        yield


def announced(capsys: pytest.CaptureFixture[str], *args: str) -> list[str]:
    announce(load(args))
    return [line.split("] ", 1)[1] for line in capsys.readouterr().err.splitlines()]


def test_nothing_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert announced(capsys) == []


def test_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = announced(capsys, "--feature-gates=ClientsAllowTLSCacheGC=false")
    assert line.startswith('"feature gate ClientsAllowTLSCacheGC=false has no effect in kcm: ')


def test_flags_at_verbosity_one(capsys: pytest.CaptureFixture[str]) -> None:
    lines = announced(capsys, "-v1", "--kube-api-qps=50", "--controllers=")
    assert 'FLAG: --kube-api-qps="50"' in lines
    assert 'FLAG: --controllers="[]"' in lines
    assert 'FLAG: --v="1"' in lines
    names = [line.split("=")[0] for line in lines]
    assert names == sorted(names)


@pytest.mark.parametrize(
    ("flags", "warned"),
    [
        ([], False),
        (["--controllers=*,-ttl"], False),
        (["--controllers=ttl"], True),
        (["--controllers=ttl", "--leader-elect=false"], False),
        (["--controllers=ttl", "--leader-elect-resource-name=trial"], False),
        (["--controllers=ttl", "--leader-elect-resource-namespace=trial"], False),
    ],
)
def test_a_few_controllers_under_the_managers_lease_are_a_warning(flags: list[str], warned: bool) -> None:
    generic = load(flags).component.generic
    text = lease_warning(generic)
    assert bool(text) is warned
    assert not warned or text.startswith("--controllers=ttl-controller does not contain *: ")
