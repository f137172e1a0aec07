import asyncio

from kcm_cli.manager.server.messages import Message, Request, Response


def request(query: bytes, *parts: Message) -> Request:
    left = iter(parts)

    async def receive() -> Message:
        return next(left)

    headers = [(b"accept", b"a"), (b"accept", b"b"), (b"x-name", b"\xe9")]
    scope = {"type": "http", "method": "GET", "path": "/a?b", "query_string": query, "headers": headers}
    return Request(scope, receive)


def test_parameters_and_headers_may_be_repeated() -> None:
    found = request(b"a=1&verbose&a=2&b=%20")
    assert (found.path, found.query) == ("/a?b", {"a": ["1", "2"], "verbose": [""], "b": [" "]})
    assert (found.first("a"), found.first("c")) == ("1", "")
    assert (found.headers.get("Accept"), found.headers.get_all("accept")) == ("a", ["a", "b"])
    assert (found.headers.get("X-Name"), found.headers.get("other")) == ("é", None)


def test_a_body_arrives_in_parts_or_not_at_all() -> None:
    parts = ({"type": "http.request", "body": b"a", "more_body": True}, {"type": "http.request", "body": b"b"})
    assert asyncio.run(request(b"", *parts).body()) == b"ab"
    assert asyncio.run(request(b"", {"type": "http.disconnect"}).body()) == b""


def test_a_response_has_its_length() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(Response("é", 404, {"content-type": "text/plain"})({}, request(b"").body, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == 404
    assert dict(sent[0]["headers"]) == {b"content-length": b"2", b"content-type": b"text/plain"}
    assert sent[1]["body"] == "é".encode()
