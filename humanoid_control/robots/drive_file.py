"""The file of a robot's drives beside its URDF, `lola.drives.yaml`, which a user can write by hand.

schema: humanoid_drives/1
motors:
- {name: hip, torque_constant: 0.0875, resistance: 0.12, inductance: 0.00012, current_limit: 50, voltage_limit: 80,
   inertia: [0.00016, 0.0001]}                # about the shaft, across it
drives:
- {name: l_hip_flexion, mirror: y, kind: harmonic, joints: [l_hip_flexion], motor: hip, ratio: 80,
   elastic: {stiffness: 40000, damping: 20}, friction: {coulomb: 0.1, viscous: 0.0001}}
- {name: l_knee, mirror: y, kind: knee_screw, joints: [l_knee_flexion], motor: knee, lead: 0.005,
   hinge: [-0.045, 0, -0.14], pivot: [-0.034, 0, -0.043]}        # in the frames of thigh and shank

`mirror: y` adds the drive of the other side, its points with y negated.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import HumanoidError, RobotError
from humanoid_control.robots.drives import KINDS, Drive, DriveFile, Elasticity, Friction, Geometry, Kind, Motor
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.urdf_tree import link_of, parse_urdf
from humanoid_control.robots.yaml_rows import (
    check_keys,
    check_row,
    count,
    known,
    number,
    number_rows,
    numbers,
    rows_of,
)
from humanoid_control.yaml_file import schema_file

SCHEMA = "humanoid_drives/1"
FILE_KEYS = ("schema", "robot", "motors", "drives")
MOTOR_KEYS = ("name", "torque_constant", "resistance", "inductance", "current_limit", "voltage_limit", "inertia")
COUNT_KEYS = ("motor_counts", "joint_counts")
DRIVE_KEYS = ("name", "kind", "joints", "mirror", "carrier", "motor", "axis", "elastic", "friction", *COUNT_KEYS)
FRICTION_KEYS = tuple(Friction.__dataclass_fields__)
SIDES = {"l_": "r_", "r_": "l_"}


def drives_of(robot: Robot) -> DriveFile:
    """The drives of a robot from the file beside its URDF; none where it has no such file.

    Raises:
        RobotError, UnknownNameError: as `read_drive_file`.
    """
    return read_drive_file(robot.drives, robot) if robot.drives is not None else DriveFile()


def read_drive_file(path: Path, robot: Robot) -> DriveFile:
    """Read a file of drives and check its names against the robot.

    Raises:
        RobotError, UnknownNameError: one line that names the file, the place in it, and the nearest right word.
    """
    d = schema_file(path, SCHEMA, "file of drives")
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
    """Rows of drives, with the names of one robot."""

    def __init__(self, robot: Robot, motors: dict[str, Motor]) -> None:
        tree = parse_urdf(robot.urdf, robot.name)
        self.links, self.joints, self.motors = tree.links, robot.index, motors
        self.parents = {j.get("name", ""): link_of(j, "parent") for j in tree.joints}

    def rows(self, row: Any, where: str) -> list[Drive]:
        """The drive of a row, and its mirror image."""
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
        try:
            return Drive(
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
        except HumanoidError as e:
            raise RobotError(f"{where}: {e}") from None


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
    try:
        return Motor(name=str(row["name"]), inertia=(float(about), float(across)), **values)
    except HumanoidError as e:
        raise RobotError(f"{where}: {e}") from None


def _mirrored(row: dict[str, Any], kind: Kind, axis: int, where: str) -> dict[str, Any]:
    """The row of the other side: names with l_ and r_ exchanged, points and directions mirrored."""
    if row["kind"] == "vergence":
        raise RobotError(f"{where}: a vergence turns both cameras and has no mirror image: leave 'mirror' out")
    out = row | {"name": _other(str(row["name"]), where)}
    out["joints"] = [_other(str(j), where) for j in _listed(row["joints"])]
    if str(row.get("carrier", ""))[:2] in SIDES:
        out["carrier"] = _other(str(row["carrier"]), where)
    sign = np.ones(3)
    sign[axis] = -1
    out |= {k: sign * np.asarray(row[k], float) for k in (*kind.vectors, *kind.pairs)}
    if "axis" in row:  # an axis of rotation turns over where a direction does not
        out["axis"] = -sign * np.asarray(row["axis"], float)
    return out


def _other(name: str, where: str) -> str:
    if name[:2] not in SIDES:
        raise RobotError(f"{where}: '{name}' must begin with l_ or r_ to be mirrored")
    return SIDES[name[:2]] + name[2:]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
