"""Texts that programs read differently, read as kube-controller-manager reads them.

``tests/generate/kubernetes_readings.py`` records its answers.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from ipaddress import IPv6Address

import pytest

from kcm_cli.component import flag_values
from kcm_cli.machinery import (
    addresses,
    cron,
    durations,
    fields,
    formats,
    integers,
    intstr,
    labels,
    names,
    quantity,
    times,
    urls,
)
from tests.kit.places import ROOT

TABLE = json.loads((ROOT / "tests" / "recorded" / "readings" / "texts.json").read_text())
NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)
NEVER = -62135596800
"""Go's zero time."""


def _address(text: str) -> str:
    address = addresses.parse_ip(text)
    if address is None:
        raise ValueError
    return str(address.ipv4_mapped or address) if isinstance(address, IPv6Address) else str(address)


def _network(text: str) -> str:
    found = addresses.parse_cidr(text)
    if found is None:
        raise ValueError
    return f"{_address(text.partition('/')[0])} {found[1]}"


def _integer(text: str) -> str:
    number = integers.parse_int64(text)
    if number is None:
        raise ValueError
    return str(number)


def _next(text: str) -> int:
    found = cron.parse(text).next(NOON)
    return NEVER if found is None else int(found.timestamp())


def _url(text: str) -> list[str]:
    url = urls.parse(text)
    return [url.scheme, url.host, url.escaped_path, url.query, url.fragment]


READERS: dict[str, Callable[[str], object]] = {
    "quantity": lambda text: str(quantity.parse(text)),
    "labels": lambda text: str(labels.parse(text)),
    "fields": lambda text: str(fields.parse(text)),
    "time": lambda text: int(times.parse_time(text).timestamp() // 1),
    "duration": lambda text: str(durations.parse_nanoseconds(text)),
    "ip": _address,
    "cidr": _network,
    "int64": _integer,
    "bool": flag_values.parse_bool,
    "percent": lambda text: intstr.scaled_value(text, 100, round_up=True),
    "cron": _next,
    "url": _url,
    "base64": lambda text: formats.from_base64(text).hex(),
    "trim": lambda text: text.strip(formats.SPACES).encode().hex(),
    "label": lambda text: not names.dns1123_label(text),
    "subdomain": lambda text: not names.dns1123_subdomain(text),
    "qualified": lambda text: not names.qualified_name(text),
    "labelvalue": lambda text: not names.label_value(text),
    "configmapkey": lambda text: not names.config_map_key(text),
    "envvar": lambda text: not names.relaxed_env_var_name(text),
    "portname": lambda text: not names.port_name(text),
}
KNOWN = {
    ("time", "0000-01-01T00:00:00Z"),  # no datetime has the year 0
    ("cidr", "::ffff:1.2.3.4/120"),  # a range of IPv4 in Go, which no flag or object allows
}


def reading(kind: str, text: str) -> dict[str, object]:
    """What is read, in the form of the table; without a value if it is refused."""
    try:
        return {"value": READERS[kind](text)}
    except ValueError:
        return {}


@pytest.mark.parametrize("kind", READERS)
def test_texts_are_read_as_by_go(kind: str) -> None:
    rows = [(text, answer) for of, text, answer in TABLE if of == kind and (kind, text) not in KNOWN]
    assert rows
    found = {text: reading(kind, text) for text, _ in rows}
    assert found == dict(rows)


@pytest.mark.parametrize("text", ["\0", "a,\0b", "a\0>10"])
def test_a_nul_in_a_label_selector_is_invalid(text: str) -> None:
    assert reading("labels", text) == {}
