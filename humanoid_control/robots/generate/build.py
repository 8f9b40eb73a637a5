"""Files generated from a robot's source file: URDF, robot file, drives, tendons, documentation page.

Robots without tendons get virtual ones for their arms, to estimate joint angles: ten muscles across shoulder and elbow,
and antagonistic pairs at girdle, forearm and wrist. No number is of a real robot.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import yaml

from humanoid_control.collision.shapes import shape_to_row
from humanoid_control.paths import share_dir
from humanoid_control.robots.description.robot_file import SCHEMA as ROBOT_FILE_SCHEMA
from humanoid_control.robots.drives import SCHEMA as DRIVE_FILE_SCHEMA
from humanoid_control.robots.generate.source import (
    ROBOT,
    RobotSource,
    count_provenance,
    read_source,
    source_dir,
    source_names,
)
from humanoid_control.robots.generate.urdf import urdf_text
from humanoid_control.robots.tendons import SCHEMA as TENDON_FILE_SCHEMA

UPPER_ARM = 0.30  # [m] that the coordinates are for
SCALES = (0.85, 1.05)  # limits of the scale for other arms
MIN_TENSION, MAX_TENSION = 10, 300  # [N] assumed, like all numbers of this file

# Name: points on the part that carries the shoulder (s), on the upper arm (h), and on the forearm (f): s and h from
# the shoulder, f from the elbow. What follows the elbow is e: on the upper arm, from the elbow.
MUSCLES: dict[str, list[tuple[str, float, float, float]]] = {
    "deltoid_front": [("s", 0.035, 0, 0.035), ("h", 0.02, 0.02, -0.12)],
    "deltoid_middle": [("s", 0, 0.045, 0.045), ("h", 0, 0.025, -0.12)],
    "deltoid_rear": [("s", -0.04, 0, 0.035), ("h", -0.02, 0.02, -0.12)],
    "pectoralis": [("s", 0.05, -0.16, -0.06), ("h", 0.022, 0, -0.06)],
    "latissimus": [("s", -0.06, -0.16, -0.22), ("h", 0.018, -0.012, -0.05)],
    "infraspinatus": [("s", -0.06, -0.09, -0.03), ("h", -0.035, 0.02, -0.005)],
    "subscapularis": [("s", -0.02, -0.10, -0.05), ("h", 0.04, -0.010, -0.005)],
    "teres_major": [("s", -0.05, -0.09, -0.12), ("h", 0.01, -0.035, -0.03)],
    "supraspinatus": [("s", -0.02, -0.08, 0.05), ("h", 0.01, 0.035, 0.02)],
    "biceps": [("s", 0.03, -0.005, 0.02), ("h", 0.032, 0, -0.03), ("f", 0.025, 0, -0.045)],
    "triceps": [("s", -0.035, -0.01, -0.02), ("e", -0.022, 0, 0.08), ("f", -0.025, 0, 0.012)],
    "brachialis": [("e", 0.022, 0, 0.12), ("f", 0.018, 0, -0.03)],
}
TRUNK = ("pectoralis",)  # attached to the trunk if there is a girdle
AHEAD = math.radians(35)  # of a pair's points before and behind the joint
GIRDLE_RADII, FOREARM_RADII = (0.06, 0.05), (0.04, 0.035)  # [m] of a pair's points on the parent and on the child
SHIFT = 0.03  # [m] between them along the joint's axis, where that is along the limb


def virtual_tendons(source: RobotSource) -> dict[str, Any]:
    """Return `tendons` and `groups` of a tendon file; empty without a suitable arm."""
    names = {j["name"] for j in source.joints}
    if not {"l_shoulder_flexion", "l_shoulder_abduction", "l_elbow_flexion"} <= names:
        return {}
    return _Arm(source).rows()


class _Arm:
    """Left arm of a robot at zero angles."""

    def __init__(self, source: RobotSource) -> None:
        self.joints = {j["name"]: j for j in source.joints}
        self.poses = {source.root_link: pin.SE3.Identity()}
        for j in source.joints:
            X = pin.SE3(pin.rpy.rpyToMatrix(*map(float, j["rpy"])), np.array(j["xyz"], dtype=float))
            self.poses[j["child"]] = self.poses[j["parent"]] * X
        arm = [n for n in self.joints if n.startswith("l_")]
        self.girdle = [n for n in arm if n.startswith("l_girdle")]
        self.shoulder = [n for n in arm if n.startswith(("l_shoulder", "l_elbow"))]
        self.distal = [n for n in arm if n.startswith(("l_forearm", "l_wrist"))]
        elbow = self.joints["l_elbow_flexion"]
        self.carrier = self.joints["l_shoulder_flexion"]["parent"]
        self.trunk = self.joints[self.girdle[0]]["parent"] if self.girdle else self.carrier
        self.upper_arm, self.forearm = elbow["parent"], elbow["child"]
        self.gh, self.elbow = self.poses[self.upper_arm].translation, self.poses[self.forearm].translation
        self.scale = float(np.clip(np.linalg.norm(self.elbow - self.gh) / UPPER_ARM, *SCALES))

    def rows(self) -> dict[str, Any]:
        tendons = [self._row(f"l_{name}", "l_shoulder", self._muscle(name)) for name in MUSCLES]
        out = {"l_shoulder": {"own": self.shoulder, "borrow": self.girdle}}
        for group, joints, radii in (
            ("l_girdle", self.girdle, GIRDLE_RADII),
            ("l_forearm", self.distal, FOREARM_RADII),
        ):
            if joints:
                out[group] = {"own": joints, "borrow": []}
            for joint in joints:
                for sign, role in ((-1, "agonist"), (1, "antagonist")):
                    tendons.append(self._row(f"{joint}_{role}", group, self._pair(joint, sign, radii)))
        right = {"r" + g[1:]: {k: ["r" + n[1:] for n in v] for k, v in row.items()} for g, row in out.items()}
        return {"tendons": tendons, "groups": {**out, **right}}

    def _row(self, name: str, group: str, points: list[list[Any]]) -> dict[str, Any]:
        tension = {"min_tension": MIN_TENSION, "max_tension": MAX_TENSION}
        return {"name": name, "group": group, "mirror": "y", "points": points, **tension}

    def _muscle(self, name: str) -> list[list[Any]]:
        link = {"s": self.trunk if name in TRUNK else self.carrier, "h": self.upper_arm, "e": self.upper_arm}
        link["f"] = self.forearm
        centre = {"s": self.gh, "h": self.gh, "e": self.elbow, "f": self.elbow}
        return [self._point(link[part], centre[part] + self.scale * np.array(xyz)) for part, *xyz in MUSCLES[name]]

    def _pair(self, joint: str, sign: int, radii: tuple[float, float]) -> list[list[Any]]:
        """Return one of two tendons over a joint; `sign` -1: shortens as the angle grows."""
        j = self.joints[joint]
        pose = self.poses[j["child"]]
        a = pose.rotation @ np.array(j["axis"], dtype=float)
        limb = np.array([0.0, 1.0, 0.0]) if joint in self.girdle else np.array([0.0, 0.0, -1.0])
        along = float(a @ limb)
        w = limb - along * a if abs(along) < 0.9 else np.cross(a, [1.0, 0.0, 0.0])
        w /= np.linalg.norm(w)
        u = np.cross(w, a)
        shift = SHIFT * np.sign(along) * a if abs(along) >= 0.9 else np.zeros(3)
        middle = math.radians((float(j["lower"]) + float(j["upper"])) / 2)
        back = pin.AngleAxis(-middle, a).matrix()
        before = radii[0] * (sign * math.cos(AHEAD) * u - math.sin(AHEAD) * w) - shift / 2
        behind = back @ (radii[1] * (sign * math.cos(AHEAD) * u + math.sin(AHEAD) * w) + shift / 2)
        at = pose.translation
        return [self._point(j["parent"], at + before), self._point(j["child"], at + behind)]

    def _point(self, link: str, x: np.ndarray) -> list[Any]:
        """Return [link, x, y, z] of a point, rounded to 0.1 mm."""
        return [link, *(round(float(v), 4) + 0.0 for v in self.poses[link].actInv(x))]


# -------- The page about the robots

INTRO = """# The robots

Generated by `humanoid robots build` from `urdf/source/*.yaml`; edit those files.

All joints at zero: upright, legs straight, arms hanging, palms toward the trunk. x forward, y left, z up; a positive
angle means the same on every robot and on both sides (flexion forward and up, abduction outward, rotation inward).
Every number carries its provenance. **Published** values come from theses, papers and public model files;
**recalled** ones from memory of a paper, not verified; **estimated** ones by the rule named in the source file. Do not
quote recalled and estimated numbers as data of the real robot.
"""


def docs_page(sources: list[RobotSource]) -> str:
    """Return the page: a summary row per robot, then joints and notes; study models last."""
    sources = sorted(sources, key=lambda s: s.kind != ROBOT)
    head = "| robot | name | height m | mass kg | joints | imitation joints | published | recalled | estimated |"
    rows = [head, "|" + "---|" * 9]
    for s in sources:
        p = s.provenance
        rows.append(
            f"| {_title(s)} | `{s.name}` | {s.height:g} | {s.mass:.1f} | {len(s.joints)} | {len(s.imitation_joints)} "
            f"| {p['published']} | {p['recalled']} | {p['estimated']} |"
        )
    return "\n".join([INTRO, *rows, *(_section(s) for s in sources)]) + "\n"


def _title(s: RobotSource) -> str:
    return s.title if s.kind == ROBOT else f"{s.title} ({s.kind})"


def _section(s: RobotSource) -> str:
    lines = [f"\n## {_title(s)}\n", "| item | value | provenance |", "|---|---|---|"]
    lines += [f"| {k} | {v['value']} | {v['prov']} |" for k, v in s.identity.items()]
    lines += [
        "",
        "| joint | parent | child | range deg | velocity rad/s | effort N m | limits from |",
        "|" + "---|" * 7,
    ]
    lines += [_joint_row(j) for j in s.joints if not j["name"].startswith("r_")]
    lines += ["", "Rows that start with `l_` exist mirrored as `r_`.", ""]
    if s.not_modelled:
        lines += ["Not modelled: " + "; ".join(s.not_modelled) + ".", ""]
    lines += [f"* {n}" for n in s.notes]
    lines += ["", "Where the numbers come from:", ""]
    lines += [f"* `{tag}`: {text}" for tag, text in sorted(s.references.items())]
    return "\n".join(lines)


def _joint_row(j: dict[str, Any]) -> str:
    star = " (optional)" if j["optional"] else ""
    return (
        f"| {j['name']}{star} | {j['parent']} | {j['child']} | {j['lower']:g} .. {j['upper']:g} "
        f"| {j['velocity']:g} | {j['effort']:g} | {j['prov']['limits']} |"
    )


# -------- Generated files

ESTIMATED = "estimated, by the rule of humanoid_control/robots/generate/build.py; the robot has no tendons"


def robot_file(source: RobotSource) -> dict[str, Any]:
    """Return the robot file's content."""
    q = {name: round(math.radians(deg), 9) for name, deg in source.posture["q_deg"].items()}
    return {
        "schema": ROBOT_FILE_SCHEMA,
        "name": source.name,
        "title": source.title,
        "height": source.height,
        "base": source.base,
        "anchor": source.anchor,
        "root_height": {"zero": source.posture["root_height_zero"], "neutral": source.posture["root_height_neutral"]},
        "postures": {"neutral": q},
        "imitation_joints": source.imitation_joints,
        "optional_joints": [j["name"] for j in source.joints if j["optional"]],
        "points": {p["name"]: {"link": p["link"], "xyz": p["xyz"]} for p in source.points},
        "feet": [{k: c[k] for k in ("name", "link", "x_min", "x_max", "y_min", "y_max", "z")} for c in source.contacts],
        "collision": [shape_to_row(item) for item in source.collision],
        "disabled_pairs": [list(p) for p in source.disabled_pairs],
        "provenance": source.provenance,
    }


def drive_file(source: RobotSource) -> dict[str, Any]:
    """Return motors and drives of the source file without provenance."""
    plain = {k: [{x: v for x, v in row.items() if x != "prov"} for row in rows] for k, rows in source.drives.items()}
    return {"schema": DRIVE_FILE_SCHEMA, "robot": source.name, **plain}


def tendon_file(source: RobotSource) -> dict[str, Any]:
    """Return tendons of the source file, or virtual ones, or nothing."""
    head = {"schema": TENDON_FILE_SCHEMA, "robot": source.name}
    if source.tendons:
        rows = [{k: v for k, v in row.items() if k != "prov"} for row in source.tendons]
        kinds = count_provenance(source.tendons)
        provenance = ", ".join(f"{n} values {kind}" for kind, n in kinds.items() if n) + "; see the source file"
        return {**head, "provenance": provenance, "tendons": rows, "groups": source.tendon_groups}
    virtual = virtual_tendons(source) if source.kind == ROBOT else {}
    return {**head, "provenance": ESTIMATED, **virtual} if virtual else {}


def generated_files() -> dict[Path, str]:
    """Return all generated files: path below the share directory -> text."""
    sources = [read_source(source_dir() / f"{name}.yaml") for name in source_names()]
    out: dict[Path, str] = {}
    for source in sources:
        out[Path("urdf") / f"{source.name}.urdf"] = urdf_text(source)
        head = f"# Generated by `humanoid robots build` from urdf/source/{source.name}.yaml; edit that file.\n"
        files = {f"{source.name}.yaml": robot_file(source)}
        if source.drives:
            files[f"{source.name}.drives.yaml"] = drive_file(source)
        if tendons := tendon_file(source):
            files[f"{source.name}.tendons.yaml"] = tendons
        for name, content in files.items():
            body = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=140)
            out[Path("urdf") / name] = head + body
    out[Path("docs") / "robots.md"] = docs_page(sources)
    return out


def build() -> list[Path]:
    """Write changed generated files; return their paths."""
    written = []
    for relative, text in generated_files().items():
        path = share_dir() / relative
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            written.append(path)
    return written
