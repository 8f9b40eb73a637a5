"""The robot of the experiments: its groups and mappings, its arm, and the walks of its joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.robots import Robot
from humanoid_control.robots.tendon_file import tendon_geometry, tendons_of
from humanoid_control.tendons.encoders import EncoderErrors, TendonEncoders
from humanoid_control.tendons.groups import completed
from humanoid_control.tendons.mappings.exact_mapping import exact_mapping
from humanoid_control.tendons.mappings.geometry_mapping import GeometryMapping
from humanoid_control.tendons.mappings.group_geometry import group_mappings, lengths_only
from humanoid_control.tendons.mappings.mapping import Array
from humanoid_control.tendons.mappings.neural_fit import fit_neural
from humanoid_control.tendons.mappings.neural_mapping import NeuralMapping
from humanoid_control.tendons.mappings.parted_mapping import PartedMapping, fit_polynomial_parts
from humanoid_control.tendons.mappings.posture_grid import random_postures
from humanoid_control.tendons.random_walk import random_walk
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import TendonGroup

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


class TendonLab:
    """A robot with the joints of the source's experiments.

    Raises:
        ConfigError: the robot does not have them.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        missing = [j for j in (*NECK, *SCAPULA, *ARM) if j not in robot.index]
        if missing:
            raise ConfigError(
                f"{robot.name} lacks '{missing[0]}': the source's experiments need neck, scapula and arm "
                "of kengoro_upper"
            )
        self.whole = tendon_geometry(robot)
        self.tendons = tendons_of(robot)
        self._networks: dict[tuple[str, ...], NeuralMapping] = {}

    @cached_property
    def groups(self) -> tuple[TendonGroup, ...]:
        """The source's five groups, each borrowing all joints that its tendons cross."""
        names = (self.whole.joint_names, self.whole.tendon_names)
        return completed(tuple(self.tendons.groups.values()), self.whole.crossed, *names)

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
        """Where walks of the whole body begin: zero, but not at a limit."""
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

    def network(self, limb: Limb) -> NeuralMapping:
        """The neural mapping of a limb, trained once; whoever learns with it takes that back afterwards."""
        g = limb.geometry
        if g.joint_names not in self._networks:
            width = 12 if len(g.joint_names) == 1 else 32
            postures = random_postures(g.limits, FEWEST_POSTURES + POSTURES_PER_JOINT * len(g.joint_names))
            self._networks[g.joint_names] = fit_neural(
                lengths_only(g), g.joint_names, g.tendon_names, g.limits, postures, width, ITERATIONS, 0, g.model_hash
            )
        return self._networks[g.joint_names]


def measured(lengths: Array, seed: int, errors: EncoderErrors | None = None) -> Array:
    """Lengths (T, M) as encoders read them, by default with `NOISE` alone [m]."""
    return TendonEncoders(lengths.shape[1], errors or EncoderErrors(noise=NOISE), seed).measure_many(lengths)
