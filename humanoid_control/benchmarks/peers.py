"""Peers: pink and mink with the same job, for the benchmarks of retargeting and of inverse kinematics.

The same robot, tasks, pairs and limits in their terms, one solver step a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from humanoid_control.benchmarks import ik_cases
from humanoid_control.benchmarks.ik_cases import (
    DT,
    SOLES,
    Motion,
    PeerTargets,
    SolverCase,
    chest_frame,
    mean,
)
from humanoid_control.collision.shapes import Box, Capsule, EllipticCapsule, LinkShape, Sphere
from humanoid_control.retargeting.scaling import POINTS
from humanoid_control.robots.robot import Robot

# -------- Retargeting

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
    columns = robot.ancestor_mask[joint][:, robot.iv + np.array([robot.joint_index(n) for n in joints])]
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


# -------- A tick of inverse kinematics

TICK_DAMPING = 1e-6
BARRIER_GAIN = 8.0  # [1/s] share of its distance that a pair may lose, as in WholeBodyIk
NEAREST = 10  # pairs that pink's barrier may pick, its own way to keep it affordable


def pink_cases(robot: Robot, motion: Motion) -> list[SolverCase]:
    """pink_all_pairs with a row for each pair, pink_nearest_10 with one for the nearest ten, pink_no_collision."""
    cases = [pink_case("pink_all_pairs", robot, motion, len(robot.pairs))]
    cases.append(pink_case(f"pink_nearest_{NEAREST}", robot, motion, min(NEAREST, len(robot.pairs))))
    return [*cases, pink_case("pink_no_collision", robot, motion, 0)]


def pink_case(name: str, robot: Robot, motion: Motion, pairs: int) -> SolverCase:
    """pink with a barrier for so many of the nearest pairs, or without."""
    import pink

    collision = {}
    if pairs:
        collision = {"collision_model": robot.geometry, "collision_data": robot.geometry.createData()}
    configuration = pink.Configuration(robot.model, robot.model.createData(), motion.q[0], **collision)
    targets = PeerTargets.of(robot, motion)
    soles = [pink.tasks.FrameTask(robot.model.frames[robot.point_frame(p)].name, 1.0, 1.0) for p in SOLES]
    chest = pink.tasks.FrameTask(robot.model.frames[chest_frame(robot)].name, 0.0, 1.0)
    center, posture = pink.tasks.ComTask(cost=1.0), pink.tasks.PostureTask(cost=ik_cases.POSTURE)
    tasks = [*soles, chest, center, posture]
    barriers = []
    if pairs:
        barriers = [
            pink.barriers.SelfCollisionBarrier(pairs, BARRIER_GAIN, safe_displacement_gain=0.0, d_min=ik_cases.MARGIN)
        ]

    def aim(k: int) -> None:
        for task, X in zip(soles, targets.soles[k], strict=True):
            task.set_target(X)
        chest.set_target(targets.chest[k])
        center.set_target(targets.center[k])
        posture.set_target(motion.q[k + 1])

    def tick(q: np.ndarray) -> bool:
        configuration.update(q)
        try:
            v[:] = pink.solve_ik(
                configuration,
                tasks,
                DT,
                SOLVER,
                TICK_DAMPING,
                barriers=barriers,
                safety_break=False,
            )
        except pink.exceptions.PinkError:
            return False
        configuration.integrate(v, DT)
        return True

    v = np.zeros(robot.nv)
    rows = 6 * len(soles) + 3 + 3 + robot.n
    watched = len(robot.pairs) if pairs else 0
    return SolverCase(name, aim, tick, lambda: None, rows, watched, pairs, velocity=lambda: v[robot.iv :])


def mink_cases(robot: Robot, motion: Motion) -> list[SolverCase]:
    """mink_all_pairs and mink_no_collision."""
    return [mink_case("mink_all_pairs", robot, motion, True), mink_case("mink_no_collision", robot, motion, False)]


def mink_case(name: str, robot: Robot, motion: Motion, collisions: bool | int) -> SolverCase:
    """mink on a MuJoCo model of the robot, with a free base."""
    import mink

    model, pairs = mujoco_model(robot, robot.joint_names, SOLES, floating=True)
    postures = _in_mujoco(robot, model, motion.q)
    configuration = mink.Configuration(model, postures[0])
    targets = PeerTargets.of(robot, motion)
    link = robot.model.frames[chest_frame(robot)].name
    soles = [mink.FrameTask(p, "site", position_cost=1.0, orientation_cost=1.0) for p in SOLES]
    chest = mink.FrameTask(link, "body", position_cost=0.0, orientation_cost=1.0)
    center, posture = mink.ComTask(cost=1.0), mink.PostureTask(model, cost=ik_cases.POSTURE)
    tasks = [*soles, chest, center, posture]
    velocity = dict(zip(robot.joint_names, robot.velocity, strict=True))
    limits = [mink.ConfigurationLimit(model), mink.VelocityLimit(model, velocity)]
    count = 0
    if collisions:
        avoidance = mink.CollisionAvoidanceLimit(
            model,
            pairs,
            gain=BARRIER_GAIN * DT,
            minimum_distance_from_collisions=ik_cases.MARGIN,
            collision_detection_distance=ik_cases.ACTIVATION,
        )
        count = avoidance.max_num_contacts
        limits.append(avoidance)

    def se3(X: pin.SE3) -> mink.SE3:
        return mink.SE3.from_matrix(X.homogeneous)

    def aim(k: int) -> None:
        for task, X in zip(soles, targets.soles[k], strict=True):
            task.set_target(se3(X))
        chest.set_target(se3(targets.chest[k]))
        center.set_target(targets.center[k])
        posture.set_target(postures[k + 1])
        aimed[0] = k

    def tick(q: np.ndarray) -> bool:
        configuration.update(postures[aimed[0]])  # the same posture as q, in MuJoCo's order
        try:
            v[:] = mink.solve_ik(configuration, tasks, DT, SOLVER, TICK_DAMPING, limits=limits)
        except mink.exceptions.MinkError:
            return False
        configuration.integrate(v, DT)
        return True

    aimed, v = [0], np.zeros(model.nv)
    columns = [int(model.joint(n).dofadr[0]) for n in robot.joint_names]
    rows = 6 * len(soles) + 3 + 3 + robot.n
    near = mean(motion.near) if collisions else 0.0
    return SolverCase(name, aim, tick, lambda: None, rows, count, near, velocity=lambda: v[columns])


def _in_mujoco(robot: Robot, model: pin.Model, postures: np.ndarray) -> np.ndarray:
    """Configurations (T, nq) in MuJoCo's order: the root link's pose with its quaternion w x y z, then its joints."""
    order = [int(model.joint(n).qposadr[0]) for n in robot.joint_names]
    root, out = robot.model.getFrameId(robot.root_link), np.zeros((len(postures), model.nq))
    for q, mapped in zip(postures, out, strict=True):
        pin.framesForwardKinematics(robot.model, robot.data, q)
        X = robot.data.oMf[root]
        turn = pin.Quaternion(X.rotation)
        mapped[:7] = [*X.translation, turn.w, turn.x, turn.y, turn.z]
        mapped[order] = q[robot.iq :]
    return out
