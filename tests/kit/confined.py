"""Runs a command under the limits of ``configs/systemd/kcm.service``, without systemd.

    python -m tests.kit.confined WRITABLE COMMAND...

The limits: no memory that is writable and executable (PR_SET_MDWE), no capabilities, no new privileges, the unit's
SystemCallFilter by libseccomp, and a file system that is read-only outside of the folder WRITABLE. Ends with SKIP and a
line that says why where this machine permits one of them not.
"""

import ctypes
import errno
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.kit.places import ROOT

SKIP = 75
UNIT = ROOT / "configs" / "systemd" / "kcm.service"
_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP, _PR_SET_MDWE = 38, 24, 65
_CLONE_NEWNS = 0x20000
_MS_REC, _MS_PRIVATE, _MS_BIND = 0x4000, 0x40000, 0x1000
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _RDONLY = 442, -100, 0x8000, 1
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_CAPABILITIES = 64
_libc = ctypes.CDLL(None, use_errno=True)


class NotPermittedError(Exception):
    """The message says what this machine lacks."""


def _did(what: str, result: int) -> None:
    if result < 0:
        raise NotPermittedError(f"{what}: {os.strerror(ctypes.get_errno())}")


class _MountAttr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def _read_only(writable: str) -> None:
    """Make all mounts read-only for this process, but for one folder."""
    _did("unshare", _libc.unshare(_CLONE_NEWNS))
    _did("mount", _libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
    _did("mount", _libc.mount(writable.encode(), writable.encode(), None, _MS_BIND, None))
    for path, flags, attr in (("/", _AT_RECURSIVE, _MountAttr(_RDONLY)), (writable, 0, _MountAttr(0, _RDONLY))):
        words = (_MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, ctypes.byref(attr), ctypes.sizeof(attr))
        _did("mount_setattr", _libc.syscall(*words))


def system_calls(unit: str) -> frozenset[str]:
    """The system calls that the unit's filter permits, as systemd reads its lines."""
    permitted = set(_of_set("@default"))
    for words in re.findall(r"^SystemCallFilter=(.*)$", unit, re.MULTILINE):
        named = {call for word in words.removeprefix("~").split() for call in _of_set(word)}
        permitted = permitted - named if words.startswith("~") else permitted | named
    return frozenset(permitted)


def _of_set(name: str) -> Iterator[str]:
    if not name.startswith("@"):
        yield name
        return
    try:
        words = ("systemd-analyze", "syscall-filter", "--no-pager", name)
        lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    except FileNotFoundError as error:
        raise NotPermittedError("systemd-analyze is not installed") from error
    for line in lines[1:]:
        if line.strip() and not line.strip().startswith("#"):
            yield from _of_set(line.strip())


def _filter(permitted: frozenset[str]) -> Any:
    """Prepare libseccomp's filter. Returns the function that loads it."""
    try:
        lib = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    except OSError as error:
        raise NotPermittedError("libseccomp is not installed") from error
    lib.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(lib.seccomp_init(_ERRNO | errno.EPERM))
    for name in permitted:
        number = lib.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:
            lib.seccomp_rule_add(rules, _ALLOW, number, 0)
    return lambda: _did("seccomp_load", lib.seccomp_load(rules))


def main() -> None:
    """Limit this process, then become the command."""
    writable, *command = sys.argv[1:]
    try:
        load = _filter(system_calls(UNIT.read_text()))
        _read_only(str(Path(writable).resolve()))
        for capability in range(_CAPABILITIES):
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # the kernel knows fewer
        _did("no_new_privs", _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _did("PR_SET_MDWE", _libc.prctl(_PR_SET_MDWE, 1, 0, 0, 0))
        load()
    except NotPermittedError as error:
        sys.stdout.write(f"{error}\n")
        sys.exit(SKIP)
    os.environ["TMPDIR"] = writable
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
