"""pink and mink as the bench of inverse kinematics runs them: our robot, tasks, pairs and limits, in their terms."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.cli.bench_ik_cases import POSTURE, SOLES, Case, PeerTargets, chest_frame, mean
from humanoid_control.cli.bench_ik_motion import ACTIVATION, DT, MARGIN, Motion
from humanoid_control.cli.bench_peers import mujoco_model
from humanoid_control.robots import Robot

SOLVER, DAMPING = "daqp", 1e-6
APPROACH = 8.0  # [1/s] share of its distance that a pair may lose, as in our solver
NEAREST = 10  # pairs that pink's barrier may pick, its own way to keep it affordable


def pink_cases(robot: Robot, motion: Motion) -> list[Case]:
    """pink_all_pairs with a row for each pair, pink_nearest_10 with one for the nearest ten, pink_no_collision."""
    cases = [pink_case("pink_all_pairs", robot, motion, len(robot.pairs))]
    cases.append(pink_case(f"pink_nearest_{NEAREST}", robot, motion, min(NEAREST, len(robot.pairs))))
    return [*cases, pink_case("pink_no_collision", robot, motion, 0)]


def pink_case(name: str, robot: Robot, motion: Motion, pairs: int) -> Case:
    """pink with a barrier for so many of the nearest pairs, or without."""
    import pink

    collision = {}
    if pairs:
        collision = {"collision_model": robot.geometry, "collision_data": robot.geometry.createData()}
    configuration = pink.Configuration(robot.model, robot.model.createData(), motion.q[0], **collision)
    targets = PeerTargets.of(robot, motion)
    soles = [pink.tasks.FrameTask(robot.model.frames[robot.point_frame(p)].name, 1.0, 1.0) for p in SOLES]
    chest = pink.tasks.FrameTask(robot.model.frames[chest_frame(robot)].name, 0.0, 1.0)
    center, posture = pink.tasks.ComTask(cost=1.0), pink.tasks.PostureTask(cost=POSTURE)
    tasks = [*soles, chest, center, posture]
    barriers = []
    if pairs:
        barriers = [pink.barriers.SelfCollisionBarrier(pairs, APPROACH, safe_displacement_gain=0.0, d_min=MARGIN)]

    def aim(k: int) -> None:
        for task, X in zip(soles, targets.soles[k], strict=True):
            task.set_target(X)
        chest.set_target(targets.chest[k])
        center.set_target(targets.center[k])
        posture.set_target(motion.q[k + 1])

    def tick(q: np.ndarray) -> bool:
        configuration.update(q)
        try:
            v[:] = pink.solve_ik(configuration, tasks, DT, SOLVER, DAMPING, barriers=barriers, safety_break=False)
        except pink.exceptions.PinkError:
            return False
        configuration.integrate(v, DT)
        return True

    v = np.zeros(robot.nv)
    rows = 6 * len(soles) + 3 + 3 + robot.n
    watched = len(robot.pairs) if pairs else 0
    return Case(name, aim, tick, lambda: None, rows, watched, pairs, velocity=lambda: v[robot.iv :])


def mink_cases(robot: Robot, motion: Motion) -> list[Case]:
    """mink_all_pairs and mink_no_collision."""
    return [mink_case("mink_all_pairs", robot, motion, True), mink_case("mink_no_collision", robot, motion, False)]


def mink_case(name: str, robot: Robot, motion: Motion, collisions: bool | int) -> Case:
    """mink on a MuJoCo model of our robot, with a free base."""
    import mink

    model, pairs = mujoco_model(robot, robot.joint_names, SOLES, floating=True)
    postures = _in_mujoco(robot, model, motion.q)
    configuration = mink.Configuration(model, postures[0])
    targets = PeerTargets.of(robot, motion)
    link = robot.model.frames[chest_frame(robot)].name
    soles = [mink.FrameTask(p, "site", position_cost=1.0, orientation_cost=1.0) for p in SOLES]
    chest = mink.FrameTask(link, "body", position_cost=0.0, orientation_cost=1.0)
    center, posture = mink.ComTask(cost=1.0), mink.PostureTask(model, cost=POSTURE)
    tasks = [*soles, chest, center, posture]
    velocity = dict(zip(robot.joint_names, robot.velocity, strict=True))
    limits = [mink.ConfigurationLimit(model), mink.VelocityLimit(model, velocity)]
    count = 0
    if collisions:
        avoidance = mink.CollisionAvoidanceLimit(
            model,
            pairs,
            gain=APPROACH * DT,
            minimum_distance_from_collisions=MARGIN,
            collision_detection_distance=ACTIVATION,
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
            v[:] = mink.solve_ik(configuration, tasks, DT, SOLVER, DAMPING, limits=limits)
        except mink.exceptions.MinkError:
            return False
        configuration.integrate(v, DT)
        return True

    aimed, v = [0], np.zeros(model.nv)
    columns = [int(model.joint(n).dofadr[0]) for n in robot.joint_names]
    rows = 6 * len(soles) + 3 + 3 + robot.n
    near = mean(motion.near) if collisions else 0.0
    return Case(name, aim, tick, lambda: None, rows, count, near, velocity=lambda: v[columns])


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
