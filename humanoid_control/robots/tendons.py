"""Tendons of a robot from a file next to its URDF, such as `hrp2.tendons.yaml` (docs/tendons.md)."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError, RobotError, UnknownNameError
from humanoid_control.files import (
    build_row,
    check_keys,
    check_row,
    known,
    mirrored_name,
    number,
    numbers,
    rows_of,
    schema_file,
)
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.robots.robot import Robot
from humanoid_control.tendons.control.holdable import HoldableSet, holdable_limits
from humanoid_control.tendons.estimator.grouping import find_groups
from humanoid_control.tendons.files.cardsflow import refuse_millimetres
from humanoid_control.tendons.mappings.exact import group_mappings
from humanoid_control.tendons.mappings.fitting import load_mapping
from humanoid_control.tendons.mappings.mapping import JointMuscleMapping
from humanoid_control.tendons.mappings.postures import random_postures
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import (
    CYLINDER,
    SPHERE,
    Pulley,
    Tendon,
    TendonGroup,
    TendonSet,
    Vec3,
    ViaPoint,
    Wrap,
    complete_groups,
    joint_owners,
)
from humanoid_control.tendons.unit import MuscleUnit, WinchMotor, unit_of_motor

# -------- File

SCHEMA = "humanoid_tendons/1"
FILE_KEYS = ("schema", "robot", "provenance", "tendons", "groups", "units")
OWN_KEYS = ("viscous", "friction", "stiffness", "damping", "stiffening")  # override those of the unit
TENDON_KEYS = ("name", "group", "points", "mirror", "min_tension", "max_tension", "unit", *OWN_KEYS)
MOTOR_KEYS = ("rotor", "gear", "drum", "torque_constant", "efficiency", "speed", "current")
WIRE_KEYS = ("mass", "force", "speed")  # of a unit with values at the wire
UNIT_KEYS = tuple(dict.fromkeys((*MOTOR_KEYS, *WIRE_KEYS, *OWN_KEYS, "force_per_current", "resistance", "thermal")))
GROUP_KEYS = ("own", "borrow", "tendons")
NEEDS_TENDON_FILE = "it needs a file next to its URDF, of the same name but ending in .tendons.yaml (docs/tendons.md)"
SOLID_KEYS = {SPHERE: ("centre", "radius", "side"), CYLINDER: ("centre", "axis", "radius", "side")}


def tendons_of(robot: Robot) -> TendonSet:
    """Return the tendons of a robot, if any; raises as `read_tendon_file`."""
    return read_tendon_file(robot.tendons, robot) if robot.tendons is not None else TendonSet(())


def tendon_geometry(robot: Robot, group: str | None = None, joints: Iterable[str] | None = None) -> TendonGeometry:
    """Return lengths and moment arms of a robot's tendons.

    Args:
        group: its tendons only, over own, then borrowed joints.
        joints: order of the joint vector; default: group, or all crossed.

    Raises:
        RobotError: if the robot has no tendons.
        UnknownNameError: if the group is unknown.
    """
    tendons = tendons_of(robot)
    if not len(tendons):
        raise RobotError(f"{robot.name} has no tendons: {NEEDS_TENDON_FILE}")
    if group is None:
        return TendonGeometry(robot.model, tendons, joints)
    found = tendons.groups[known("group", group, tendons.groups, tendons.where)]
    return TendonGeometry(robot.model, tendons.only(found.tendons), found.joints if joints is None else joints)


def read_tendon_file(path: Path, robot: Robot) -> TendonSet:
    """Read a tendon file and check its names.

    Raises:
        RobotError: if a value is invalid; names file and place.
        UnknownNameError: if a name is unknown.
    """
    d = schema_file(path, SCHEMA, "tendon file")
    check_keys(d, FILE_KEYS, ("tendons",), str(path))
    links = parse_urdf(robot.urdf, robot.name).links
    units = read_units(d.get("units") or {}, f"{path}: units")
    tendons: list[Tendon] = []
    for k, row in enumerate(rows_of(d, "tendons", str(path))):
        where = check_row(row, TENDON_KEYS, f"{path}: tendons[{k}]")
        check_keys(row, TENDON_KEYS, ("name", "points"), where)
        for each in (row, mirrored(row, where)) if row.get("mirror") else (row,):
            tendons.append(_tendon(each, links, units, where))
    groups = _groups(d.get("groups") or {}, tendons, robot, str(path))
    return TendonSet(tuple(tendons), groups, str(path))


def read_units(rows: Any, where: str) -> dict[str, MuscleUnit]:
    """Read muscle units by name, from motor, gear and drum, or from wire values.

    Raises:
        RobotError: if a value is invalid.
    """
    check_row(rows, ("unit name",), where)
    out = {}
    for name, row in rows.items():
        at = f"{where} '{name}'"
        check_row(row, UNIT_KEYS, at)
        by_motor = "rotor" in row
        check_keys(row, UNIT_KEYS, MOTOR_KEYS if by_motor else WIRE_KEYS, at)
        given: dict[str, Any] = {}
        for key in row:
            if key == "thermal":
                given[key] = tuple(numbers(row, key, (4,), at).tolist())
            elif key == "current" and isinstance(row[key], list):  # continuous, peak
                given[key] = float(numbers(row, key, (2,), at)[1])
            else:
                given[key] = number(row, key, at)
        try:
            if by_motor:
                motor = WinchMotor(**{key: given.pop(key) for key in MOTOR_KEYS})
                out[str(name)] = unit_of_motor(motor, **given)
            else:
                out[str(name)] = MuscleUnit(**given, estimated=False)
        except (ConfigError, TypeError) as e:
            raise RobotError(f"{at}: {e}") from None
    return out


def _unit_of(row: dict[str, Any], units: dict[str, MuscleUnit], where: str) -> MuscleUnit | None:
    """Return the unit of a tendon with its own values, or None."""
    own: dict[str, Any] = {key: number(row, key, where) for key in OWN_KEYS if key in row}
    if "unit" not in row and not own:
        return None
    unit = units[known("unit", str(row["unit"]), units, where)] if "unit" in row else MuscleUnit()
    try:
        return replace(unit, **own)
    except ConfigError as e:
        raise RobotError(f"{where}: {e}") from None


def _tendon(row: dict[str, Any], links: list[str], units: dict[str, MuscleUnit], where: str) -> Tendon:
    path = [_step(step, links, where) for step in rows_of(row, "points", where)]
    refuse_millimetres([e.xyz for e in path if isinstance(e, ViaPoint)], where)
    refuse_millimetres([e.centre for e in path if isinstance(e, Wrap)], where)
    tension: dict[str, Any] = {k: number(row, k, where) for k in ("min_tension", "max_tension") if k in row}
    more: dict[str, Any] = {**tension, "unit": _unit_of(row, units, where)}
    return build_row(where, Tendon, str(row["name"]), tuple(path), str(row.get("group", "")), **more)


def _step(step: Any, links: list[str], where: str) -> ViaPoint | Wrap | Pulley:
    if isinstance(step, list):
        if len(step) != 4:
            raise RobotError(f"{where}: a point must be [link, x, y, z], got {step}")
        xyz = numbers({f"point on {step[0]}": step[1:]}, f"point on {step[0]}", (3,), where)
        return ViaPoint(known("link", str(step[0]), links, where), _vec(xyz))
    if not isinstance(step, dict):
        raise RobotError(f"{where}: a step of a path is [link, x, y, z] or a solid or a pulley, got {step}")
    if "pulley" in step:
        check_keys(step, ("pulley",), (), where)
        return build_row(where, Pulley, number(step, "pulley", where))
    kind = next((k for k in SOLID_KEYS if k in step), None)
    if kind is None:
        raise RobotError(f"{where}: a path step must be a point, a sphere, a cylinder or a pulley, got {step}")
    check_keys(step, (kind, *SOLID_KEYS[kind]), ("centre", "radius"), where)
    link = known("link", str(step[kind]), links, where)
    vectors: dict[str, Vec3] = {k: _vec(numbers(step, k, (3,), where)) for k in ("axis", "side") if k in step}
    centre, radius = _vec(numbers(step, "centre", (3,), where)), number(step, "radius", where)
    return build_row(where, Wrap, kind, link, centre, radius, **vectors)


def _groups(rows: Any, tendons: list[Tendon], robot: Robot, path: str) -> dict[str, TendonGroup]:
    where = f"{path}: groups"
    check_row(rows, ("group name",), where)
    out = {}
    for name, row in rows.items():
        at = f"{where} '{name}'"
        check_row(row, GROUP_KEYS, at)
        check_keys(row, GROUP_KEYS, ("own",), at)
        own, borrow = (names_of(row, key, robot.index, "joint", at) for key in ("own", "borrow"))
        if double := sorted(set(own) & set(borrow)):
            raise RobotError(f"{at}: it both owns and borrows the joint '{double[0]}'")
        members = tuple(t.name for t in tendons if t.group == name)
        listed = names_of(row, "tendons", [t.name for t in tendons], "tendon", at)
        out[str(name)] = TendonGroup(str(name), own, borrow, listed or members)
    for t in tendons:
        if out and t.group:
            known("group", t.group, out, f"tendon '{t.name}' in {path}")
    return out


def names_of(row: dict[str, Any], key: str, names: Iterable[str], kind: str, where: str) -> tuple[str, ...]:
    """Return a list of known, distinct names; empty if the key is missing.

    Raises:
        UnknownNameError: if a name is unknown.
        RobotError: if a name is repeated.
    """
    names = tuple(names)
    out = tuple(known(kind, str(n), names, where) for n in rows_of(row, key, where))
    if double := sorted({n for n in out if out.count(n) > 1}):
        raise RobotError(f"{where}: '{key}' contains '{double[0]}' twice")
    return out


def _vec(x: np.ndarray) -> Vec3:
    return (float(x[0]), float(x[1]), float(x[2]))


# -------- Mirror images of rows


def mirrored(row: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the row of the other side: mirrored names, one negated coordinate.

    Raises:
        RobotError: if the axis is invalid, or if the name has no side.
    """
    axis = row["mirror"]
    if axis not in ("x", "y", "z"):
        raise RobotError(f"{where}: mirror must be x, y or z, got '{axis}'")
    if mirrored_name(str(row["name"])) == row["name"]:
        raise RobotError(f"{where}: '{row['name']}' names no side (l_, r_, left_, ...), so it cannot be mirrored")
    out = {k: v for k, v in row.items() if k != "mirror"}
    out["name"] = mirrored_name(str(row["name"]))
    if "group" in row:
        out["group"] = mirrored_name(str(row["group"]))
    if isinstance(row.get("points"), list):
        out["points"] = [_mirrored_step(step, "xyz".index(axis)) for step in row["points"]]
    return out


def _mirrored_step(step: Any, k: int) -> Any:
    if isinstance(step, list) and len(step) == 4:
        return [mirrored_name(str(step[0])), *_flipped(step[1:], k)]
    if isinstance(step, dict):
        flipped = {key: _flipped(v, k) if key in ("centre", "axis", "side") else v for key, v in step.items()}
        return {key: mirrored_name(v) if isinstance(v, str) else v for key, v in flipped.items()}
    return step


def _flipped(x: Any, k: int) -> Any:
    if isinstance(x, list) and len(x) == 3 and isinstance(x[k], int | float):
        return [-v if i == k else v for i, v in enumerate(x)]
    return x


# -------- Groups and mappings

GROUPINGS = {
    "file": "as in the tendon file of the robot; other joints that the tendons cross are assumed at zero",
    "completed": "as in the tendon file, borrowing every joint that the tendons cross",
    "whole": "all joints in one group",
    "automatic": "derived from the moment arms, and completed",
}
_POSTURES = 200  # of automatic grouping


def tendon_groups(robot: Robot, how: str = "completed") -> tuple[TendonGroup, ...]:
    """Return the groups in which joints are estimated; `how`: one of GROUPINGS.

    Raises:
        UnknownNameError: if `how` is unknown.
        RobotError: if tendons or groups are missing.
        ConfigError: if groups contradict each other.
    """
    if how not in GROUPINGS:
        raise UnknownNameError("way to group tendons", how, GROUPINGS)
    whole = tendon_geometry(robot)
    if how == "whole":
        return (TendonGroup("whole", whole.joint_names, (), whole.tendon_names),)
    if how == "automatic":
        arms = whole.jacobians_of(random_postures(whole.limits, _POSTURES))
        groups = find_groups(arms, whole.joint_names, whole.tendon_names, whole.limits).groups
    else:
        groups = tuple(tendons_of(robot).groups.values())
        if not groups:
            raise RobotError(f"{robot.tendons}: lists no joint groups; use the groups 'whole' or 'automatic'")
    if how != "file":
        groups = complete_groups(groups, whole.crossed, whole.joint_names, whole.tendon_names)
    joint_owners(groups)
    return groups


def tendon_mappings(
    robot: Robot, groups: Sequence[TendonGroup], file: Path | None = None
) -> dict[str, JointMuscleMapping]:
    """Return the geometric mapping of each group by name; `file` replaces one by a fitted mapping.

    Raises:
        ConfigError: if the file is invalid or fits no group.
    """
    out: dict[str, JointMuscleMapping] = dict(group_mappings(robot.model, tendons_of(robot), groups))
    if file is None:
        return out
    fitted = load_mapping(file)
    of = (fitted.joint_names, fitted.muscle_names)
    for g in groups:
        if of == (g.joints, g.tendons):
            out[g.name] = load_mapping(file, out[g.name].model_hash)
            return out
    known = {n for g in groups for n in (*g.joints, *g.tendons)}
    strange = [n for names in of for n in names if n not in known]
    if strange:
        raise ConfigError(f"mapping file {file}: belongs to another robot, {robot.name} has no '{strange[0]}'")
    raise ConfigError(
        f"mapping file {file}: no group has its joints and tendons ({', '.join(fitted.joint_names)}); "
        "choose the groups that it was fitted for"
    )


def within_tendons(robot: Robot) -> tuple[Robot, float]:
    """Narrow the joint ranges so that tendons hold 99 % of the postures against gravity.

    Returns:
        A copy of the robot, and the remaining share of the ranges.

    Raises:
        RobotError: if the robot has no tendons.
    """
    geometry = tendon_geometry(robot)
    joints = np.array([robot.joint_index(name) for name in geometry.joint_names])
    holdable = HoldableSet(robot.model, geometry, held=robot.q("neutral"))
    share, limits = holdable_limits(holdable, robot.postures["neutral"][joints])
    out = copy.copy(robot)
    out.lower, out.upper = robot.lower.copy(), robot.upper.copy()
    out.lower[joints], out.upper[joints] = limits.T
    return out, share
