import pytest

from kcm_cli.planning.endpoints.addresses import parse


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("10.0.0.1", ("10.0.0.1", "IPv4"), id="plain"),
        pytest.param("010.000.0.01", ("10.0.0.1", "IPv4"), id="leading zeros"),
        pytest.param("2001:DB8:0:0::1", ("2001:db8::1", "IPv6"), id="IPv6 in its one spelling"),
        pytest.param("::ffff:10.0.0.1", ("10.0.0.1", "IPv4"), id="IPv4 in IPv6"),
        pytest.param("256.0.0.1", None, id="too large"),
        pytest.param("10.0.0", None, id="too short"),
        pytest.param("\u0661.0.0.1", None, id="other digits"),
        pytest.param("fe80::1%eth0", None, id="zone"),
        pytest.param("10.0.0.0/8", None, id="block"),
        pytest.param("", None, id="empty"),
        pytest.param("example.com", None, id="name"),
    ],
)
def test_parse(text, wanted):
    assert parse(text) == wanted
