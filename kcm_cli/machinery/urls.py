"""URLs as Go's net/url parses them: which are valid, why others are not, and what their parts are."""

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import quote as escape
from urllib.parse import unquote, unquote_plus, unquote_to_bytes

import msgspec

from kcm_cli.machinery.quoting import quote

_escape_fault = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL).search
_host_fault = re.compile(
    r"(?P<escape>%(?![0-9A-Fa-f]{2}).{0,2}|%(?!25)[0-7].)|[^\w\-.~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff]",
    re.ASCII | re.DOTALL,
).search
_scheme = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)").match
_is_port = re.compile(r"(?::[0-9]*)?").fullmatch
_is_user = re.compile(r"[\w\-.:~!$&'()*+,;=%@]*", re.ASCII).fullmatch
_is_escaped = re.compile(r"[\w\-.~!$&'()*+,;=:@\[\]/%]*", re.ASCII).fullmatch
_control = re.compile(r"[\x00-\x1f\x7f]").search


class UrlError(ValueError):
    """An invalid URL."""


class Url(msgspec.Struct, frozen=True):
    """The parts of a URL. user: None without user information. path and query are escaped as in the text."""

    scheme: str = ""
    user: str | None = None
    host: str = ""
    path: str = ""
    query: str = ""
    fragment: str = ""

    @property
    def port(self) -> str:
        return self._split()[1]

    @property
    def hostname(self) -> str:
        host = self._split()[0]
        return host[1:-1] if host.startswith("[") and host.endswith("]") else host

    @property
    def escaped_path(self) -> str:
        return self.path if _is_escaped(self.path) else escape(unquote_to_bytes(self.path), safe="$&+,/:;=@")

    @property
    def values(self) -> Mapping[str, list[str]]:
        """The parameters of the query; malformed ones are left out."""
        found: dict[str, list[str]] = {}
        for pair in self.query.split("&"):
            if pair and ";" not in pair and not _escape_fault(pair):
                key, _, value = pair.partition("=")
                found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
        return found

    def _split(self) -> tuple[str, str]:
        host, colon, port = self.host.rpartition(":")
        return (host, port) if colon and _is_port(f":{port}") else (self.host, "")


def path_unescaped(text: str) -> str:
    """The text with its escapes replaced; as it is if one of them is invalid."""
    return text if _escape_fault(text) else unquote(text)


def parse(text: str) -> Url:
    """A URL that may be relative, with a fragment. Raises UrlError."""
    url, _, fragment = text.partition("#")
    parsed = _parse(url, request=False)
    if not fragment:
        return parsed
    try:
        return msgspec.structs.replace(parsed, fragment=_unescaped(fragment))
    except ValueError as error:
        raise UrlError(f"parse {quote(text)}: {error}") from None


def parse_request(text: str) -> Url:
    """A URL as in a request: absolute, or an absolute path; ``#`` is part of the path. Raises UrlError."""
    return _parse(text, request=True)


def is_request(text: str) -> bool:
    """Whether ``parse_request`` reads it."""
    try:
        parse_request(text)
    except UrlError:
        return False
    return True


def _parse(text: str, *, request: bool) -> Url:
    try:
        return _parts(text, request)
    except ValueError as error:
        raise UrlError(f"parse {quote(text)}: {error}") from None


def _parts(text: str, request: bool) -> Url:
    if _control(text):
        raise ValueError("net/url: invalid control character in URL")
    if not text and request:
        raise ValueError("empty url")
    if text == "*":
        return Url(path="*")
    if text.startswith(":"):
        raise ValueError("missing protocol scheme")
    found = _scheme(text)
    scheme = found[0].lower() if found else ""
    rest, _, query = (text[found.end() + 1 :] if found else text).partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, query=query)
        if request:
            raise ValueError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise ValueError("first path segment in URL cannot contain colon")
    user, host = None, ""
    if rest.startswith("//") and (scheme or not (request or rest.startswith("///"))):
        authority, slash, rest = rest[2:].partition("/")
        user, host = _authority(scheme, authority)
        rest = slash + rest
    _unescaped(rest)
    return Url(scheme, user, host, rest, query)


def _authority(scheme: str, authority: str) -> tuple[str | None, str]:
    user, at, host = authority.rpartition("@")
    host = _host(scheme, host)
    if not at:
        return None, host
    if not _is_user(user):
        raise ValueError("net/url: invalid userinfo")
    _unescaped(user)
    return user, host


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise ValueError("invalid IP-literal")
    if bracket == 0:
        return _literal(host)
    name, colon, port = host.partition(":") if scheme in ("http", "https") else host.rpartition(":")
    if colon and not _is_port(f":{port}"):
        raise ValueError(f"invalid port {quote(f':{port}')} after host")
    return _unescaped_host(host)


def _literal(host: str) -> str:
    address, bracket, port = host[1:].rpartition("]")
    if not bracket:
        raise ValueError("missing ']' in host")
    if not _is_port(port):
        raise ValueError(f"invalid port {quote(port)} after host")
    name, zone, rest = address.partition("%25")
    address = _unescaped_host(name) + _unescaped(zone + rest)
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        raise ValueError(f"invalid host: ParseAddr({quote(address)}): unable to parse IP") from None
    if parsed.version == 4:
        raise ValueError("invalid IP-literal")
    return f"[{address}]{port}"


def _unescaped_host(text: str) -> str:
    fault = _host_fault(text)
    if fault and fault["escape"]:
        raise ValueError(f"invalid URL escape {quote(fault[0])}")
    if fault:
        raise ValueError(f"invalid character {quote(fault[0])} in host name")
    return unquote(text)


def _unescaped(text: str) -> str:
    fault = _escape_fault(text)
    if fault:
        raise ValueError(f"invalid URL escape {quote(fault[0])}")
    return unquote(text)
