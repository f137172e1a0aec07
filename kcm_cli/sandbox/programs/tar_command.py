"""``tar``, between known files and archives: standard input and output, as ``kubectl cp`` uses them, or other files."""

import zlib
from collections.abc import Iterator, Sequence
from gzip import compress
from io import BytesIO
from posixpath import normpath
from tarfile import (
    BLKTYPE,
    BLOCKSIZE,
    CHRTYPE,
    DIRTYPE,
    FIFOTYPE,
    LNKTYPE,
    SYMTYPE,
    ReadError,
    TarError,
    TarFile,
    TarInfo,
)
from tarfile import open as open_archive

from kcm_cli.sandbox.programs.errors import Refused, Unknown
from kcm_cli.sandbox.programs.filesystem import PER_CHARACTER
from kcm_cli.sandbox.programs.shell import Shell

_PER_MEMBER = 64
"""Their cost (see ``filesystem.Work``)."""
_MOST_READ = 4 << 20
"""The content of larger files is unknown, as that of symbolic links."""
_MOST_UNPACKED = 32 << 20
"""Nothing is known of an archive that is larger when it is unpacked."""
_GZIP = 16 + zlib.MAX_WBITS
_MODES = {"c": frozenset("cfzhpv"), "x": frozenset("xfmopvz")}
"""What a mode is known with."""
_IGNORED = frozenset(("--no-same-permissions", "--no-same-owner"))
_WITHOUT_CONTENT = (LNKTYPE, SYMTYPE, CHRTYPE, BLKTYPE, DIRTYPE, FIFOTYPE)
_END = bytes(2 * BLOCKSIZE)
_INVALID = (TarError, ValueError, OverflowError, RecursionError)
"""What ``tarfile`` raises for invalid archives."""


class Arriving:
    """Finds the end of an archive that arrives in parts: two blocks of zeros after the last member, not in its content.

    Each header is read once.
    """

    def __init__(self) -> None:
        self._next = 0
        """Where a header begins, or the end."""

    def is_whole(self, data: bytes | bytearray) -> bool:
        """Whether the end is there. data: all that has arrived."""
        while True:
            try:
                member = TarInfo.frombuf(data[self._next : self._next + BLOCKSIZE], "utf-8", "surrogateescape")
            except _INVALID:  # it is not there yet, or no header, as the end
                return data.startswith(_END, self._next)
            if member.size < 0:
                return False
            blocks = 0 if member.type in _WITHOUT_CONTENT else -(-member.size // BLOCKSIZE)
            self._next += (1 + blocks) * BLOCKSIZE


def _members_of(archive: TarFile) -> Iterator[TarInfo]:
    """The members of an archive. Raises ReadError where a header is invalid.

    ``tarfile`` ends silently at an invalid header, or, before Python 3.11.9, repeats a member with a negative size.
    """
    end = -1
    for member in archive:
        if archive.offset <= end:
            raise ReadError
        end = archive.offset
        yield member
    archive.fileobj.seek(archive.offset)
    if any(archive.fileobj.read(BLOCKSIZE)):
        raise ReadError


def tar(shell: Shell, words: Sequence[str]) -> int:
    """``tar cf ARCHIVE FILE…`` and ``tar xf ARCHIVE``, also with ``-C``, ``v`` and ``z``."""
    options, folder, archive, names, rest = "", ".", "", [], iter(words[1:])
    for index, word in enumerate(rest):
        if word == "-C":
            folder = next(rest, "")
        elif word in _IGNORED:
            continue
        elif index == 0 or (word.startswith("-") and word != "-"):
            options += word.removeprefix("-")
            if "f" in word:
                archive = next(rest, "")
        else:
            names.append(word)
    given, folder = folder, shell.place(folder)
    needed = folder if not names or any(name[:1] != "/" for name in names) else "/"
    mode = next((each for each in _MODES if each in options), "")
    known = bool(mode) and set(options) <= _MODES[mode] and bool(names) == (mode == "c")
    if not known or not archive or "" in names or not needed.startswith("/"):
        raise Unknown
    if folder != shell.place(".") and shell.fs.lacks_folder(folder):  # a runtime makes the working directory
        raise Refused(f"can't change directory to '{given}': No such file or directory")
    if mode == "c":
        return _written(shell, folder, archive, names, options)
    data = _archive(shell, archive, zipped="z" in options)
    if data is None:
        return _invalid(shell)
    return _read(shell, folder, data, verbose="v" in options)


def _invalid(shell: Shell) -> int:
    shell.say("tar: invalid tar magic\n", error=True)
    return 1


def _archive(shell: Shell, name: str, *, zipped: bool) -> bytes | None:
    """The bytes of an archive; None for what is not compressed as it should be. Raises Refused, Unknown."""
    if name == "-":
        if shell.input is None:
            raise Unknown
        text, shell.input = shell.input, ""
    else:
        try:
            text = shell.fs.content(shell.place(name))
        except OSError:
            raise Refused(f"can't open '{name}': No such file or directory") from None
    data = text.encode("utf-8", "surrogateescape")
    shell.fs.work.spend(len(data) * PER_CHARACTER)
    if not zipped:
        return data
    reader = zlib.decompressobj(_GZIP)
    try:
        unpacked = reader.decompress(data, _MOST_UNPACKED)
    except zlib.error:
        return None
    if not reader.eof and len(unpacked) >= _MOST_UNPACKED:
        raise Unknown
    shell.fs.work.spend(len(unpacked) * PER_CHARACTER)
    return unpacked if reader.eof else None


def _written(shell: Shell, folder: str, archive_name: str, names: Sequence[str], options: str) -> int:
    now, code, found = shell.now(), 0, BytesIO()
    with open_archive(fileobj=found, mode="w:") as archive:
        for name in names:
            try:
                for member, data in _members(shell, name, shell.place(name if name[0] == "/" else f"{folder}/{name}")):
                    info = TarInfo(member.lstrip("/"))
                    info.mtime = 0 if now is None else int(now.timestamp())
                    info.mode, info.type = (0o755, DIRTYPE) if data is None else (0o644, info.type)
                    info.size = len(data or b"")
                    archive.addfile(info, BytesIO(data or b""))
                    if "v" in options:
                        shell.say(f"{_shown(info)}\n", error=archive_name == "-")
            except FileNotFoundError:
                shell.say(f"tar: {name}: No such file or directory\n", error=True)
                code = 1
    data = compress(found.getvalue(), mtime=0) if "z" in options else found.getvalue()
    text = data.decode("utf-8", "surrogateescape")
    if archive_name == "-":
        shell.say(text)
    else:
        path = shell.place(archive_name)
        if shell.fs.is_folder(path):
            raise Unknown
        shell.fs.make(shell.fs.writable(path, archive_name), text)
    return code


def _shown(member: TarInfo) -> str:
    return f"{member.name}/" if member.isdir() else member.name


def _members(shell: Shell, name: str, path: str) -> Iterator[tuple[str, bytes | None]]:
    """A file or folder, and all in it, by names in the archive; the content of a folder is None. Raises OSError."""
    for each, place, is_folder in shell.fs.below(name, path):
        shell.fs.work.spend(_PER_MEMBER)
        text = "" if is_folder else shell.fs.content(place)
        shell.fs.work.spend(len(text) * PER_CHARACTER)
        yield each, None if is_folder else text.encode("utf-8", "surrogateescape")


def _read(shell: Shell, folder: str, data: bytes, *, verbose: bool) -> int:
    try:
        with open_archive(fileobj=BytesIO(data), mode="r:") as archive:
            for member in _members_of(archive):
                shell.fs.work.spend(_PER_MEMBER)
                name = normpath(member.name).lstrip("/")
                path = shell.place(f"{folder}/{name}")
                is_known = member.isfile() or member.isdir() or member.issym()
                if name.startswith("..") or not is_known or member.issparse() or (name == "." and not member.isdir()):
                    raise Unknown  # a sparse file may be much larger than its archive
                if verbose:
                    shell.say(f"{_shown(member)}\n")
                if member.issym() or member.size > _MOST_READ:
                    shell.fs.make(shell.fs.writable(path, name, parents=True), None)
                elif member.isdir():
                    shell.fs.texts.setdefault(f"{shell.fs.writable(path, name, parents=True)}/", "")
                elif (content := archive.extractfile(member)) is not None:
                    text = content.read().decode("utf-8", "surrogateescape")
                    shell.fs.make(shell.fs.writable(path, name, parents=True), text)
    except _INVALID:
        return _invalid(shell)
    return 0
