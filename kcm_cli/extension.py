"""What a controller of an installed package imports (docs/controllers.md).

The declaration (``Descriptor``, ``Controller`` and its parts), the context that it is built with, the actions of a
plan, views of objects, and options. docs/api.md describes each of them.
"""

from kcm_cli.api.core import NAMESPACES, NODES, PODS, SECRETS, SERVICES, Namespace, Node, Pod, Secret, Service
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component.options import option
from kcm_cli.component.value_types import BOOL, DURATION, INT, STRING, STRINGS
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import After, Controller, Owns, Periodic, Queue, Watch, only
from kcm_cli.engine.descriptor import Descriptor, StartError
from kcm_cli.engine.writes import put_status, send
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object, View
from kcm_cli.planning.actions import (
    Apply,
    Create,
    Delete,
    EventRef,
    Notice,
    Outcome,
    Patch,
    Plan,
    Stage,
    Update,
    edited,
)
from kcm_cli.planning.pod_template import pod_from_template
from kcm_cli.planning.status import status_changes
from kcm_cli.rest.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound
from kcm_cli.runtime.store import CONTROLLER_UID, by_controller, controlled_by

__all__ = [
    "BOOL",
    "CONTROLLER_UID",
    "DURATION",
    "GVR",
    "INT",
    "NAMESPACES",
    "NODES",
    "PODS",
    "SECRETS",
    "SERVICES",
    "STRING",
    "STRINGS",
    "After",
    "AlreadyExists",
    "ApiError",
    "Apply",
    "Conflict",
    "Controller",
    "ControllerContext",
    "Create",
    "Delete",
    "Descriptor",
    "Doc",
    "EventRef",
    "Forbidden",
    "Invalid",
    "Namespace",
    "Node",
    "NotFound",
    "Notice",
    "Object",
    "Outcome",
    "Owns",
    "Patch",
    "Periodic",
    "Plan",
    "Pod",
    "Queue",
    "Resource",
    "Secret",
    "Service",
    "Stage",
    "StartError",
    "Update",
    "View",
    "Watch",
    "by_controller",
    "controlled_by",
    "edited",
    "only",
    "option",
    "pod_from_template",
    "put_status",
    "send",
    "status_changes",
]
