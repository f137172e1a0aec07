"""The classes that are in use."""

import pytest

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS
from kcm_cli.api.storage import PERSISTENT_VOLUMES
from kcm_cli.controllers.volumeattributesclass_protection import controller
from kcm_cli.machinery import codec


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        ({}, set()),
        ({"spec": {"volumeAttributesClassName": ""}}, set()),
        ({"spec": {"volumeAttributesClassName": "gold"}}, {"gold"}),
        ({"status": {"currentVolumeAttributesClassName": "gold"}}, {"gold"}),
        ({"status": {"modifyVolumeStatus": {"status": "InProgress"}}}, set()),
        (
            {
                "spec": {"volumeAttributesClassName": "gold"},
                "status": {
                    "currentVolumeAttributesClassName": "silver",
                    "modifyVolumeStatus": {"status": "InProgress", "targetVolumeAttributesClassName": "bronze"},
                },
            },
            {"gold", "silver", "bronze"},
        ),
    ],
    ids=["none", "empty", "requested", "current", "no target", "all"],
)
def test_the_classes_of_a_claim(doc, expected):
    assert controller.classes_of_claim(PERSISTENT_VOLUME_CLAIMS.decode(codec.encode(doc))) == expected


@pytest.mark.parametrize(("name", "expected"), [(None, set()), ("", set()), ("gold", {"gold"})])
def test_the_class_of_a_volume(name, expected):
    doc = {"spec": {"volumeAttributesClassName": name}}
    assert controller.classes_of_volume(PERSISTENT_VOLUMES.decode(codec.encode(doc))) == expected
