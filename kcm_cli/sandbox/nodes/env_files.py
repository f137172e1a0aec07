"""Variables from files in emptyDirs (``fileKeyRef``): the format of such files, and their errors.

upstream: pkg/kubelet/util/env/env_util.go, pkg/kubelet/kubelet_pods.go#makeEnvironmentVariables
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from posixpath import normpath

from kcm_cli.sandbox.nodes.empty_dirs import EmptyDirs
from kcm_cli.sandbox.programs.errors import Unknown
from kcm_cli.sandbox.views import FileKeyRef, SimulatedContainer, SimulatedPod

_LONGEST_LINE = (64 << 10) - 1
"""The limit for a line in bytes, as in a kubelet."""
_MOST_CHARACTERS = 256 << 10
"""The limit for a file."""
_BLANKS = " \t"
_FOLDER = "/var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~empty-dir/{volume}"


class EnvFileError(Exception):
    """Why a variable has no value, as the container's status reports it."""


class NotSet(Exception):
    """An optional variable has no value, and is left out."""


def value_in(text: str, key: str) -> str:
    """Return the value of a key, empty if the file does not have it.

    Lines are ``KEY='value'``, comments or blank; a value may span several lines. Errors after the key do not matter.
    Raises EnvFileError, and Unknown if the file is too long.
    """
    if len(text) > _MOST_CHARACTERS:
        raise Unknown
    values, whole = _read(text)
    if key not in values and not whole:
        raise EnvFileError(_UNREADABLE)
    return values.get(key, "")


@lru_cache(16)
def _read(text: str) -> tuple[dict[str, str], bool]:
    """Return the variables of a file, and whether the whole file could be read."""
    values: dict[str, str] = {}
    try:
        for name, value in _variables(text):
            values.setdefault(name, value)
    except EnvFileError:
        return values, False
    return values, True


def _variables(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values in a file. Raises EnvFileError at the first syntax error."""
    lines = iter(text.removesuffix("\n").split("\n") if text else ())
    for line in lines:
        line = _checked(line).lstrip(_BLANKS)
        if not line or line.startswith("#"):
            continue
        name, found, value = line.partition("=")
        if not found or not name or name.endswith(tuple(_BLANKS)):
            raise EnvFileError(_UNREADABLE)
        if value.startswith(tuple(_BLANKS)):
            yield name, ""
            continue
        if not value.startswith("'"):
            raise EnvFileError(_UNREADABLE)
        parts: list[str] = []
        part, closed, rest = value[1:].partition("'")
        while not closed:
            parts.append(f"{part}\n")
            following = next(lines, None)
            if following is None:
                raise EnvFileError(_UNREADABLE)
            part, closed, rest = _checked(following).partition("'")
        rest = rest.lstrip(_BLANKS)
        if rest and not rest.startswith("#"):
            raise EnvFileError(_UNREADABLE)
        yield name, "".join((*parts, part))


_UNREADABLE = "couldn't parse env file"


def _checked(line: str) -> str:
    if len(line) > _LONGEST_LINE or len(line.encode("utf-8", "surrogateescape")) > _LONGEST_LINE:
        raise EnvFileError(_UNREADABLE)
    return line.removesuffix("\r")


def file_value(ref: FileKeyRef, pod: SimulatedPod, made: EmptyDirs) -> str | None:
    """Return the value of a variable, or None if the file's content is unknown. Raises EnvFileError, NotSet."""
    try:
        value = value_in(made.text(ref.volume_name, ref.path), ref.key)
    except Unknown:
        return None
    except OSError:
        raise EnvFileError(_UNREADABLE) from None
    if value:
        return value
    if ref.optional:
        raise NotSet
    path = normpath(f"{_FOLDER.format(uid=pod.uid, volume=ref.volume_name)}/{ref.path}")
    raise EnvFileError(f'environment variable key "{ref.key}" not found in file "{path}"')


def env_file_problems(container: SimulatedContainer, pod: SimulatedPod, made: EmptyDirs) -> dict[str, tuple[str, str]]:
    """Return the required variables without a value, each with its volume and the error."""
    found: dict[str, tuple[str, str]] = {}
    for variable in container.env:
        ref = variable.value_from.file_key_ref if variable.value_from is not None else None
        if ref is not None:
            try:
                with suppress(NotSet):
                    file_value(ref, pod, made)
            except EnvFileError as error:
                found[variable.name] = ref.volume_name, str(error)
    return found
