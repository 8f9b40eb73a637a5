"""Initial posture of a robot on uneven ground."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.ik.whole_body_ik import WholeBodyIk
from humanoid_control.robots.robot import Robot
from humanoid_control.simulation.engine import Engine
from humanoid_control.walking.balance_tasks import BalanceTasks, walking_limits, walking_settings
from humanoid_control.walking.feet import Feet, LegReach
from humanoid_control.walking.ground.terrain import HeightMap, Terrain
from humanoid_control.walking.plane_geometry import planar

ROUNDS = 4  # iterations that place the root link
SAMPLES, DT = 60, 0.04  # of the motion into the posture
MISS = 0.005  # [m] accepted distance of a sole from the ground
CROUCH = 0.03  # [m] knee bend, to reach the lower foot


def standing_configuration(robot: Robot, heights: HeightMap) -> np.ndarray:
    """Return a configuration (nq,) that stands upright on the ground, as wide as in the neutral posture.

    The root link keeps its neutral (x, y), where terrain maps have their origin.

    Raises:
        RobotError: if the robot has no two feet.
        ConfigError: if a foothold is bad, or the legs do not reach it.
    """
    feet, begin = Feet(robot), robot.q("neutral")
    terrain, data = Terrain(heights, feet.outlines), robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, begin)
    neutral = [planar(data.oMf[f]) for f in feet.frames]
    q, moved = begin, np.zeros(3)
    for _ in range(ROUNDS):
        places = [terrain.foothold(pin.SE3(X.rotation, X.translation - moved), k) for k, X in enumerate(neutral)]
        for side, place in zip(("left", "right"), places, strict=True):
            if place.why:
                raise ConfigError(f"{robot.name} cannot stand at its start: {place.why} ({side})")
        q = _standing_on(robot, feet, [p.X for p in places])
        moved[:2] += q[:2] - begin[:2]
    return q


def _standing_on(robot: Robot, feet: Feet, soles: Sequence[pin.SE3]) -> np.ndarray:
    q, data = robot.q("neutral"), robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    offs = [X.translation - data.oMf[f].translation for f, X in zip(feet.frames, soles, strict=True)]
    q[:3] += np.mean(offs, axis=0)
    points = [X.act(np.array([*m, 0.0])) for X, m in zip(soles, feet.middle, strict=True)]
    center = 0.5 * (points[0] + points[1]) + [0.0, 0.0, LegReach(robot, feet, CROUCH).height(0.0)]
    ik = WholeBodyIk(robot, walking_settings(DT), limits=walking_limits(robot))
    tasks = BalanceTasks(robot, feet, DT)
    for _ in range(SAMPLES):
        tasks.set(soles, center, np.eye(3), None)
        q = ik.step(q, tasks.tasks, DT).q
    pin.framesForwardKinematics(robot.model, data, q)
    misses = [data.oMf[f].translation - X.translation for f, X in zip(feet.frames, soles, strict=True)]
    off = float(np.linalg.norm(misses, axis=1).max())
    if off > MISS:
        raise ConfigError(f"{robot.name} cannot stand at its start: its legs miss the ground by {1e3 * off:.0f} mm")
    return q


def stand_on_ground(engine: Engine) -> None:
    """Put the robot of an engine at rest on its ground; errors as `standing_configuration`."""
    ground, robot = engine.settings.ground, engine.robot
    if ground.as_plane() == (0.0, 0.0, 0.0) or robot.base != "floating" or len(robot.feet) < 2:
        return
    q = standing_configuration(robot, ground)
    engine.set_state(joints=q[robot.iq :], X_world_root=pin.XYZQUATToSE3(q[:7]))
