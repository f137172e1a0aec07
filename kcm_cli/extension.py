"""What a controller of an installed package imports (docs/controllers.md).

The declaration (``Descriptor``, ``Controller`` and its parts), the context that it is built with, the actions of a
plan, views of objects, options, and the types of what the context has. docs/api.md describes each of them.
"""

from kcm_cli.api.core import NAMESPACES, NODES, PODS, SECRETS, SERVICES, Namespace, Node, Pod, Secret, Service
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component.clock import Clock
from kcm_cli.component.metrics import Registry
from kcm_cli.component.options import Group, option
from kcm_cli.component.value_types import BOOL, DURATION, INT, STRING, STRINGS, ValueType
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import After, ConcurrentSyncs, Controller, Owns, Periodic, Queue, Watch, only
from kcm_cli.engine.descriptor import Descriptor, StartError
from kcm_cli.engine.execute import Executor
from kcm_cli.engine.writes import put_status, send
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.meta import Object, ObjectMeta, View
from kcm_cli.planning.actions import (
    Action,
    Apply,
    Create,
    Delete,
    Done,
    EventRef,
    Failed,
    Mode,
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
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import AlreadyExists, ApiError, Cause, Conflict, Forbidden, Invalid, NotFound
from kcm_cli.rest.transport import RequestError, TransportError
from kcm_cli.runtime.informer import Informer, Scope
from kcm_cli.runtime.store import CONTROLLER_UID, Store, by_controller, controlled_by
from kcm_cli.runtime.workqueue import WorkQueue

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
    "Action",
    "After",
    "AlreadyExists",
    "ApiError",
    "Apply",
    "Cause",
    "Client",
    "Clock",
    "ConcurrentSyncs",
    "Conflict",
    "Controller",
    "ControllerContext",
    "Create",
    "Delete",
    "Descriptor",
    "Doc",
    "Done",
    "EventRef",
    "Executor",
    "Failed",
    "Forbidden",
    "FormatError",
    "Group",
    "Informer",
    "Invalid",
    "Mode",
    "Namespace",
    "Node",
    "NotFound",
    "Notice",
    "Object",
    "ObjectMeta",
    "Outcome",
    "Owns",
    "Patch",
    "Periodic",
    "Plan",
    "Pod",
    "Queue",
    "Registry",
    "RequestError",
    "Resource",
    "Scope",
    "Secret",
    "Service",
    "Stage",
    "StartError",
    "Store",
    "TransportError",
    "Update",
    "ValueType",
    "View",
    "Watch",
    "WorkQueue",
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
