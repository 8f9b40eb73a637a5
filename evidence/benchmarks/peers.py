"""Peers: pink and mink with the same job, for the benchmarks of retargeting and of inverse kinematics.

The same robot, tasks, pairs and limits in their terms, one solver step a frame, or several. PlaCo, which takes a
process of its own, is in `placo_peer`; the URDF that it is given is made here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from evidence.benchmarks import ik_cases
from evidence.benchmarks.ik_cases import (
    DT,
    SOLES,
    CaseMotion,
    PeerTargets,
    SolverCase,
    chest_frame,
    root_poses,
)
from humanoid_control.collision.coal_backend import rotation_of_z_onto
from humanoid_control.collision.shapes import Box, Capsule, EllipticCapsule, LinkShape, Sphere
from humanoid_control.retargeting.scaling import POINTS
from humanoid_control.robots.description.urdf import axis_of
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


def mink_stepper(robot: Robot, joints: np.ndarray, steps: int = 1) -> Callable[[np.ndarray, float], np.ndarray]:
    """The same for mink, on a MuJoCo model made from the robot's URDF with only the imitation joints.

    MuJoCo has no elliptic capsules: they become capsules of the mean radius.

    Args:
        robot, joints: as above.
        steps: of the solver a frame; they share its time, so that joint speeds are kept.
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
        for _ in range(steps):
            try:
                v = mink.solve_ik(configuration, [*points, posture], dt / steps, SOLVER, DAMPING, limits=limits)
            except mink.exceptions.MinkError:
                v = np.zeros(model.nv)
            configuration.integrate_inplace(v, dt / steps)
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
    return spec.compile(), [([names[i]], [names[j]]) for i, j in pairs_moved(robot, joints)]


def pairs_moved(robot: Robot, joints: Sequence[str]) -> list[tuple[int, int]]:
    """The robot's pairs of shapes whose distance can change when only these joints move."""
    joint = [robot.model.frames[robot.model.getFrameId(s.link, pin.FrameType.BODY)].parentJoint for s in robot.shapes]
    columns = robot.ancestor_mask[joint][:, robot.iv + np.array([robot.joint_index(n) for n in joints])]
    return [(int(i), int(j)) for i, j in robot.pairs if (columns[i] != columns[j]).any()]


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


def urdf_with_shapes(robot: Robot, joints: Sequence[str], points: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
    """The robot's URDF with its collision shapes as pinocchio reads them, and the pairs by pinocchio's names of them.

    A cylinder that `collision_checking` calls a capsule is one to pinocchio. Elliptic capsules become capsules of the
    mean radius here too.

    Args:
        robot: which.
        joints: that move; all others are fixed as they are in the neutral posture.
        points: that become links, called `point_` and their names.
    """
    tree = ElementTree.fromstring(robot.urdf.encode())
    links, counts, names = {str(link.get("name")): link for link in tree.iter("link")}, dict[str, int](), []
    for link in links.values():
        for shown in [child for child in link if child.tag in ("visual", "collision", "collision_checking")]:
            link.remove(shown)
    for item in robot.shapes:
        count = counts[item.link] = counts.get(item.link, -1) + 1
        names.append(f"{item.link}_{count}")
        _add_collision(links[item.link], names[-1], item)
    for joint in tree.findall("joint"):
        if joint.get("name") not in joints and joint.get("type") != "fixed":
            _fix(joint, robot)
    for name in points:
        carrier, xyz = robot.file.points[name]
        ElementTree.SubElement(tree, "link", name=f"point_{name}")
        held = ElementTree.SubElement(tree, "joint", name=f"to_point_{name}", type="fixed")
        ElementTree.SubElement(held, "parent", link=carrier)
        ElementTree.SubElement(held, "child", link=f"point_{name}")
        ElementTree.SubElement(held, "origin", xyz=_text(xyz))
    pairs = [(names[i], names[j]) for i, j in pairs_moved(robot, joints)]
    return ElementTree.tostring(tree, encoding="unicode"), pairs


def _text(values: Sequence[float] | np.ndarray) -> str:
    return " ".join(f"{float(v):.17g}" for v in values)


def _fix(joint: ElementTree.Element, robot: Robot) -> None:
    """Make a joint fixed, turned as it is in the neutral posture."""
    name, along, origin = str(joint.get("name")), axis_of(joint), joint.find("origin")
    if origin is None:
        origin = ElementTree.SubElement(joint, "origin")
    angle = robot.postures["neutral"][robot.index[name]]
    rpy = [float(x) for x in origin.get("rpy", "0 0 0").split()]
    turned = pin.rpy.rpyToMatrix(*rpy) @ pin.exp3(angle * along / np.linalg.norm(along))
    origin.set("rpy", _text(pin.rpy.matrixToRpy(turned)))
    joint.set("type", "fixed")
    for part in [child for child in joint if child.tag in ("mimic", "limit", "axis")]:
        joint.remove(part)


def _add_collision(link: ElementTree.Element, name: str, item: LinkShape) -> None:
    shape, part = item.shape, ElementTree.SubElement(link, "collision", name=name)
    geometry = ElementTree.SubElement(part, "geometry")
    center, rpy = np.zeros(3), np.zeros(3)
    if isinstance(shape, Sphere):
        center = np.array(shape.center)
        ElementTree.SubElement(geometry, "sphere", radius=_text([shape.radius]))
    elif isinstance(shape, (Capsule, EllipticCapsule)):
        if isinstance(shape, Capsule):
            p0, p1, radius = np.array(shape.p0), np.array(shape.p1), shape.radius
        else:
            p0, radius = np.array(shape.top_center), (shape.a + shape.b) / 2
            p1 = p0 - [0.0, 0.0, max(shape.l, 1e-3)]
        center, rpy = (p0 + p1) / 2, pin.rpy.matrixToRpy(rotation_of_z_onto(p1 - p0))
        length = float(np.linalg.norm(p1 - p0))
        ElementTree.SubElement(geometry, "cylinder", radius=_text([radius]), length=_text([length]))
        checking = link.find("collision_checking")
        if checking is None:
            checking = ElementTree.SubElement(link, "collision_checking")
        ElementTree.SubElement(checking, "capsule", name=name)
    elif isinstance(shape, Box):
        center, rpy = np.array(shape.center), np.array(shape.rpy)
        ElementTree.SubElement(geometry, "box", size=_text(shape.size))
    else:
        center, radius = shape.bounding_sphere()
        ElementTree.SubElement(geometry, "sphere", radius=_text([radius]))
    ElementTree.SubElement(part, "origin", xyz=_text(center), rpy=_text(rpy))


# -------- A tick of inverse kinematics

TICK_DAMPING = ik_cases.DAMPING
BARRIER_GAIN = 8.0  # [1/s] share of its distance that a pair may lose, as in WholeBodyIk
NEAREST = 10  # pairs that pink's barrier may pick, its own way to keep it affordable


def pink_cases(robot: Robot, motion: CaseMotion) -> list[SolverCase]:
    """pink_all_pairs with a row for each pair, pink_nearest_10 with one for the nearest ten, pink_no_collision."""
    cases = [pink_case("pink_all_pairs", robot, motion, len(robot.pairs))]
    cases.append(pink_case(f"pink_nearest_{NEAREST}", robot, motion, min(NEAREST, len(robot.pairs))))
    return [*cases, pink_case("pink_no_collision", robot, motion, 0)]


def pink_case(name: str, robot: Robot, motion: CaseMotion, pairs: int) -> SolverCase:
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
    return SolverCase(name, aim, tick, lambda: None, rows, watched, used=lambda: pairs, velocity=lambda: v[robot.iv :])


def mink_cases(robot: Robot, motion: CaseMotion) -> list[SolverCase]:
    """mink_all_pairs and mink_no_collision."""
    return [mink_case("mink_all_pairs", robot, motion, True), mink_case("mink_no_collision", robot, motion, False)]


def mink_case(name: str, robot: Robot, motion: CaseMotion, collisions: bool | int) -> SolverCase:
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
    return SolverCase(
        name,
        aim,
        tick,
        lambda: None,
        rows,
        count,
        used=lambda: int(motion.near[aimed[0]]) if collisions else 0,
        velocity=lambda: v[columns],
    )


def _in_mujoco(robot: Robot, model: Any, postures: np.ndarray) -> np.ndarray:
    """Configurations (T, nq) in MuJoCo's order: the root link's pose with its quaternion w x y z, then its joints."""
    order = [int(model.joint(n).qposadr[0]) for n in robot.joint_names]
    out = np.zeros((len(postures), model.nq))
    for q, X, mapped in zip(postures, root_poses(robot, postures), out, strict=True):
        turn = pin.Quaternion(X.rotation)
        mapped[:7] = [*X.translation, turn.w, turn.x, turn.y, turn.z]
        mapped[order] = q[robot.iq :]
    return out
