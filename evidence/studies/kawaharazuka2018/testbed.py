"""Testbed of the experiments: the robot with its groups, mappings and walks, and plants that move joints otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.tendons import tendon_geometry, tendons_of
from humanoid_control.simulation.drives.tendon_plant import EncoderErrors, TendonEncoders
from humanoid_control.simulation.settings import TENDONS, WorldSettings
from humanoid_control.simulation.worlds.multibody_world import TensionWorld
from humanoid_control.tendons.files.mjcf import TendonModel
from humanoid_control.tendons.mappings.exact import GeometryMapping, exact_mapping, fit_target, group_mappings
from humanoid_control.tendons.mappings.mapping import Array
from humanoid_control.tendons.mappings.neural import NeuralMapping, fit_neural
from humanoid_control.tendons.mappings.per_tendon import PartedMapping, fit_polynomial_parts
from humanoid_control.tendons.mappings.postures import random_postures, random_walk
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import TendonGroup, ViaPoint, complete_groups

ARM = ("l_gh_roll", "l_gh_pitch", "l_gh_yaw", "l_elbow_pitch")
NECK = ("neck_top_pitch", "neck_roll", "neck_pitch", "neck_yaw")
SCAPULA = ("l_sc_roll", "l_sc_pitch", "l_ac_roll", "l_ac_yaw")
NOISE = 1e-4  # of a measured length [m]
FEWEST_POSTURES, POSTURES_PER_JOINT, ITERATIONS = 400, 600, 300  # to train a network


@dataclass(frozen=True)
class Limb:
    """Some joints with the tendons that cross them, all other joints held at zero."""

    group: TendonGroup
    geometry: TendonGeometry
    mapping: GeometryMapping


class TendonTestbed:
    """Robot with the joints of the experiments of Kawaharazuka 2018.

    Raises:
        ConfigError: the robot does not have them.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        missing = [j for j in (*NECK, *SCAPULA, *ARM) if j not in robot.index]
        if missing:
            raise ConfigError(
                f"{robot.name} lacks '{missing[0]}': the experiments need neck, scapula and arm of kengoro_upper"
            )
        self.whole = tendon_geometry(robot)
        self.tendons = tendons_of(robot)
        self._networks: dict[tuple[str, ...], NeuralMapping] = {}

    @cached_property
    def groups(self) -> tuple[TendonGroup, ...]:
        """The five groups of Kawaharazuka 2018, each borrowing all joints that its tendons cross."""
        names = (self.whole.joint_names, self.whole.tendon_names)
        return complete_groups(tuple(self.tendons.groups.values()), self.whole.crossed, *names)

    @cached_property
    def mappings(self) -> dict[str, GeometryMapping]:
        """The exact mapping of each group."""
        return group_mappings(self.robot.model, self.tendons, self.groups)

    @cached_property
    def polynomials(self) -> dict[str, PartedMapping]:
        """The fitted mapping of each group, for all of what its tendons cross."""
        return {
            g.name: fit_polynomial_parts(self.robot.model, self.tendons.only(g.tendons), g.joints) for g in self.groups
        }

    @cached_property
    def start(self) -> Array:
        """Angles at which walks of the whole body begin: zero, but not at a limit."""
        low, high = self.whole.limits.T
        return np.clip(0.0, low + 0.1, high - 0.1)

    def walk(self, steps: int, sigma: float, seed: int) -> tuple[Array, Array]:
        """Angles (steps + 1, J) [rad] and true lengths (steps + 1, M) [m] of the whole body."""
        q = random_walk(self.whole.limits, self.start, steps, sigma, seed)
        return q, self.whole.lengths_of(q)

    def geometry_of(self, group: str) -> TendonGeometry:
        """All tendons of one of `groups` over all its joints, by its name."""
        g = next(g for g in self.groups if g.name == group)
        return TendonGeometry(self.robot.model, self.tendons.only(g.tendons), g.joints)

    def limb(self, joints: Sequence[str]) -> Limb:
        """These joints with those tendons of the left shoulder's group that cross one of them."""
        shoulder = self.tendons.groups["l_shoulder"].tendons
        geometry = TendonGeometry(self.robot.model, self.tendons.only(shoulder), tuple(joints))
        used = tuple(t for t, row in zip(geometry.tendon_names, geometry.crossed, strict=True) if row.any())
        geometry = TendonGeometry(self.robot.model, self.tendons.only(used), tuple(joints))
        group = TendonGroup("arm", tuple(joints), (), geometry.tendon_names)
        return Limb(group, geometry, exact_mapping(geometry))

    def polynomials_of(self, limb: Limb) -> PartedMapping:
        """The fitted mapping of a limb, a polynomial of each tendon over the joints that it crosses."""
        g = limb.geometry
        return fit_polynomial_parts(self.robot.model, self.tendons.only(g.tendon_names), g.joint_names)

    def network(self, limb: Limb) -> NeuralMapping:
        """The neural mapping of a limb, trained once; whoever learns with it takes that back afterwards."""
        g = limb.geometry
        if g.joint_names not in self._networks:
            width = 12 if len(g.joint_names) == 1 else 32
            postures = random_postures(g.limits, FEWEST_POSTURES + POSTURES_PER_JOINT * len(g.joint_names))
            self._networks[g.joint_names] = fit_neural(fit_target(g), postures, width, ITERATIONS)
        return self._networks[g.joint_names]


def measured(lengths: Array, seed: int, errors: EncoderErrors | None = None) -> Array:
    """Lengths (T, M) as encoders read them, by default with `NOISE` alone [m]."""
    return TendonEncoders(lengths.shape[1], errors or EncoderErrors(noise=NOISE), seed).measure_many(lengths)


# -------- Independent lengths: MuJoCo, pinocchio

RATE, HOLD = 100.0, 40  # of the samples [Hz]; how many samples the muscles are excited alike


def muscle_walk(path: Path, geometry: TendonGeometry, steps: int, seed: int) -> tuple[Array, Array]:
    """MuJoCo's own simulation of a model whose muscles are excited at random.

    Returns:
        Joint values (steps + 1, D) in the order of the geometry, and MuJoCo's lengths since zero (steps + 1, M) [m].
    """
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(path))
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    joints = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, n) for n in geometry.joint_names]
    tendons = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_TENDON, n) for n in geometry.tendon_names]
    at = model.jnt_qposadr[joints]
    data.qpos[:] = 0.0
    mujoco.mj_forward(model, data)
    zero = data.ten_length[tendons].copy()
    data.qpos[at] = geometry.limits.mean(axis=1)
    repeats = max(1, round(1.0 / (RATE * model.opt.timestep)))
    q, lengths = np.empty((steps + 1, len(joints))), np.empty((steps + 1, len(tendons)))
    for k in range(steps + 1):
        if k % HOLD == 0:
            data.ctrl[:] = rng.uniform(0.0, 1.0, model.nu) ** 2
        if k:
            mujoco.mj_step(model, data, repeats)
        mujoco.mj_forward(model, data)  # after a step the lengths are still those before it
        q[k], lengths[k] = data.qpos[at], data.ten_length[tendons] - zero
    return q, lengths


def placed_lengths(robot: TendonModel, joints: Sequence[str], values: Array, held: Mapping[str, float]) -> Array:
    """Lengths since zero (T, M) [m] of straight tendons between points placed by pinocchio.

    Args:
        joints: (D,) names. values: (T, D) [rad or m]. held: where other joints stay; neutral where not named.
    """
    model, data = robot.model, robot.model.createData()
    at = [model.joints[model.getJointId(n)].idx_q for n in joints]
    q = pin.neutral(model)
    for name, value in held.items():
        q[model.joints[model.getJointId(name)].idx_q] = value
    carriers = [
        [model.getFrameId(p.link, pin.FrameType.BODY) for p in t.path if isinstance(p, ViaPoint)] for t in robot.tendons
    ]
    points = [[np.array(p.xyz) for p in t.path if isinstance(p, ViaPoint)] for t in robot.tendons]
    out = np.empty((len(values) + 1, len(points)))
    for row, value in zip(out, np.vstack([np.zeros(len(at)), values]), strict=True):
        q[at] = value
        pin.framesForwardKinematics(model, data, q)
        for m, (frames, xyz) in enumerate(zip(carriers, points, strict=True)):
            placed = np.array([data.oMf[f].act(x) for f, x in zip(frames, xyz, strict=True)])
            row[m] = np.linalg.norm(np.diff(placed, axis=0), axis=1).sum()
    return out[1:] - out[0]


# -------- Plant of E3

PERIOD, STEP = 0.01, 0.002  # of the samples and of the simulation [s]; Kawaharazuka 2018 gives none
HELD = 40  # samples for which a push stays the same
PUSHED = {"scapula": 35.0, "humerus": 23.0, "forearm": 16.0}  # standard deviation of each part of the force [N]


class HandPushes:
    """Moves the arms of the experiments' robot by forces on its links, which are random and mirrored."""

    def __init__(self, testbed: TendonTestbed) -> None:
        self._lab = testbed
        self._world = TensionWorld(testbed.robot, WorldSettings(STEP, drives=TENDONS))
        self._joints = [testbed.robot.index[j] for j in testbed.whole.joint_names]

    def walk(self, steps: int, seed: int) -> tuple[Array, Array]:
        """Angles (steps + 1, J) [rad] and true lengths (steps + 1, M) [m], as `TendonTestbed.walk`."""
        world, rng = self._world, np.random.default_rng(seed)
        world.reset()
        q = np.empty((steps + 1, len(self._joints)))
        for k in range(steps + 1):
            q[k] = world.joints[self._joints]
            if k % HELD == 0:
                for link, size in PUSHED.items():
                    force = size * rng.standard_normal(3)
                    for side, y in (("l", 1.0), ("r", -1.0)):
                        wrench = np.concatenate([force * (1.0, y, 1.0), np.zeros(3)])
                        world.push(f"{side}_{link}", wrench, HELD * PERIOD)
            world.step(round(PERIOD / STEP))
        return q, self._lab.whole.lengths_of(q)
