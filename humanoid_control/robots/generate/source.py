"""Robot data as in `urdf/source/<robot>.yaml`, with provenance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from humanoid_control.collision.shapes import LinkShape, shape_from_row
from humanoid_control.errors import RobotError
from humanoid_control.files import schema_file
from humanoid_control.paths import share_dir

SCHEMA = "humanoid_source/1"
ROBOT, STUDY_MODEL, REFERENCE_MODEL = "robot", "study model", "reference model"
KINDS = (ROBOT, STUDY_MODEL, REFERENCE_MODEL)


@dataclass(frozen=True)
class RobotSource:
    """Data of one robot in its source file; angles of limits and postures in degrees.

    `kind`: 'robot'; 'study model' or 'reference model' if never built.
    """

    kind: str
    name: str
    title: str
    root_link: str
    base: str
    anchor: str
    identity: dict[str, Any]
    references: dict[str, str]
    joints: list[dict[str, Any]]
    links: list[dict[str, Any]]
    collision: list[LinkShape]
    disabled_pairs: list[tuple[str, str]]
    contacts: list[dict[str, Any]]
    points: list[dict[str, Any]]
    posture: dict[str, Any]
    imitation_joints: list[str]
    visual: list[dict[str, Any]]
    colors: dict[str, list[float]]
    derived: dict[str, Any]
    notes: list[str]
    not_modelled: list[str]
    drives: dict[str, Any]
    tendons: list[dict[str, Any]]
    tendon_groups: dict[str, Any]
    provenance: dict[str, int]

    @property
    def height(self) -> float:
        """Published or recalled height [m]."""
        return float(str(self.identity["height"]["value"]).split()[0])

    @property
    def mass(self) -> float:
        """Sum of the link masses [kg]."""
        return float(sum(link["mass"] for link in self.links))


def source_dir() -> Path:
    """Return the directory of the source files."""
    return share_dir() / "urdf" / "source"


def source_names() -> list[str]:
    """Return the sorted names of robots with a source file."""
    return sorted(p.stem for p in source_dir().glob("*.yaml"))


def read_source(path: Path) -> RobotSource:
    """Read one source file.

    Raises:
        RobotError: if it is invalid, or if a provenance tag is unexplained.
    """
    d = schema_file(path, SCHEMA, "robot source")
    try:
        source = RobotSource(
            kind=d.get("kind", ROBOT),
            name=d["name"],
            title=d["title"],
            root_link=d["root_link"],
            base=d["base"],
            anchor=d["anchor"],
            identity=d["identity"],
            references=d["sources"],
            joints=d["joints"],
            links=d["links"],
            collision=[shape_from_row(row, str(path)) for row in d["collision"]],
            disabled_pairs=[(a, b) for a, b in d["collision_disabled_pairs"]],
            contacts=d["contact_rectangles"],
            points=d["points"],
            posture=d["neutral_posture"],
            imitation_joints=d["imitation_joints"],
            visual=d.get("visual", []),
            colors=d.get("colors", {}),
            derived=d.get("derived", {}),
            notes=d.get("notes", []),
            not_modelled=d.get("not_modelled", []),
            drives=d.get("drives", {}),
            tendons=d.get("tendons", []),
            tendon_groups=d.get("tendon_groups", {}),
            provenance=count_provenance({k: v for k, v in d.items() if k not in ("sources", "visual")}),
        )
    except KeyError as e:
        raise RobotError(f"{path}: section {e} is missing") from None
    if source.kind not in KINDS:
        known = " or ".join(f"'{k}'" for k in KINDS)
        raise RobotError(f"{path}: kind must be {known}, got '{source.kind}'")
    unknown = sorted(t for t in tags_of(d) if not any(t.startswith(key) for key in source.references))
    if unknown:
        raise RobotError(f"{path}: provenance {', '.join(unknown)} is not explained under 'sources'")
    return source


def tags_of(node: Any) -> list[str]:
    """Return all provenance tags below a node, one per tagged value."""
    if isinstance(node, list):
        return [t for item in node for t in tags_of(item)]
    if not isinstance(node, dict):
        return []
    out: list[str] = []
    for key, value in node.items():
        if key == "prov":
            out += list(value.values()) if isinstance(value, dict) else [value]
        else:
            out += tags_of(value)
    return out


def count_provenance(node: Any) -> dict[str, int]:
    """Count tagged values: published, recalled (unverified), estimated.

    A value with two tags counts as the weaker: estimated, recalled, published.
    """
    kinds = Counter(
        "estimated" if "estimated" in t else "recalled" if "memory" in t else "published" for t in tags_of(node)
    )
    return {k: kinds[k] for k in ("published", "recalled", "estimated")}
