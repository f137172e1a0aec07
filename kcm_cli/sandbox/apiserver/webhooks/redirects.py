"""Redirects of webhooks, which are followed as by Go's client.

upstream: net/http client.go#Client.do
"""

from urllib.parse import quote as escaped
from urllib.parse import urljoin, urlsplit

import msgspec
from msgspec.structs import replace

from kcm_cli.machinery.quoting import quote
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.webhooks.targets import Target

MOST_REDIRECTS = 10
_AS_GET, _AS_IT_WAS = frozenset((301, 302, 303)), frozenset((307, 308))
_HTTPS_PORT = 443
_PLAIN = "/%:@!$&'()*+,;=~"


class RedirectError(Exception):
    """A redirect cannot be followed. ``url``: the URL for the error."""

    def __init__(self, url: str, text: str) -> None:
        super().__init__(text)
        self.url = url


class Hop(msgspec.Struct, frozen=True):
    """A request of a call. ``body``: None for a GET. ``count``: the number of redirects before it."""

    target: Target
    query: str
    body: bytes | None
    count: int = 0

    @property
    def url(self) -> str:
        return self.target.url + self.query


def redirected(hop: Hop, response: Response) -> Hop | None:
    """The next request after a response; None if the response is no redirect. Raises RedirectError."""
    location = response.headers.get("location", "")
    if not location or response.status not in _AS_GET | _AS_IT_WAS:
        return None
    try:
        url = urlsplit(urljoin(hop.url, location))
        port = url.port or _HTTPS_PORT
    except ValueError as error:
        text = f"failed to parse Location header {quote(location)}: parse {quote(location)}: {error}"
        raise RedirectError(hop.url, text) from None
    if hop.count + 1 >= MOST_REDIRECTS:
        raise RedirectError(location, f"stopped after {MOST_REDIRECTS} redirects")
    if url.scheme != "https":
        raise RedirectError(url.geturl(), f"unsupported protocol scheme {quote(url.scheme)}")
    path, there = escaped(url.path or "/", _PLAIN), f"{url.scheme}://{url.netloc}"
    if there == "/".join(hop.target.url.split("/")[:3]):
        target = replace(hop.target, url=there + path, path=path)
    else:
        target = Target(there + path, path, url.hostname or "", port, hop.target.ca)
    body = hop.body if response.status in _AS_IT_WAS else None
    return Hop(target, f"?{escaped(url.query, _PLAIN + '?')}" if url.query else "", body, hop.count + 1)
