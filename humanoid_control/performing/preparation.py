"""Preparation of performances in a separate process: the robot must be controlled meanwhile.

Requests and answers are JSON lines. The process ends with its input.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from humanoid_control.errors import ClipError, HumanoidError, RobotError, first_line
from humanoid_control.performing.dynamic_motion import DynamicMotion
from humanoid_control.performing.feasible_motion import make_feasible
from humanoid_control.performing.settings import FeasibilitySettings
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.performing.transitions import placed_on, way_to
from humanoid_control.robots import Robot, load_robot

MOTION, WAY = "motion", "way"  # requests
SAY_EVERY = 0.1  # of the frames between progress lines


def read_motion(path: str | Path, robot: Robot) -> DynamicMotion:
    """Read a feasible motion of a robot.

    Raises:
        ClipError: if unreadable or of another robot.
    """
    motion = DynamicMotion.read(path)
    if motion.joint_names != tuple(robot.joint_names):
        raise ClipError(f"{path}: is a motion of {motion.robot}, not of {robot.name}")
    return motion


def check_performer(robot: Robot) -> None:
    """Check that a robot can perform by torques.

    Raises:
        RobotError: if floating base, legs, soles, masses or torque limits are missing.
    """
    if robot.base != "floating":
        raise RobotError(f"{robot.name} has a fixed base: a performing robot stands on its own feet")
    RigidSoles.of(robot)
    unknown = [n for n, known in zip(robot.joint_names, robot.effort_known, strict=True) if not known]
    if unknown:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        raise RobotError(
            f"{robot.name}: no torque limit is known for {', '.join(unknown[:3])}{more}: add it to the URDF "
            '(effort="..." of <limit>); torques are not commanded without a limit'
        )


class Preparer:
    """Handler of requests."""

    def __init__(self, robot: Robot, out: TextIO) -> None:
        """Set up; `out` receives progress lines."""
        self.robot, self._out = robot, out
        self.motion: DynamicMotion | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="humanoid_performing_")
        self._count = 0

    def close(self) -> None:
        """Remove all handed-over files."""
        self._folder.cleanup()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a request with `file` (None: no transition needed) or `error`."""
        try:
            made = self._make(request) if request["do"] == MOTION else self._way(np.array(request["q"]))
        except HumanoidError as e:
            return {"error": str(e)}
        except Exception as e:  # every request needs an answer
            return {"error": f"preparing the performance failed: {type(e).__name__}: {first_line(e)}"}
        if made is None:
            return {"file": None}
        self._count += 1
        path = Path(self._folder.name) / f"{self._count}.npz"
        made.write(path)
        return {"file": str(path)}

    def _make(self, request: dict[str, Any]) -> DynamicMotion:
        if request.get("motion"):
            self.motion = read_motion(request["motion"], self.robot)
            return self.motion
        from humanoid_control.mocap import find_body_points, load_body_points, load_clip
        from humanoid_control.retargeting import CLIP, WholeBodyTask

        self.say("reading the clip")
        c = request["clip"]
        reading = {key: c[key] for key in ("rate", "unit", "scale", "up")}
        if c["clean"]:
            body = load_body_points(c["name"], c["marker_set"], **reading)
        else:
            body = find_body_points(load_clip(c["name"], *reading.values()), c["marker_set"])
        task, said = WholeBodyTask.of(body, self.robot), [0.0]

        def show(k: int, _: Any) -> None:
            if k / len(task) >= said[0]:
                said[0] = k / len(task) + SAY_EVERY
                self.say(f"retargeting, {100 * k / len(task):.0f} %")

        trajectory = task.solve(None, show, CLIP).trajectory
        self.say(f"making {len(trajectory.positions) / trajectory.rate:.0f} s of motion feasible")
        self.motion = make_feasible(trajectory, self.robot, FeasibilitySettings(pace=request["pace"]))
        return self.motion

    def _way(self, q: np.ndarray) -> DynamicMotion | None:
        assert self.motion is not None
        self.say("planning the path to the first posture")
        soles = RigidSoles.of(self.robot)
        R, p = (x[0] for x in soles.poses(self.robot, q[None]))
        return way_to(self.robot, soles, q, placed_on(self.motion, R, p))

    def say(self, text: str) -> None:
        """Report progress."""
        print(json.dumps({"progress": text}), file=self._out, flush=True)


def serve(robot: str, requests: Iterable[str], out: TextIO) -> None:
    """Answer request lines until their end."""
    try:
        preparer = Preparer(load_robot(robot, "floating"), out)
    except HumanoidError as e:
        print(json.dumps({"error": str(e)}), file=out, flush=True)
        return
    try:
        for line in requests:
            print(json.dumps(preparer.answer(json.loads(line))), file=out, flush=True)
    finally:
        preparer.close()


if __name__ == "__main__":
    serve(sys.argv[1], sys.stdin, sys.stdout)
