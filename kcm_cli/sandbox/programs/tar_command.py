"""``tar``, from known files to the standard output and from the standard input to files, as ``kubectl cp`` uses it."""

from collections.abc import Iterator, Sequence
from gzip import compress
from io import BytesIO
from posixpath import normpath
from tarfile import BLOCKSIZE, DIRTYPE, ReadError, TarError, TarFile, TarInfo
from tarfile import open as open_archive

from kcm_cli.sandbox.programs.errors import Unknown
from kcm_cli.sandbox.programs.filesystem import PER_CHARACTER
from kcm_cli.sandbox.programs.shell import Shell

_PER_MEMBER = 64
"""Their cost (see ``filesystem.Work``)."""
_MOST_READ = 4 << 20
"""The content of larger files is unknown, as that of symbolic links."""
_IGNORED = frozenset(("--no-same-permissions", "--no-same-owner"))
_END = bytes(1024)
_INVALID = (TarError, ValueError, OverflowError, RecursionError)
"""What ``tarfile`` raises for invalid archives."""


def is_whole(data: bytes) -> bool:
    """Whether an archive has its end: two blocks of zeros after the last member, not in its content."""
    if not data.endswith(_END):
        return False
    try:
        with open_archive(fileobj=BytesIO(data), mode="r:") as archive:
            for _ in _members_of(archive):
                pass
            return len(data) - archive.offset >= len(_END)
    except _INVALID:
        return False


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
    """``tar cf - FILE…`` and ``tar xf -``, also with ``-C``, and with ``z`` when it writes."""
    options, folder, names, rest = "", ".", [], iter(words[1:])
    for index, word in enumerate(rest):
        if word == "-C":
            folder = next(rest, "")
        elif word in _IGNORED or word == "-":
            continue
        elif index == 0 or word.startswith("-"):
            options += word.removeprefix("-")
        else:
            names.append(word)
    folder = shell.place(folder)
    needed = folder if not names or any(name[:1] != "/" for name in names) else "/"
    if "-" not in words or "f" not in options or "" in names or not needed.startswith("/"):
        raise Unknown
    if "c" in options and not set(options) - set("cfzh") and names:
        return _written(shell, folder, names, zipped="z" in options)
    if "x" in options and not set(options) - set("xfmop") and not names:
        return _read(shell, folder)
    raise Unknown


def _written(shell: Shell, folder: str, names: Sequence[str], *, zipped: bool) -> int:
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
            except FileNotFoundError:
                shell.say(f"tar: {name}: No such file or directory\n", error=True)
                code = 1
    data = compress(found.getvalue(), mtime=0) if zipped else found.getvalue()
    shell.say(data.decode("utf-8", "surrogateescape"))
    return code


def _members(shell: Shell, name: str, path: str) -> Iterator[tuple[str, bytes | None]]:
    """A file or folder, and all in it, by names in the archive; the content of a folder is None. Raises OSError."""
    shell.fs.work.spend(_PER_MEMBER)
    try:
        text = shell.fs.content(path)
    except IsADirectoryError:
        yield name, None
        for each in shell.fs.names(path):
            yield from _members(shell, f"{name.rstrip('/')}/{each}", f"{path}/{each}")
    else:
        shell.fs.work.spend(len(text) * PER_CHARACTER)
        yield name, text.encode("utf-8", "surrogateescape")


def _read(shell: Shell, folder: str) -> int:
    if shell.input is None:
        raise Unknown
    sent, shell.input = shell.input.encode("utf-8", "surrogateescape"), ""
    shell.fs.work.spend(len(sent) * PER_CHARACTER)
    try:
        with open_archive(fileobj=BytesIO(sent), mode="r:") as archive:
            for member in _members_of(archive):
                shell.fs.work.spend(_PER_MEMBER)
                name = normpath(member.name).lstrip("/")
                path = shell.place(f"{folder}/{name}")
                is_known = member.isfile() or member.isdir() or member.issym()
                if name.startswith("..") or not is_known or member.issparse() or (name == "." and not member.isdir()):
                    raise Unknown  # a sparse file may be much larger than its archive
                if member.issym() or member.size > _MOST_READ:
                    shell.fs.make(shell.fs.writable(path, name, parents=True), None)
                elif member.isdir():
                    shell.fs.texts.setdefault(f"{shell.fs.writable(path, name, parents=True)}/", "")
                elif (content := archive.extractfile(member)) is not None:
                    text = content.read().decode("utf-8", "surrogateescape")
                    shell.fs.make(shell.fs.writable(path, name, parents=True), text)
    except _INVALID:
        shell.say("tar: invalid tar magic\n", error=True)
        return 1
    return 0
