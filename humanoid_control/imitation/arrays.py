"""A robot's imitation problem as plain arrays, for the compiled solver."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.collision.shape_arrays import ShapeArrays
from humanoid_control.imitation.scaling import POINTS
from humanoid_control.robots import Robot
from humanoid_control.robots.geometry import shape_arrays
from humanoid_control.robots.moving_tree import MovingTree


class Problem(NamedTuple):
    """What does not change from frame to frame. D coordinates, S shapes, P pairs.

    Attributes:
        tree: the moving joints.
        point_body, point: (K,), (K, 3) the tracked points: body of the tree, position in it [m]. The seven of POINTS,
            and where hands are followed one more a side: a lever beside the wrist, which turns with the forearm.
        lower, upper: (D,) [rad]; velocity: (D,) [rad/s]; rest: (D,) preferred posture [rad].
        kinds, sizes, radii: of ShapeArrays; shape_body, shape_R, shape_p: body of each shape and its pose there.
        pairs: (P, 2) shapes that must not touch and that the moving joints move against each other.
    """

    tree: MovingTree
    point_body: np.ndarray
    point: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    rest: np.ndarray
    kinds: np.ndarray
    sizes: np.ndarray
    radii: np.ndarray
    shape_body: np.ndarray
    shape_R: np.ndarray
    shape_p: np.ndarray
    pairs: np.ndarray


class Scratch(NamedTuple):
    """Memory that the kernels write to: body and shape poses, points, near pairs."""

    R: np.ndarray
    p: np.ndarray
    axes: np.ndarray
    points: np.ndarray
    shape_R: np.ndarray
    shape_p: np.ndarray
    near: np.ndarray
    distance: np.ndarray
    normal: np.ndarray
    x1: np.ndarray
    x2: np.ndarray


def problem_of(robot: Robot, lever: float = 0.0) -> Problem:
    """The arrays of a robot with a fixed base, whose imitation joints move.

    Args:
        robot: that has the points of POINTS.
        lever: length of the levers at the wrists [m]; 0: none.
    """
    moving = robot.imitation_joints
    tree, body = MovingTree.of(robot, moving)
    bodies, points = [], []
    for name in POINTS:
        frame = robot.model.frames[robot.point_frame(name)]
        b, X = body.place(frame.parentJoint, frame.placement)
        bodies.append(b)
        points.append(X.translation)
    for joint, place in forearm_levers(robot, lever) if lever > 0 else ():
        b, X = body.place(joint, pin.SE3(np.eye(3), place))
        bodies.append(b)
        points.append(X.translation)
    shapes = shape_arrays(robot.model, robot.shapes)
    placed = [body.place(int(j), pin.SE3(R, p)) for j, R, p in zip(shapes.joint, shapes.R, shapes.p, strict=True)]
    shape_body = np.array([b for b, _ in placed], dtype=np.int64)
    apart = (tree.moves[shape_body[robot.pairs[:, 0]]] != tree.moves[shape_body[robot.pairs[:, 1]]]).any(axis=1)
    return Problem(
        tree,
        np.array(bodies, dtype=np.int64),
        np.array(points),
        robot.lower[moving].copy(),
        robot.upper[moving].copy(),
        robot.velocity[moving].copy(),
        robot.postures["neutral"][moving].copy(),
        *_sizes(shapes),
        shape_body,
        np.array([X.rotation for _, X in placed]).reshape(-1, 3, 3),
        np.array([X.translation for _, X in placed]).reshape(-1, 3),
        np.ascontiguousarray(robot.pairs[apart], dtype=np.int64),
    )


def forearm_levers(robot: Robot, lever: float) -> list[tuple[int, np.ndarray]]:
    """Left and right: the joint that turns the forearm about its axis, and where in its frame the lever ends.

    With the arm hanging and the palm toward the trunk (zero) the lever points forward, where the thumb is. Empty where
    a robot cannot turn its forearms.
    """
    ends = []
    for side in "lr":
        name = robot.joint_for(f"{side}_forearm_pronation")
        if name is None or robot.index[name] not in robot.imitation_joints:
            return []
        joint = robot.model.getJointId(name)
        wrist = robot.point_positions(robot.q("zero"), [f"{side}_wrist"])[0]
        pin.forwardKinematics(robot.model, robot.data, robot.q("zero"))
        ends.append((joint, robot.data.oMi[joint].actInv(wrist + np.array([lever, 0.0, 0.0]))))
    return ends


def _sizes(shapes: ShapeArrays) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return shapes.kinds, shapes.sizes, shapes.radii


def scratch_for(problem: Problem) -> Scratch:
    """Memory for the kernels, for one problem and one thread."""
    m, s, p = len(problem.tree.parent), len(problem.kinds), len(problem.pairs)
    return Scratch(
        np.empty((m + 1, 3, 3)),
        np.empty((m + 1, 3)),
        np.empty((m, 3)),
        np.empty((len(problem.point), 3)),
        np.empty((s, 3, 3)),
        np.empty((s, 3)),
        np.empty(p, dtype=np.int64),
        np.empty(p),
        np.empty((p, 3)),
        np.empty((p, 3)),
        np.empty((p, 3)),
    )
