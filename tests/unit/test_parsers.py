"""Parsers of foreign text take time in proportion to it, and refuse what is nested too deep.

Each one gets long texts of many units. A text that takes long is compared with one of an eighth of its size.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import pytest
import yaml

from kcm_cli.component import flag_values
from kcm_cli.machinery import (
    addresses,
    cron,
    der,
    durations,
    fields,
    formats,
    images,
    integers,
    intstr,
    jsonpath,
    labels,
    names,
    nesting,
    patches,
    pem,
    quantity,
    regexps,
    times,
    urls,
)
from kcm_cli.machinery.cel import lexer, parser
from kcm_cli.machinery.cel.errors import CelSyntaxError
from kcm_cli.planning import csi_handles, pkcs10
from kcm_cli.rest import proxies, tls
from kcm_cli.rest.transport import Unreadable
from kcm_cli.runtime.wire import _Pieces
from kcm_cli.sandbox.apiserver.crd import formats as crd_formats
from kcm_cli.sandbox.apiserver.kinds.certificates import certificatesigningrequest
from kcm_cli.sandbox.apiserver.schema import gojson, yaml_body
from kcm_cli.sandbox.apiserver.schema.yaml_scalars import BadScalar
from kcm_cli.sandbox.apiserver.validation import container_env, volume_sources
from kcm_cli.sandbox.nodes import expansion
from kcm_cli.sandbox.programs import syntax
from kcm_cli.sandbox.programs.errors import Unknown
from tests.kit.growth import grows_linearly

SIZE = 8_000
"""Characters of a text: a quadratic parser in Python takes seconds for it."""
QUICK_S = 0.02
REFUSALS = (
    *(ValueError, LookupError, yaml.YAMLError, Unknown, Unreadable, CelSyntaxError),
    *(gojson.SyntaxProblem, yaml_body.YamlError, BadScalar),
)

PARSERS: dict[str, Callable[[str], object]] = {
    "quantity": quantity.parse_held,
    "duration": durations.parse_duration,
    "field selector": fields.parse,
    "label selector": labels.parse,
    "JSON path": jsonpath.parse,
    "filter of a JSON path": lambda text: jsonpath.parse(f".a[?({text})]"),
    "union of a JSON path": lambda text: jsonpath.parse(f".a[{text}]"),
    "cron schedule": cron.parse,
    "time": times.parse_time,
    "URL": urls.parse,
    "URL of a request": urls.parse_request,
    "image": images.pull_policy,
    "integer": integers.parse_int64,
    "percentage": intstr.percent_of,
    "address": addresses.parse_ip,
    "CIDR": addresses.parse_cidr,
    "pointer of a patch": lambda text: patches.json_patch({}, [{"op": "add", "path": text, "value": 1}]),
    "expression of Go": lambda text: regexps.compile_go(text[: len(text) // 8]),
    "base64": formats.from_base64,
    "PEM": lambda text: list(pem.blocks(text.encode())),
    "CA bundle": lambda text: tls.bundle_fault(text.encode()),
    "DER": lambda text: der.split(text.encode()),
    "certificate request": lambda text: pkcs10.from_der(text.encode("latin-1", "replace")),
    "certificate": lambda text: certificatesigningrequest._certificate_problem(formats.base64_text(text.encode())),
    "CEL": parser.parse,
    "tokens of CEL": lexer.tokens,
    "secret of Azure": csi_handles.azure_account,
    "volume of AWS": csi_handles.aws_volume,
    "proxy": proxies.shown,
    "watch": lambda text: _Pieces().add(text.encode()),
    "nested JSON": lambda text: nesting.Extents(text.encode()),
    "JSON": lambda text: gojson.read(text.encode()),
    "JSON in an object": lambda text: gojson.read(f'{{"a":{text}'.encode()),
    "YAML": lambda text: yaml_body.load(text.encode()),
    "field path": container_env._split_subscript,
    "iqn": lambda text: volume_sources._IQN["iqn"](f"iqn{text}"),
    "reference to a variable": partial(expansion.expand, env={}),
    "shell": syntax.parse,
    "list of a flag": flag_values.split_list,
    "integer of a flag": flag_values.parse_int,
    **{f"name {rule.__name__}": rule for rule in (names.dns1123_subdomain, names.qualified_name, names.percent)},
    **{f"name {rule.__name__}": rule for rule in (names.wildcard_subdomain, names.http_header_name)},
    **{f"format {name}": check for name, check in crd_formats._FORMATS.items()},
}

UNITS = (
    *("0", "1", "a", "A", "e", " ", "\t", "\n", ",", ".", "-", "_", "/", ":", ";", "=", "!", "?", "*", "+", "%", "#"),
    *("(", "[", "{", ")", "]", "}", "<", "'", '"', "\\", "`", "$(", "${", "é", "\0", "&", "|", "~"),
    *(
        "a.",
        "a-",
        "a,",
        "a=b,",
        "a in (b),",
        "0.",
        "1e",
        "0x",
        "[0]",
        "['",
        "['a']",
        '\\"',
        "\\'",
        '"a"',
        '{"a":',
        '"a":1,',
    ),
    *(
        "[?(@",
        "?(@.a[",
        "..",
        "a[",
        "!(",
        "a?b:",
        "<<a\n",
        "<<a",
        "$(a",
        "-1",
        "1,",
        "1-",
        "1h",
        "1s ",
        "//",
        "//a:",
        "@",
        "%2",
    ),
    *(
        "-----BEGIN X-----\n",
        "\n-----END X-----\n",
        "-----BEGIN CERTIFICATE-----\n",
        "\n-----END ",
        "a: b\n",
        "a:\n ",
        "- ",
        "&a ",
    ),
    *(
        "\x30\x80",
        "\x30\x00",
        "\x04\x81",
        "azure-storage-account-a",
        "iqn.0000-00.a",
        "vol-",
        "\\Q",
        "(?:",
        "a{1}",
        "[^",
        "a|",
    ),
)
AROUND = (("", ""), ("a", "!"), ('"', "\n"))
"""What is before and after the units."""
PAIRS = (
    *(("(", ")"), ("[", "]"), ("{", "}"), ('{"a":', "}"), ("[?(@", ")]"), ("[?(@.a", ")]"), ("a[", "]"), ("!(", ")")),
    *(
        ("$(", ")"),
        ("${a:-", "}"),
        ("(?:", ")"),
        ("a?b:(", ")"),
        ("[0,", "]"),
        ("-----BEGIN X-----\n", "\n-----END X-----\n"),
    ),
)
"""Units and what ends them."""


def _texts() -> Iterator[str]:
    for unit, (start, end) in product(UNITS, AROUND):
        yield f"{start}{unit * (SIZE // len(unit))}{end}"
    for left, right in PAIRS:
        count = SIZE // len(left + right)
        yield left * count + right * count


def _take(parse: Callable[[str], object], text: str) -> float:
    """Seconds of CPU for a text. Only refusals may be raised."""
    started = time.process_time()
    try:
        parse(text)
    except RecursionError:
        raise
    except REFUSALS:
        pass
    return time.process_time() - started


def _shorter(text: str, size: int) -> str:
    """The text with its middle cut."""
    return text[: size // 2] + text[len(text) - size // 2 :]


@pytest.mark.parametrize("parse", [pytest.param(parse, id=name) for name, parse in PARSERS.items()])
def test_a_parser_takes_time_in_proportion_to_the_text(parse: Callable[[str], object]) -> None:
    for text in _texts():
        if _take(parse, text) > QUICK_S:
            linear = grows_linearly(lambda size: partial(_take, parse, _shorter(text, size)), SIZE // 8)  # noqa: B023
            assert linear, f"{text[:40]!r} … {text[-10:]!r}"
