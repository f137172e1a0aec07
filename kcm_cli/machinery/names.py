"""Validates names, label keys and similar strings, and generates names.

Each check returns the messages that a client would see, none for a valid value. Lengths are counted in bytes of UTF-8,
as upstream does.

upstream: apimachinery pkg/util/validation, pkg/api/validate/content, pkg/util/rand; apiserver pkg/storage/names
"""

import re
from collections.abc import Sequence
from typing import Protocol

LABEL_MAX = 63
SUBDOMAIN_MAX = 253
ALPHANUMS = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated names: no vowels, so that no words appear."""

_GENERATED_MAX = 63
_SUFFIX_LENGTH = 5

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = f"{_LABEL}(\\.{_LABEL})*"
_UNDERSCORE_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORE_SUBDOMAIN = f"{_UNDERSCORE_LABEL}(\\.{_UNDERSCORE_LABEL})*"
_WILDCARD = f"\\*\\.{_SUBDOMAIN}"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HEADER_NAME = "[-A-Za-z0-9]+"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_PERCENT = "[0-9]+%"

_label = re.compile(_LABEL).fullmatch
_label_1035 = re.compile(_LABEL_1035).fullmatch
_subdomain = re.compile(_SUBDOMAIN).fullmatch
_underscore_subdomain = re.compile(_UNDERSCORE_SUBDOMAIN).fullmatch
_wildcard = re.compile(_WILDCARD).fullmatch
_key = re.compile(_KEY).fullmatch
_value = re.compile(_VALUE).fullmatch
_config_key = re.compile(_CONFIG_KEY).fullmatch
_header_name = re.compile(_HEADER_NAME).fullmatch
_c_identifier = re.compile(_C_IDENTIFIER).fullmatch
_percent = re.compile(_PERCENT).fullmatch

_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)


class RandomSource(Protocol):
    """The method of ``random.Random`` that is used for names."""

    def choices(self, population: str, /, *, k: int) -> Sequence[str]: ...


def generate_name(base: str, rng: RandomSource) -> str:
    """The name that an API server generates from ``generateName``: the base cut to 58 bytes, and five characters."""
    room = _GENERATED_MAX - _SUFFIX_LENGTH
    return base.encode()[:room].decode(errors="ignore") + "".join(rng.choices(ALPHANUMS, k=_SUFFIX_LENGTH))


def regex_message(rule: str, regex: str, *examples: str) -> str:
    """The message for a value that does not match a pattern."""
    shown = f"e.g. {' or '.join(repr_example(example) for example in examples)}" if examples else ""
    return f"{rule} ({shown}regex used for validation is '{regex}')"


def repr_example(example: str) -> str:
    """An example as messages list it."""
    return f"'{example}', "


def max_length_message(limit: int) -> str:
    """The message for a value that has too many characters."""
    return f"must be no more than {limit} characters"


def range_message(low: int, high: int) -> str:
    """The message for a number outside a range."""
    return f"must be between {low} and {high}, inclusive"


def dns1123_label(value: str) -> list[str]:
    """A DNS label (RFC 1123), as names of namespaces and containers are."""
    errors = _too_long(value, LABEL_MAX)
    if not _label(value):
        if _subdomain(value):
            errors.append("must not contain dots")
        else:
            rule = (
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
                "and must start and end with an alphanumeric character"
            )
            errors.append(regex_message(rule, _LABEL, "my-name", "123-abc"))
    return errors


def dns1123_subdomain(value: str) -> list[str]:
    """A DNS subdomain (RFC 1123), as most names are."""
    errors = _too_long(value, SUBDOMAIN_MAX)
    if not _subdomain(value):
        errors.append(regex_message(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return errors


def dns1123_subdomain_with_underscore(value: str) -> list[str]:
    """A DNS subdomain whose labels may hold underscores."""
    errors = _too_long(value, SUBDOMAIN_MAX)
    if not _underscore_subdomain(value):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            "'_', '-' or '.', and must start and end with an alphanumeric character"
        )
        errors.append(regex_message(rule, _UNDERSCORE_SUBDOMAIN, "example.com"))
    return errors


def dns1035_label(value: str) -> list[str]:
    """A DNS label (RFC 1035), as names of Services were: starts with a letter."""
    errors = _too_long(value, LABEL_MAX)
    if not _label_1035(value):
        rule = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        )
        errors.append(regex_message(rule, _LABEL_1035, "my-name", "abc-123"))
    return errors


def wildcard_subdomain(value: str) -> list[str]:
    """``*.`` and a DNS subdomain."""
    errors = _too_long(value, SUBDOMAIN_MAX)
    if not _wildcard(value):
        rule = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "
            "which must consist of lower case alphanumeric characters, '-' or '.' "
            "and end with an alphanumeric character"
        )
        errors.append(regex_message(rule, _WILDCARD, "*.example.com"))
    return errors


def qualified_name(value: str) -> list[str]:
    """A label key, annotation key or resource name: a name, with an optional DNS prefix and a slash."""
    errors: list[str] = []
    parts = value.split("/")
    if len(parts) > 2:
        text = regex_message(f"a valid label key {_KEY_RULE}", _KEY, "MyName", "my.name", "123-abc")
        return [f"{text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if len(parts) == 2:
        errors += _key_prefix(parts[0])
    name = parts[-1]
    if not name:
        errors.append("name part must be non-empty")
    elif len(name.encode()) > LABEL_MAX:
        errors.append(f"name part must be no more than {LABEL_MAX} bytes")
    if not _key(name):
        errors.append(f"name part {regex_message(_KEY_RULE, _KEY, 'MyName', 'my.name', '123-abc')}")
    return errors


def label_value(value: str) -> list[str]:
    """The value of a label."""
    errors = [f"must be no more than {LABEL_MAX} bytes"] if len(value.encode()) > LABEL_MAX else []
    if not _value(value):
        rule = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        errors.append(regex_message(rule, _VALUE, "MyValue", "my_value", "12345"))
    return errors


def config_map_key(value: str) -> list[str]:
    """A key of a ConfigMap's or Secret's data."""
    errors = _too_long(value, SUBDOMAIN_MAX)
    if not _config_key(value):
        rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        errors.append(regex_message(rule, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    return errors + _dots(value)


def relaxed_env_var_name(value: str) -> list[str]:
    """The name of an environment variable: any printable ASCII but ``=``."""
    if not value:
        return ["environment variable name must be non-empty"]
    if not value.isascii() or not value.isprintable() or "=" in value:
        return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]
    return []


def port_name(value: str) -> list[str]:
    """The name of a container's port."""
    errors = _too_long(value, 15)
    if not re.fullmatch("[-a-z0-9]+", value):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        errors.append("must contain at least one letter (a-z)")
    if "--" in value:
        errors.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return errors


def port_number(value: int) -> list[str]:
    """A port from 1 to 65535."""
    return [] if 1 <= value <= 65535 else [range_message(1, 65535)]


def http_header_name(value: str) -> list[str]:
    """The name of an HTTP header."""
    if _header_name(value):
        return []
    rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [regex_message(rule, _HEADER_NAME, "X-Header-Name")]


def c_identifier(value: str) -> list[str]:
    """An identifier as C has them."""
    if _c_identifier(value):
        return []
    rule = (
        "a valid C identifier must start with alphabetic character or '_', "
        "followed by a string of alphanumeric characters or '_'"
    )
    return [regex_message(rule, _C_IDENTIFIER, "my_name", "MY_NAME", "MyName")]


def percent(value: str) -> list[str]:
    """Digits and a percent sign."""
    if _percent(value):
        return []
    rule = "a valid percent string must be a numeric string followed by an ending '%'"
    return [regex_message(rule, _PERCENT, "1%", "93%")]


def path_segment(value: str) -> list[str]:
    """A name that can be one segment of a URL path (RBAC objects, for example)."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return path_segment_prefix(value)


def path_segment_prefix(value: str) -> list[str]:
    """A beginning of such a name."""
    return [f"may not contain '{char}'" for char in "/%" if char in value]


def _too_long(value: str, limit: int) -> list[str]:
    return [max_length_message(limit)] if len(value.encode()) > limit else []


def _key_prefix(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    errors = [f"must be no more than {SUBDOMAIN_MAX} bytes"] if len(prefix.encode()) > SUBDOMAIN_MAX else []
    if not _subdomain(prefix):
        errors.append(regex_message(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return [f"prefix part {error}" for error in errors]


def _dots(value: str) -> list[str]:
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return ["must not start with '..'"] if value.startswith("..") else []


def is_native_resource(name: str) -> bool:
    """Whether a resource that is counted or measured is one of Kubernetes' own."""
    return "/" not in name or "kubernetes.io/" in name
