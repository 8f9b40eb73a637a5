"""Drives of a robot: motor, gear or mechanism, elasticity, friction, encoders; SI units."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.files import (
    build_row,
    check_keys,
    check_row,
    count,
    known,
    mirrored_name,
    number,
    number_rows,
    numbers,
    rows_of,
    schema_file,
)
from humanoid_control.robots.description.urdf import link_of, parse_urdf
from humanoid_control.robots.robot import Robot

Geometry = dict[str, Any]  # numbers, points (3,), two points (2, 3)


@dataclass(frozen=True)
class Kind:
    """Requirements of a kind of drive.

    Attributes:
        joints: number of driven joints and motors.
        screw: has a lead, not a ratio.
        vectors: keys of points (3,).
        pairs: keys of two points (2, 3).
        numbers: keys of numbers.
        optional: further numbers with defaults.
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
    """Motor, L di/dt = u - R i - k w, torque = k i, with all parts at the fast side.

    Attributes:
        torque_constant: k [N m/A] = [V s/rad].
        resistance: [ohm].
        inductance: [H].
        current_limit: [A].
        voltage_limit: [V].
        inertia: about, across the shaft [kg m^2].
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
        """Torque at the current limit [N m]."""
        return self.torque_constant * self.current_limit


@dataclass(frozen=True)
class Elasticity:
    """Gear elasticity at the joint: torque = stiffness x twist + damping x its rate [N m/rad], [N m s/rad]."""

    stiffness: float
    damping: float


@dataclass(frozen=True)
class Friction:
    """Friction of motor and gear at the motor shaft [N m], [rad/s].

    Attributes:
        coulomb: without load.
        viscous: [N m s/rad].
        stiction: peak at standstill, at least `coulomb`.
        stribeck_speed: decay of the peak.
        smoothing_speed: below it proportional to speed.
        load_share: lost part of the transmitted torque (screws).
    """

    coulomb: float = 0.0
    viscous: float = 0.0
    stiction: float = 0.0
    stribeck_speed: float = 10.0
    smoothing_speed: float = 1.0
    load_share: float = 0.0


@dataclass(frozen=True)
class Drive:
    """Drive of one or two joints.

    Attributes:
        kind: one of `KINDS`.
        joints: of ankle_screws nearest to the carrier first.
        carrier: link of rotor bearing and screws.
        motor: one per joint; None: kinematics only.
        ratio: of a screw 2 pi / lead [rad/m].
        axis: of the rotor in the carrier's frame (3,); default: joint axis, screw direction.
        geometry: lengths [m] and angles [rad].
        elastic: None: rigid.
        motor_counts: per turn; 0: none.
        joint_counts: per turn; 0: none.
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
    """Contents of a drives file `where`, with mirrored rows; empty if a robot has none."""

    drives: tuple[Drive, ...] = ()
    motors: tuple[Motor, ...] = ()
    where: str = ""

    def of_joint(self, joint: str) -> Drive | None:
        """Return the drive of a joint, or None."""
        return next((d for d in self.drives if joint in d.joints), None)


# -------- File

SCHEMA = "humanoid_drives/1"
FILE_KEYS = ("schema", "robot", "motors", "drives")
MOTOR_KEYS = ("name", "torque_constant", "resistance", "inductance", "current_limit", "voltage_limit", "inertia")
COUNT_KEYS = ("motor_counts", "joint_counts")
DRIVE_KEYS = ("name", "kind", "joints", "mirror", "carrier", "motor", "axis", "elastic", "friction", *COUNT_KEYS)
FRICTION_KEYS = tuple(Friction.__dataclass_fields__)


def drives_of(robot: Robot) -> DriveFile:
    """Return the robot's drives, if any; raises as `read_drive_file`."""
    return read_drive_file(robot.drives, robot) if robot.drives is not None else DriveFile()


def read_drive_file(path: Path, robot: Robot) -> DriveFile:
    """Read a drives file and check its names.

    Raises:
        RobotError: if a value is invalid.
        UnknownNameError: if a name is unknown.
    """
    d = schema_file(path, SCHEMA, "drive file")
    check_keys(d, FILE_KEYS, ("drives",), str(path))
    listed = [_motor(row, f"{path}: motors[{k}]") for k, row in enumerate(rows_of(d, "motors", str(path)))]
    motors = {m.name: m for m in listed}
    drives: list[Drive] = []
    reader = _Reader(robot, motors)
    for k, row in enumerate(rows_of(d, "drives", str(path))):
        drives += reader.rows(row, f"{path}: drives[{k}]")
    taken = {"motor": [m.name for m in listed], "drive": [x.name for x in drives]}
    taken["driven joint"] = [j for x in drives for j in x.joints]
    for what, names in taken.items():
        if double := sorted({n for n in names if names.count(n) > 1}):
            raise RobotError(f"{path}: the {what} '{double[0]}' appears twice")
    return DriveFile(tuple(drives), tuple(motors.values()), str(path))


class _Reader:
    """Reader of drive rows with the names of one robot."""

    def __init__(self, robot: Robot, motors: dict[str, Motor]) -> None:
        tree = parse_urdf(robot.urdf, robot.name)
        self.links, self.joints, self.motors = tree.links, robot.index, motors
        self.parents = {j.get("name", ""): link_of(j, "parent") for j in tree.joints}

    def rows(self, row: Any, where: str) -> list[Drive]:
        where = check_row(row, DRIVE_KEYS, where)
        check_keys(row, row, ("name", "kind", "joints"), where)
        kind = known("kind", str(row["kind"]), KINDS, where)
        out = [self._drive(row, kind, where)]
        if mirror := row.get("mirror"):
            if mirror not in ("x", "y", "z"):
                raise RobotError(f"{where}: mirror must be x, y or z, got '{mirror}'")
            other = _mirrored(row, KINDS[kind], "xyz".index(mirror), where)
            out.append(self._drive(other, kind, f"{where} mirrored"))
        return out

    def _drive(self, row: dict[str, Any], kind_name: str, where: str) -> Drive:
        kind = KINDS[kind_name]
        shape_keys = (*kind.vectors, *kind.pairs, *kind.numbers)
        gear = "lead" if kind.screw else "ratio"
        check_keys(row, (*DRIVE_KEYS, gear, *shape_keys, *kind.optional), (gear, *shape_keys), where)
        joints = tuple(known("joint", str(j), self.joints, where) for j in _listed(row["joints"]))
        if len(joints) != kind.joints:
            raise RobotError(f"{where}: a {kind_name} drives {kind.joints} joint(s), {len(joints)} are given")
        carrier = known("link", str(row.get("carrier", self.parents[joints[0]])), self.links, where)
        motor = self.motors[known("motor", str(row["motor"]), self.motors, where)] if row.get("motor") else None
        ratio = number(row, gear, where)
        if kind.screw and ratio <= 0:
            raise RobotError(f"{where}: its lead must be above zero, got {ratio:g}")
        x = numbers(row, "axis", (3,), where) if "axis" in row else None
        elastic = None
        if row.get("elastic"):
            twist = ("stiffness", "damping")
            elastic = Elasticity(**number_rows(row["elastic"], twist, twist, f"{where}: elastic"))
        friction = number_rows(row.get("friction") or {}, FRICTION_KEYS, (), f"{where}: friction")
        friction.setdefault("stiction", friction.get("coulomb", 0.0))
        return build_row(
            where,
            Drive,
            name=str(row["name"]),
            kind=kind_name,
            joints=joints,
            carrier=carrier,
            motor=motor,
            ratio=2 * math.pi / ratio if kind.screw else ratio,
            axis=None if x is None else (float(x[0]), float(x[1]), float(x[2])),
            geometry=_geometry(row, kind, where),
            elastic=elastic,
            friction=Friction(**friction),
            motor_counts=count(row, "motor_counts", where),
            joint_counts=count(row, "joint_counts", where),
        )


def _geometry(row: dict[str, Any], kind: Kind, where: str) -> Geometry:
    out: Geometry = {k: number(row, k, where) if k in row else v for k, v in kind.optional.items()}
    out |= {k: numbers(row, k, (3,), where) for k in kind.vectors}
    out |= {k: numbers(row, k, (2, 3), where) for k in kind.pairs}
    out |= {k: number(row, k, where) for k in kind.numbers}
    return out


def _motor(row: Any, where: str) -> Motor:
    where = check_row(row, MOTOR_KEYS, where)
    check_keys(row, MOTOR_KEYS, MOTOR_KEYS, where)
    about, across = numbers(row, "inertia", (2,), where)
    values = {k: number(row, k, where) for k in MOTOR_KEYS if k not in ("name", "inertia")}
    return build_row(where, Motor, name=str(row["name"]), inertia=(float(about), float(across)), **values)


def _mirrored(row: dict[str, Any], kind: Kind, axis: int, where: str) -> dict[str, Any]:
    if row["kind"] == "vergence":
        raise RobotError(f"{where}: a vergence turns both cameras and has no mirror image: leave 'mirror' out")
    out = row | {"name": _other(str(row["name"]), where)}
    out["joints"] = [_other(str(j), where) for j in _listed(row["joints"])]
    if "carrier" in row:
        out["carrier"] = mirrored_name(str(row["carrier"]))
    sign = np.ones(3)
    sign[axis] = -1
    out |= {k: sign * np.asarray(row[k], float) for k in (*kind.vectors, *kind.pairs)}
    if "axis" in row:  # axial vector: mirrors with the opposite sign
        out["axis"] = -sign * np.asarray(row["axis"], float)
    return out


def _other(name: str, where: str) -> str:
    other = mirrored_name(name)
    if other == name:
        raise RobotError(f"{where}: '{name}' names no side (l_, r_, left_, ...), so it cannot be mirrored")
    return other


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
