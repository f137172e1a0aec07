"""The same URLs are valid as in Go, and their parts are the same."""

import pytest

from kcm_cli.machinery.urls import Url, UrlError, parse, parse_request

FAULTS = {
    "": "empty url",
    "a/b": "invalid URI for request",
    ":a": "missing protocol scheme",
    "https://a\nb": "net/url: invalid control character in URL",
    "https://!&^(!*&07s6da..sdjfya897w6234k.....s76r872)": 'invalid character "^" in host name',
    "https://a b": 'invalid character " " in host name',
    "https://a:b:c/": 'invalid port ":b:c" after host',
    "https://a:80:81/": 'invalid port ":80:81" after host',
    "https://a:x": 'invalid port ":x" after host',
    "https://[::1": "missing ']' in host",
    "https://[::1]x": 'invalid port "x" after host',
    "https://[a]": 'invalid host: ParseAddr("a"): unable to parse IP',
    "https://[1.2.3.4]": "invalid IP-literal",
    "https://a[::1]": "invalid IP-literal",
    "https://a<b@c": "net/url: invalid userinfo",
    "https://a%zz@c": 'invalid URL escape "%zz"',
    "https://a%41": 'invalid URL escape "%41"',
    "https://a/%4": 'invalid URL escape "%4"',
    "/a#%": 'invalid URL escape "%"',
    "/a%": 'invalid URL escape "%"',
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_request_with_an_invalid_url_is_refused(text: str) -> None:
    with pytest.raises(UrlError) as caught:
        parse_request(text)
    quoted = text.replace("\n", "\\n")
    assert str(caught.value) == f'parse "{quoted}": {FAULTS[text]}'


@pytest.mark.parametrize(
    "text",
    [
        "/p",
        "//a b/c",
        "/a#b",
        "mailto:a b",
        "a:",
        "https://",
        "https://é.com/ü",
        "https://a%c3%a9",
        "https://a/with space?q=%zz",
        "https://a:/",
        "x://a:1:2",
        "https://u:p@ss@h",
        'https://<">',
        "https://[fe80::1%25en0]:80",
        "https://[::ffff:1.2.3.4]",
    ],
)
def test_a_request_may_have_such_a_url(text: str) -> None:
    parse_request(text)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("HTTPS://u:p@h:80/a%20b?c=d?e#f", Url("https", "u:p", "h:80", "/a%20b", "c=d?e", "f")),
        ("https://h?", Url("https", None, "h")),
        ("https://[::1]:1", Url("https", None, "[::1]:1")),
        ("mailto:a@b?c", Url("mailto", query="c")),
        ("//h/p", Url("", None, "h", "/p")),
        ("///p", Url(path="///p")),
        ("p/q:r", Url(path="p/q:r")),
    ],
)
def test_parts(text: str, url: Url) -> None:
    assert parse(text) == url


@pytest.mark.parametrize(
    ("text", "fault"),
    [("a:b", ""), ("1:b", "first path segment in URL cannot contain colon"), ("/a#%", 'invalid URL escape "%"')],
)
def test_without_a_request_some_other_urls_are_valid(text: str, fault: str) -> None:
    if not fault:
        parse(text)
        return
    with pytest.raises(UrlError, match=f"^parse .*: {fault}$"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "hostname", "port"),
    [
        ("https://h:80/", "h", "80"),
        ("https://[::1]:80", "::1", "80"),
        ("https://[::1]", "::1", ""),
        ("https://h:", "h", ""),
        ("/p", "", ""),
    ],
)
def test_host_and_port(text: str, hostname: str, port: str) -> None:
    url = parse(text)
    assert (url.hostname, url.port) == (hostname, port)


@pytest.mark.parametrize(
    ("text", "path"),
    [("https://h/a b/", "/a%20b/"), ("https://h/a%20b(1)", "/a%20b(1)"), ("https://h", ""), ("/a%2fb ", "/a%2Fb%20")],
)
def test_escaped_path(text: str, path: str) -> None:
    assert parse(text).escaped_path == path.replace("%2F", "/")


def test_values_of_the_query() -> None:
    url = parse("/p?k1=a&k2=b&k2=c&with space=d+e&x;y=1&bad=%zz&&empty")
    assert url.values == {"k1": ["a"], "k2": ["b", "c"], "with space": ["d e"], "empty": [""]}
