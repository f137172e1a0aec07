"""The data directory: objects in SQLite, locked against other processes.

WAL with one transaction per write and ``synchronous=OFF``: an acknowledged write has been passed to the kernel, so it
survives a crash of this process. A power failure may lose the last seconds, and corrupts no more than SQLite's WAL
allows. An fsync per write would take ten times as long.
"""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.store.errors import DirectoryInUse, NotKept
from kcm_cli.sandbox.apiserver.store.stored import Stored

_FORMAT = 1
"""The version of the tables. 0 is the same format, written by versions that did not set it."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
  resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, data BLOB
  NOT NULL, PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL);
INSERT OR IGNORE INTO state VALUES (1, 1);
"""


class SqliteJournal:
    """Implements ``store.Journal`` in a directory, which is created (mode 0700) if it is missing.

    Raises DirectoryInUse, OSError, sqlite3.Error; ValueError if the format is newer.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.ExitStack() as taken:
            taken.callback(os.close, _locked(directory / "lock"))
            database = sqlite3.connect(directory / "state.db", isolation_level=None, check_same_thread=False)
            self._database = taken.enter_context(contextlib.closing(database))
            os.chmod(directory / "state.db", 0o600)
            _check_format(self._database)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=OFF")
            self._database.executescript(_SCHEMA)
            self._database.execute(f"PRAGMA user_version={_FORMAT}")
            self._taken = taken.pop_all()

    def load(self) -> tuple[int, Iterable[tuple[GVR, str, str, int, bytes]]]:
        (revision,) = self._database.execute("SELECT revision FROM state").fetchone()
        return int(revision), self._objects()

    def write(self, gvr: GVR, stored: Stored, deleted: bool) -> None:
        """Raises NotKept."""
        try:
            self._write((_text(gvr), stored.namespace, stored.name), stored, deleted)
        except sqlite3.Error as error:
            raise NotKept(f"the data directory is not writable: {error}") from error

    def _write(self, key: tuple[str, str, str], stored: Stored, deleted: bool) -> None:
        execute = self._database.execute
        execute("BEGIN IMMEDIATE")
        try:
            if deleted:
                execute("DELETE FROM objects WHERE resource=? AND namespace=? AND name=?", key)
            else:
                execute("INSERT OR REPLACE INTO objects VALUES (?,?,?,?,?)", (*key, stored.revision, stored.data))
            execute("UPDATE state SET revision=?", (stored.revision,))
        except BaseException:
            if self._database.in_transaction:  # SQLite may have rolled back already
                execute("ROLLBACK")
            raise
        execute("COMMIT")

    def close(self) -> None:
        self._taken.close()

    def _objects(self) -> Iterator[tuple[GVR, str, str, int, bytes]]:
        rows = self._database.execute("SELECT resource, namespace, name, revision, data FROM objects")
        for resource, namespace, name, revision, data in rows:
            group, version, plural = resource.split("/")
            yield GVR(group, version, plural), namespace, name, revision, data


def _check_format(database: sqlite3.Connection) -> None:
    (found,) = database.execute("PRAGMA user_version").fetchone()
    if found > _FORMAT:
        raise ValueError(f"it was written by a newer kcm (format {found}; this one supports up to {_FORMAT})")


def _text(gvr: GVR) -> str:
    return f"{gvr.group}/{gvr.version}/{gvr.plural}"


def _locked(path: Path) -> int:
    """An open, exclusively locked file. The lock ends with the process. Raises DirectoryInUse."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise DirectoryInUse(f"{path.parent} is in use by another process") from error
    return descriptor
