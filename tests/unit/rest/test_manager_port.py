"""The port of a manager that cannot be read: an error with the way out."""

from contextlib import asynccontextmanager

import pytest

from kcm_cli.rest.manager_port import ManagerPort, ReadError
from kcm_cli.rest.transport import Unreachable, Untrusted


class Failing:
    """A transport whose requests fail."""

    def __init__(self, error):
        self.error = error

    @asynccontextmanager
    async def stream(self, request):
        raise self.error
        yield


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Unreachable("refused"), "refused (does the manager run? --server names its address)"),
        (Untrusted("certificate has expired"), "certificate has expired"),
    ],
)
async def test_who_answers_without_being_trusted_is_not_said_to_be_down(error, text):
    with pytest.raises(ReadError) as raised:
        await ManagerPort(Failing(error), "https://m").read("/metrics", most_bytes=1)
    assert str(raised.value) == text
