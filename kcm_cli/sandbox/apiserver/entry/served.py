"""Faults for clients in other processes.

GET     /sandbox.kcm.dev/faults[/N]    the faults, each with its number and the requests that it has hit
POST    /sandbox.kcm.dev/faults        add a fault, or a list of them
DELETE  /sandbox.kcm.dev/faults[/N]    remove a fault, or all

RBAC applies: the path is a nonResourceURL. Faults do not hit it.
"""

import msgspec
import yaml
from msgspec.structs import asdict

from kcm_cli.machinery.times import format_time
from kcm_cli.machinery.yaml_errors import described, load
from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.entry.fault import Fault, document_of, faults_of
from kcm_cli.sandbox.apiserver.entry.faults import Faults, Injected
from kcm_cli.sandbox.apiserver.errors import bad_request, method_not_allowed, no_such_path
from kcm_cli.sandbox.apiserver.registry.responses import doc_response

PATH = "/sandbox.kcm.dev/faults"


def serves(path: str) -> bool:
    """Whether a path is served here."""
    return path == PATH or path.startswith(PATH + "/")


def answer(faults: Faults, request: Request) -> Response:
    """The response to a request. Raises ApiError 400, 404, 405."""
    number = request.path.removeprefix(PATH).strip("/")
    chosen = [one for one in faults.all.values() if number in ("", str(one.number))]
    if number and not chosen:
        raise no_such_path()
    match request.method:
        case "GET":
            pass
        case "POST" if not number:
            chosen = [faults.add(fault) for fault in _read(request.body)]
        case "DELETE":
            for one in chosen:
                faults.remove(one.number)
        case _:
            raise method_not_allowed()
    return doc_response(201 if request.method == "POST" else 200, {"items": [_document(one) for one in chosen]})


def _read(body: bytes) -> tuple[Fault, ...]:
    try:
        return faults_of(load(body))
    except yaml.YAMLError as error:
        raise bad_request(f"invalid fault: not YAML: {described(error)}") from None
    except ValueError as error:
        raise bad_request(f"invalid fault: {error}") from None


def _document(one: Injected) -> dict[str, object]:
    happened = [{**asdict(each), "time": format_time(each.time)} for each in one.happened]
    return {"id": one.number, **document_of(one.fault), "happened": msgspec.to_builtins(happened)}
