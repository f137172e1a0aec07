"""Warnings as values of Warning headers: without duplicates and control characters, and limited in length.

upstream: apiserver pkg/endpoints/filters/warning.go, apimachinery pkg/util/net/http.go#NewWarningHeader
"""

import unicodedata
from collections.abc import Iterable, Iterator

_YAML = ("error converting YAML to JSON: yaml: unmarshal errors:\n", "yaml: unmarshal errors:\n")
_TOTAL, _ITEM = 4096, 256
"""If all warnings have more letters than ``_TOTAL``, each one is cut to ``_ITEM``."""


def header_values(warnings: Iterable[str]) -> list[str]:
    """A header value for each warning that can be sent."""
    texts = list(_sent(warnings))
    if sum(map(len, texts)) > _TOTAL:
        texts = list(_cut(texts))
    return [f'299 - "{_quoted(text)}"' for text in texts]


def _sent(warnings: Iterable[str]) -> Iterator[str]:
    """The distinct warnings without control characters, as far as they can be sent."""
    seen: set[str] = set()
    least = 0
    for text in _single(warnings):
        if text and text not in seen and not _has_control(text):
            yield text
            least += min(len(text), _ITEM)
            if least >= _TOTAL:  # so all of them have more, and are cut
                return
        seen.add(text)


def _single(warnings: Iterable[str]) -> Iterator[str]:
    """The warnings. An error of the YAML parser is split into lines."""
    for text in warnings:
        prefix = next((prefix for prefix in _YAML if text.startswith(prefix)), None)
        if prefix is None:
            yield text
        else:
            yield from (line.strip() for line in text.removeprefix(prefix).split("\n"))


def _cut(texts: Iterable[str]) -> Iterator[str]:
    sent = 0
    for text in texts:
        if sent >= _TOTAL:
            return
        sent += min(len(text), _ITEM)
        yield text[:_ITEM]


def _has_control(text: str) -> bool:
    return any(unicodedata.category(letter) == "Cc" for letter in text)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
