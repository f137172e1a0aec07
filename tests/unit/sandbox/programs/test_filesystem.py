"""The known files of a container."""

import pytest

from kcm_cli.sandbox.programs.errors import Refused, Unknown
from kcm_cli.sandbox.programs.filesystem import FileSystem, Work


def system(most: float = 1000, **texts: str | None) -> FileSystem:
    """A file ``/s/NAME`` for each word, in a folder that has no others."""
    return FileSystem({f"/s/{name}": text for name, text in texts.items()}, ("/s",), set(), None, Work(most))


def test_other_files_do_not_exist_in_a_known_folder():
    files = system(a="text")
    assert files.content("/s/a") == "text"
    assert files.names("/s/") == ["a"]
    with pytest.raises(FileNotFoundError):
        files.content("/s/b")
    with pytest.raises(IsADirectoryError):
        files.content("/s")
    with pytest.raises(Unknown):
        files.content("/etc/passwd")


def test_a_file_of_unknown_content_exists_and_cannot_be_read():
    files = system(a=None)
    assert files.is_there("-f", "/s/a")
    with pytest.raises(Unknown):
        files.content("/s/a")


@pytest.mark.parametrize(
    ("option", "path", "there"),
    [
        ("-f", "/s/a", True),
        ("-d", "/s/a", False),
        ("-s", "/s/empty", False),
        ("-e", "/s", True),
        ("-f", "/s", False),
        ("-e", "/s/b", False),
        ("-f", "/tmp/b", False),
    ],
)
def test_tests_of_files(option, path, there):
    assert system(a="text", empty="").is_there(option, path) == there


def test_a_removed_file_does_not_exist_until_it_is_created_again():
    files = system()
    files.make("/etc/a", "1")
    files.remove("/etc/a")
    assert files.now() == ({}, frozenset(["/etc/a"]))
    with pytest.raises(FileNotFoundError):
        files.content("/etc/a")
    files.make("/etc/a", "2")
    assert files.now() == ({"/etc/a": "2"}, frozenset())


def test_no_file_is_created_in_a_missing_folder():
    assert system().writable("/s/a", "a") == "/s/a"
    with pytest.raises(Refused, match="b/a: No such file or directory"):
        system().writable("/s/b/a", "b/a")
    assert system().writable("/s/b/a", "b/a", parents=True) == "/s/b/a"


def test_looking_at_files_costs_as_much_as_there_are():
    files = system(most=5, a="", b="")
    files.names("/s")
    files.names("/s")
    with pytest.raises(Unknown):
        files.names("/s")
