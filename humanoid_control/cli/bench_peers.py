"""The same job given to mink and to pink: the same points, posture, limits and pairs, one solver step a frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from humanoid_control.imitation import POINTS
from humanoid_control.robots import Robot
from humanoid_control.robots.shapes import Box, Capsule, EllipticCapsule, LinkShape, Sphere

SOLVER, DAMPING, POSTURE, MARGIN, ACTIVATION = "daqp", 1e-4, 1e-2, 0.01, 0.1
PINK_PAIRS = 10  # of the nearest, pink's own way to keep its barrier affordable


def pink_stepper(robot: Robot, joints: np.ndarray) -> Callable[[np.ndarray, float], np.ndarray]:
    """A function (targets (7, 3), dt) -> joints (n,) that lets pink take a step, from the given posture on.

    pink gets the model with only the imitation joints, and all their pairs, of which it picks the nearest.
    """
    import pink

    moving = np.sort(robot.imitation_joints)  # the order that pinocchio keeps
    held = [j for j in range(1, robot.model.njoints) if j - 1 not in moving]
    model, (geometry,) = pin.buildReducedModel(robot.model, [robot.geometry], held, robot.q("neutral"))
    configuration = pink.Configuration(
        model,
        model.createData(),
        joints[moving],
        collision_model=geometry,
        collision_data=geometry.createData(),
    )
    labels = [robot.model.frames[robot.point_frame(p)].name for p in POINTS]
    points = [pink.tasks.FrameTask(label, position_cost=1.0, orientation_cost=0.0) for label in labels]
    posture = pink.tasks.PostureTask(cost=POSTURE)
    posture.set_target(robot.q("neutral")[moving])
    pairs = min(PINK_PAIRS, len(geometry.collisionPairs))
    barrier = pink.barriers.SelfCollisionBarrier(pairs, gain=20.0, safe_displacement_gain=0.0, d_min=MARGIN)
    out = joints.copy()

    def step(targets: np.ndarray, dt: float) -> np.ndarray:
        for task, p in zip(points, targets, strict=True):
            task.set_target(pin.SE3(np.eye(3), p))
        try:
            v = pink.solve_ik(
                configuration, [*points, posture], dt, SOLVER, DAMPING, barriers=[barrier], safety_break=False
            )
        except pink.exceptions.PinkError:  # no solution: the robot stays where it is
            v = np.zeros(model.nv)
        configuration.integrate_inplace(v, dt)
        out[moving] = configuration.q
        return out.copy()

    return step


def mink_stepper(robot: Robot, joints: np.ndarray) -> Callable[[np.ndarray, float], np.ndarray]:
    """The same for mink, on a MuJoCo model made from the robot's URDF with only the imitation joints.

    MuJoCo has no elliptic capsules: they become capsules of the mean radius.
    """
    import mink

    moving = [robot.joint_names[j] for j in robot.imitation_joints]
    model, pairs = mujoco_model(robot, moving, POINTS)
    configuration = mink.Configuration(model)
    order = [model.joint(robot.joint_names[j]).qposadr[0] for j in robot.imitation_joints]
    q = np.zeros(model.nq)
    q[order] = robot.q("neutral")[robot.imitation_joints]
    posture = mink.PostureTask(model, cost=POSTURE)
    posture.set_target(q.copy())
    q[order] = joints[robot.imitation_joints]
    configuration.update(q)
    points = [mink.FrameTask(p, "site", position_cost=1.0, orientation_cost=0.0) for p in POINTS]
    velocity = {robot.joint_names[j]: robot.velocity[j] for j in robot.imitation_joints}
    limits = [
        mink.ConfigurationLimit(model),
        mink.VelocityLimit(model, velocity),
        mink.CollisionAvoidanceLimit(
            model, pairs, minimum_distance_from_collisions=MARGIN, collision_detection_distance=ACTIVATION
        ),
    ]
    out = joints.copy()

    def step(targets: np.ndarray, dt: float) -> np.ndarray:
        for task, p in zip(points, targets, strict=True):
            task.set_target(mink.SE3.from_translation(p))
        try:
            v = mink.solve_ik(configuration, [*points, posture], dt, SOLVER, DAMPING, limits=limits)
        except mink.exceptions.MinkError:
            v = np.zeros(model.nv)
        configuration.integrate_inplace(v, dt)
        out[robot.imitation_joints] = configuration.q[order]
        return out.copy()

    return step


def mujoco_model(
    robot: Robot, joints: Sequence[str], points: Sequence[str], floating: bool = False
) -> tuple[Any, list[tuple[list[str], list[str]]]]:
    """The robot in MuJoCo: its tree with some joints, points as sites, shapes as geoms, and the pairs they can close.

    Args:
        robot: which.
        joints: that move; all others are held at zero.
        points: that become sites.
        floating: whether the root link is free; else it stays where it is in the neutral posture.
    """
    import mujoco

    tree = ElementTree.fromstring(robot.urdf.encode())
    for part in tree.iter("link"):
        for shown in [child for child in part if child.tag in ("visual", "collision")]:
            part.remove(shown)  # the robot's own shapes take their place
    compiler = ElementTree.SubElement(ElementTree.SubElement(tree, "mujoco"), "compiler")
    compiler.set("fusestatic", "false")
    spec = mujoco.MjSpec.from_string(ElementTree.tostring(tree, encoding="unicode"))
    for joint in list(spec.joints):
        if joint.name not in joints:
            spec.delete(joint)
    base = spec.body(robot.root_link)
    if base is not None:
        base.pos, base.quat = robot.X_world_root.translation, [1.0, 0.0, 0.0, 0.0]
        if floating:
            base.add_freejoint()
    for name in points:
        link, xyz = robot.file.points[name]
        spec.body(link).add_site(name=name, pos=xyz)
    for item in robot.shapes:
        _add_geom(spec.body(item.link), item)
    names = [s.name for s in robot.shapes]
    model = spec.compile()
    joint = [robot.model.frames[robot.model.getFrameId(s.link)].parentJoint for s in robot.shapes]
    columns = robot.support[joint][:, robot.iv + np.array([robot.joint_index(n) for n in joints])]
    apart = [(i, j) for i, j in robot.pairs if (columns[i] != columns[j]).any()]
    return model, [([names[i]], [names[j]]) for i, j in apart]


def _add_geom(body: Any, item: LinkShape) -> None:
    import mujoco

    shape, kind = item.shape, mujoco.mjtGeom
    if isinstance(shape, Sphere):
        body.add_geom(name=item.name, type=kind.mjGEOM_SPHERE, pos=shape.center, size=[shape.radius, 0, 0])
    elif isinstance(shape, Capsule):
        body.add_geom(
            name=item.name, type=kind.mjGEOM_CAPSULE, fromto=[*shape.p0, *shape.p1], size=[shape.radius, 0, 0]
        )
    elif isinstance(shape, EllipticCapsule):
        x, y, z = shape.top_center
        ends = [x, y, z, x, y, z - max(shape.l, 1e-3)]
        body.add_geom(name=item.name, type=kind.mjGEOM_CAPSULE, fromto=ends, size=[(shape.a + shape.b) / 2, 0, 0])
    elif isinstance(shape, Box):
        quat = pin.Quaternion(pin.rpy.rpyToMatrix(*shape.rpy))
        body.add_geom(
            name=item.name,
            type=kind.mjGEOM_BOX,
            pos=shape.center,
            size=[s / 2 for s in shape.size],
            quat=[quat.w, quat.x, quat.y, quat.z],
        )
    else:
        sphere, radius = shape.bounding_sphere()
        body.add_geom(name=item.name, type=kind.mjGEOM_SPHERE, pos=sphere, size=[radius, 0, 0])
