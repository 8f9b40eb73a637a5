"""Drives of a robot as data: motor, gear or mechanism, elasticity, friction, encoders; SI units."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from humanoid_control.errors import RobotError

Geometry = dict[str, Any]  # numbers, points (3,), two points (2, 3)


@dataclass(frozen=True)
class Kind:
    """What a kind of drive needs.

    Attributes:
        joints: how many joints it drives, and with as many motors.
        screw: it has a lead instead of a ratio.
        vectors, pairs, numbers: keys of its geometry: points (3,), two points (2, 3), numbers.
        optional: further numbers, with their default.
    """

    joints: int = 1
    screw: bool = False
    vectors: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    optional: dict[str, float] = field(default_factory=dict)


KINDS = {
    "harmonic": Kind(),
    "linear": Kind(optional={"offset": 0.0}),
    "knee_screw": Kind(screw=True, vectors=("hinge", "pivot")),
    "ankle_screws": Kind(
        2, True, ("direction",), pairs=("tops", "bottoms"), numbers=("coupler",), optional={"branch": -1.0}
    ),
    "four_bar": Kind(numbers=("crank", "coupler", "rocker", "ground", "crank_zero"), optional={"branch": 1.0}),
    "vergence": Kind(
        vectors=("pivot", "arm"), numbers=("lever_x", "lever", "coupler"), optional={"share": 0.5, "branch": 1.0}
    ),
}


def _above_zero(owner: str, **values: float) -> None:
    for key, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise RobotError(f"{owner}: {key} must be above zero, got {value:g}")


def _not_negative(owner: str, **values: float) -> None:
    for key, value in values.items():
        if not (math.isfinite(value) and value >= 0):
            raise RobotError(f"{owner}: {key} must not be negative, got {value:g}")


@dataclass(frozen=True)
class Motor:
    """A motor, L di/dt = u - R i - k w, torque = k i, with its rotor and what turns with it at the fast side.

    Attributes:
        name: by which drives refer to it.
        torque_constant: k [N m/A] = [V s/rad]. resistance [ohm]. inductance [H].
        current_limit [A], voltage_limit [V].
        inertia: of the rotor about its shaft, and across it [kg m^2].
    """

    name: str
    torque_constant: float
    resistance: float
    inductance: float
    current_limit: float
    voltage_limit: float
    inertia: tuple[float, float]

    def __post_init__(self) -> None:
        owner = f"motor '{self.name}'"
        keys = ("torque_constant", "resistance", "inductance", "current_limit", "voltage_limit")
        _above_zero(owner, **{k: getattr(self, k) for k in keys})
        _not_negative(owner, inertia=min(self.inertia))
        if self.inertia[0] > 2 * self.inertia[1] + 1e-15:
            raise RobotError(f"{owner}: inertia about the shaft is at most twice the one across it in any body")

    @property
    def time_constant(self) -> float:
        """L / R [s]."""
        return self.inductance / self.resistance

    @property
    def torque(self) -> float:
        """At the current limit [N m]."""
        return self.torque_constant * self.current_limit


@dataclass(frozen=True)
class Elasticity:
    """Of a gear, at the joint: torque = stiffness x twist + damping x its rate [N m/rad], [N m s/rad]."""

    stiffness: float
    damping: float


@dataclass(frozen=True)
class Friction:
    """Of motor and gear together, at the motor's shaft; speeds [rad/s] and torques [N m] of the shaft.

    Attributes:
        coulomb: at moderate speed, without load. viscous: [N m s/rad].
        stiction: peak about standstill, at least `coulomb`; it has fallen off at `stribeck_speed`.
        smoothing_speed: below which the torque is in proportion to speed.
        load_share: part of the transmitted torque that is lost, as in screws.
    """

    coulomb: float = 0.0
    viscous: float = 0.0
    stiction: float = 0.0
    stribeck_speed: float = 10.0
    smoothing_speed: float = 1.0
    load_share: float = 0.0


@dataclass(frozen=True)
class Drive:
    """One drive.

    Attributes:
        name, kind: kind is one of `KINDS`.
        joints: names; for ankle_screws the joint nearer to the carrier first.
        carrier: link that the rotor turns on, and the screws are fixed to.
        motor: None where only the kinematics counts. One motor for each joint.
        ratio: of the gear; of a screw 2 pi / lead [rad/m].
        axis: of the rotor in the carrier's frame (3,); None: the joint's axis, the screw's direction.
        geometry: lengths [m] and angles [rad] by name.
        elastic: None for a rigid gear. friction: at the shaft.
        motor_counts, joint_counts: of the encoders for one turn; 0 where there is none.
    """

    name: str
    kind: str
    joints: tuple[str, ...]
    carrier: str
    motor: Motor | None
    ratio: float
    axis: tuple[float, float, float] | None = None
    geometry: Geometry = field(default_factory=dict)
    elastic: Elasticity | None = None
    friction: Friction = field(default_factory=Friction)
    motor_counts: int = 0
    joint_counts: int = 0

    def __post_init__(self) -> None:
        owner = f"drive '{self.name}'"
        if not math.isfinite(self.ratio) or self.ratio == 0:
            raise RobotError(f"{owner}: its ratio must not be zero, got {self.ratio:g}")
        if self.elastic is not None:
            if KINDS[self.kind].joints > 1 or KINDS[self.kind].screw:
                raise RobotError(f"{owner}: a {self.kind} is rigid; 'elastic' is for gears")
            _above_zero(owner, stiffness=self.elastic.stiffness)
            _not_negative(owner, damping=self.elastic.damping)
        f = self.friction
        _not_negative(owner, coulomb=f.coulomb, viscous=f.viscous, load_share=f.load_share)
        _above_zero(owner, stribeck_speed=f.stribeck_speed, smoothing_speed=f.smoothing_speed)
        if f.stiction < f.coulomb or f.load_share >= 1:
            raise RobotError(f"{owner}: friction needs stiction >= coulomb and load_share < 1")
        _not_negative(owner, motor_counts=self.motor_counts, joint_counts=self.joint_counts)


@dataclass(frozen=True)
class DriveFile:
    """What a file of drives says, mirrored rows written out; empty where a robot has none. `where` names the file."""

    drives: tuple[Drive, ...] = ()
    motors: tuple[Motor, ...] = ()
    where: str = ""

    def of_joint(self, joint: str) -> Drive | None:
        """The drive that moves a joint; None where none does."""
        return next((d for d in self.drives if joint in d.joints), None)
