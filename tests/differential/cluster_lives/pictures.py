"""What is compared: objects, Events and writes, without what is random."""

import base64
import json
import re
from pathlib import Path
from typing import Any

from tests.differential.cluster_lives.certificates import certified
from tests.differential.cluster_lives.site import PATHS, RANDOM_END, Site, life_of
from tests.differential.living import Doc

MANAGER = "kube-controller-manager"
RANDOM = (
    (r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)", "TIME"), (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
    (r"\b10\.0\.\d+\.\d+\b", "IP"), (r"\bfd00::[0-9a-f:]+\b", "IP6"), (r"\b10\.1[2-9]\d\.\d+\.0/24", "CIDR"),
    (r'("nodePort": )\d+', r"\1PORT"), (RANDOM_END, "-*"), (r"\bw-2\d{7}\b", "w-MINUTE"),
    (r'("resourceVersion": )"\d+"', r"\1VERSION"), (r"-----BEGIN[^-]+-----[\w+/=\\\n]+-----END[^-]+-----(\\n)?", "PEM"),
)  # fmt: skip
"""What is replaced in the JSON of an object."""
SORTED = {
    "conditions", "ownerReferences", "finalizers", "taints", "reservedFor", "resourceClaimStatuses", "volumesAttached",
    "secrets", "addresses", "notReadyAddresses", "endpoints", "subsets", "ports",
}  # fmt: skip


def face(plural: str, obj: Doc) -> Doc:
    """What is the same for the same history."""
    doc = tidy({key: value for key, value in obj.items() if key not in ("kind", "apiVersion")})
    meta = doc["metadata"]
    writers = {(e["manager"], e["operation"], e.get("subresource", "")) for e in meta.pop("managedFields", ())}
    meta["writers"] = sorted(writer for writer in writers if writer[0] == MANAGER)
    for name in ("uid", "resourceVersion", "creationTimestamp", "generation", "deletionGracePeriodSeconds"):
        meta.pop(name, None)
    if prefix := meta.pop("generateName", ""):  # Go's endpointslice-mirroring-controller drops it
        meta["name"] = prefix + "*"
    if plural == "namespaces" and "conditions" in doc["status"]:  # what remains is told by kcm only, see upstream-bugs
        doc["status"]["conditions"] = [c for c in doc["status"]["conditions"] if "Remaining" not in c["type"]]
    if plural in ("workloads", "podgroups") and meta.get("ownerReferences"):
        doc = json.loads(re.sub(r"-[0-9a-z]{8,10}\b", "-HASH", json.dumps(doc)))  # made for a Job, from its uid
        meta = doc["metadata"]
    if plural == "persistentvolumeclaims" and doc["status"].get("phase") != "Bound":  # as above
        doc["status"]["conditions"] = [c for c in doc["status"].get("conditions", ()) if c["type"] != "Unused"]
    if plural == "secrets":
        doc["data"] = sorted(doc.get("data") or {})
    if plural == "certificatesigningrequests" and "certificate" in doc["status"]:
        doc["status"]["certificate"] = certified(base64.b64decode(doc["status"]["certificate"]))
    return doc  # type: ignore[no-any-return]


def tidy(value: Any, name: str = "") -> Any:
    """With the lists in order whose order means nothing."""
    if isinstance(value, dict):
        return {key: tidy(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        found = [tidy(inner) for inner in value]
        return sorted(found, key=json.dumps) if name in SORTED else found
    return value


def event(obj: Doc) -> Doc:
    about = obj["involvedObject"]
    said = {key: obj.get(key) for key in ("type", "reason", "message", "reportingComponent", "action")}
    return {
        "about": f"{about['kind']}/{about.get('name')} {about.get('fieldPath', '')}",
        "in": obj["metadata"]["namespace"],
        "by": obj.get("source", {}).get("component"),
        **said,
    }


def shown(plural: str, doc: Doc) -> str:
    text = json.dumps(doc, sort_keys=True)
    for pattern, name in RANDOM:
        text = re.sub(pattern, name, text)
    return f"{plural} {text}"


def picture(site: Site) -> list[str]:
    """What there is, and how the API server has answered so far."""
    objects = [shown(plural, face(plural, obj)) for plural in PATHS if plural != "events" for obj in site.items(plural)]
    return sorted(objects) + sorted(site.answers)


def events(site: Site) -> list[str]:
    """Each once: how often one is sent depends on the speed."""
    return unknown({shown("event", event(obj)) for obj in site.items("events")})


KNOWN = tuple(re.compile(text) for text in (
    r"FailedToCreateEndpoint",  # Go's are in another namespace
    r'Cancelling deletion", "reason": "DeviceTaint',  # see deviations
    r"CIDRAssignmentFailed|write node-controller patch nodes merge 422",  # Go's cache lacks its own write
    r"could not update claim \S+ for delete policy|statefulset-controller update persistentvolumeclaims",  # deviations
    r"write job-controller update jobs/status 422|pvc-protection-controller update \S+/status",  # see upstream-bugs
    r"write statefulset-controller update pods",  # Go's changes nothing
    r"write generic-garbage-collector delete endpointslices",  # or first the end of the namespace
    r"write \S+ create \S+ 403",  # in a namespace that is being deleted: as often as it is tried
))  # fmt: skip
"""Events and writes that differ for a reason."""


def writes(audit: Path) -> dict[str, list[str]]:
    """By life: who wrote what. Conflicts, and what was gone already, are left out, since they depend on the speed."""
    found: dict[str, set[str]] = {}
    names: dict[str, str] = {}
    for line in audit.read_text().splitlines():
        entry = json.loads(line)
        ref, sent, code = entry["objectRef"], entry.get("requestObject", {}), entry["responseStatus"].get("code", 0)
        life = life_of(ref.get("namespace", ""), ref.get("name", "")) or names.get(ref.get("name", ""), "")
        if not life and entry["verb"] == "create" and isinstance(sent, dict):
            life = life_of(json.dumps(sent.get("spec", {})))  # a VolumeAttachment, whose name is a hash
            names[sent.get("metadata", {}).get("name", "")] = life
        who = entry["user"]["username"].rpartition(":")[2]
        if not life or code in (404, 409):
            continue
        form = "json" if isinstance(sent, list) else "apply" if "fieldManager=" in entry["requestURI"] else "merge"
        what = f"{entry['verb']} {ref['resource']}/{ref.get('subresource', '')}".strip("/")
        words = ("write", who, what, form if entry["verb"] == "patch" else "", str(code) if code >= 300 else "")
        found.setdefault(life, set()).add(" ".join(word for word in words if word))
    return {life: unknown(lines) for life, lines in found.items()}


def unknown(lines: set[str]) -> list[str]:
    """In order, without what is known to differ."""
    return sorted(line for line in lines if not any(pattern.search(line) for pattern in KNOWN))
