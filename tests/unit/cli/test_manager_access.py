"""What the commands that read a manager have in common."""

from collections.abc import Callable, Sequence

import pytest

from kcm_cli.cli import bug_report, manager_access, top, trace
from kcm_cli.cli.manager_access import ManagerAccess
from kcm_cli.component.clock import Clock, RealClock
from kcm_cli.rest import access, command_client
from kcm_cli.rest.access import Access
from kcm_cli.rest.session import Session
from kcm_cli.rest.tls import TLSFiles


@pytest.mark.parametrize(
    ("main", "words", "code"),
    [
        (top.main, [], 0),
        (top.main, ["--once"], 1),
        (trace.main, ["po/x", "--follow"], 0),
        (trace.main, ["po/x"], 1),
        (bug_report.main, [], 1),
    ],
)
def test_ctrl_c_is_an_error_where_the_output_is_missing(
    main: Callable[[Sequence[str]], int],
    words: list[str],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(manager_access, "opened", interrupted)
    assert main(words) == code
    assert capsys.readouterr() == ("", "Error: interrupted\n" if code else "")


@pytest.mark.parametrize("token", ["", "x"])
async def test_a_plugin_s_certificate_is_shown_to_the_manager(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless there is a token, as with the certificate of a kubeconfig."""
    pair = (b"certificate", b"key")
    found = Access("https://10.0.0.1:6443", TLSFiles(), certificate=lambda: pair)
    shown: dict[str, tuple[bytes, bytes] | None] = {}

    async def load(**_: object) -> Access:
        return found

    class Dialed(Session):
        def __init__(self, to: Access, clock: Clock) -> None:
            shown[to.server] = to.certificate()
            super().__init__(to, clock)

    monkeypatch.setattr(access, "load", load)
    monkeypatch.setattr(manager_access, "Session", Dialed)
    monkeypatch.setattr(command_client, "Session", Dialed)
    to = ManagerAccess("https://127.0.0.1:10257", "kubeconfig", token, TLSFiles(insecure=True))
    async with manager_access.opened(to, RealClock(), "test"):
        pass
    assert shown == {found.server: pair, to.server: None if token else pair}
