"""Virtual tendons for the arms of robots that have none: designed by one rule, to estimate joint angles with.

Ten muscles cross the shoulder and the elbow, laid out as in man around the centre of the shoulder (points relative to
it at zero, x forward, y to the left, z up, for an upper arm of 0.30 m). Every joint of the girdle, the forearm and the
wrist has an antagonistic pair, which runs 35 degrees before and behind the joint and is widest in the middle of its
range. On a robot with a girdle the pectoralis comes from the trunk and crosses the girdle too. The right arm is the
mirror image. None of these numbers is of the real robot.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.robots.generate.source import RobotSource

UPPER_ARM = 0.30  # [m] that the coordinates are for
SCALES = (0.85, 1.05)  # how much smaller and larger an arm they are fitted to
MIN_TENSION, MAX_TENSION = 10, 300  # [N] chosen here, as all numbers of this file

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
TRUNK = ("pectoralis",)  # from the trunk where there is a girdle
AHEAD = math.radians(35)  # of a pair's points before and behind the joint
GIRDLE_RADII, FOREARM_RADII = (0.06, 0.05), (0.04, 0.035)  # [m] of a pair's points on the parent and on the child
SHIFT = 0.03  # [m] between them along the joint's axis, where that is along the limb


def virtual_tendons(source: RobotSource) -> dict[str, Any]:
    """Rows `tendons` and `groups` of a tendon file; none where the robot has no such arm."""
    names = {j["name"] for j in source.joints}
    if not {"l_shoulder_flexion", "l_shoulder_abduction", "l_elbow_flexion"} <= names:
        return {}
    return _Arm(source).rows()


class _Arm:
    """The left arm of a robot at zero."""

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
        """One of the two tendons over a joint: `sign` -1 for the one that gets shorter when the angle grows."""
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
        """[link, x, y, z] of a point at zero, rounded to a tenth of a millimetre."""
        return [link, *(round(float(v), 4) + 0.0 for v in self.poses[link].actInv(x))]
