"""The file of a robot's tendons beside its URDF, `hrp2.tendons.yaml`, which a user can write by hand (docs/tendons.md).

schema: humanoid_tendons/1
tendons:
- {name: l_biceps, mirror: y, group: l_arm, points: [[chest, 0.04, 0.23, 0.2], [l_elbow, 0.025, 0, -0.045]]}
- {name: l_triceps, mirror: y, group: l_arm, min_tension: 10, max_tension: 300, points: [[chest, -0.04, 0.23, 0.15],
   {cylinder: l_upper_arm, centre: [0, 0, -0.25], axis: [0, 1, 0], radius: 0.02, side: [-0.05, 0, -0.25]},
   [l_elbow, -0.02, 0, -0.05]]}
groups:
  l_arm: {own: [l_shoulder_flexion, l_elbow_flexion], borrow: []}

Coordinates are metres in the frame of the link. `mirror: y` adds the tendon of the other side with y negated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from humanoid_control.errors import HumanoidError, RobotError
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.tendon_rows import mirrored, names_of
from humanoid_control.robots.urdf_tree import parse_urdf
from humanoid_control.robots.yaml_rows import check_keys, check_row, known, number, numbers, rows_of
from humanoid_control.tendons.files.units import refuse_millimetres
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import (
    CYLINDER,
    SPHERE,
    Point,
    Pulley,
    Tendon,
    TendonGroup,
    TendonSet,
    Vec3,
    Wrap,
)
from humanoid_control.yaml_file import schema_file

Step = TypeVar("Step")
SCHEMA = "humanoid_tendons/1"
FILE_KEYS = ("schema", "robot", "provenance", "tendons", "groups")
TENDON_KEYS = ("name", "group", "points", "mirror", "min_tension", "max_tension")
GROUP_KEYS = ("own", "borrow", "tendons")
WANTED = "it needs a file beside its URDF, of the same name but ending in .tendons.yaml (docs/tendons.md)"
SOLID_KEYS = {SPHERE: ("centre", "radius", "side"), CYLINDER: ("centre", "axis", "radius", "side")}


def tendons_of(robot: Robot) -> TendonSet:
    """The tendons of a robot from the file beside its URDF; none where it has no such file.

    Raises:
        RobotError, UnknownNameError: as `read_tendon_file`.
    """
    return read_tendon_file(robot.tendons, robot) if robot.tendons is not None else TendonSet(())


def tendon_geometry(robot: Robot, group: str | None = None, joints: Iterable[str] | None = None) -> TendonGeometry:
    """Lengths and moment arms of a robot's tendons.

    Args:
        robot: with a file of tendons.
        group: only the tendons of a group, over its own joints and then those it borrows.
        joints: the order of the joint vector; default: those of the group, or all that the tendons cross.

    Raises:
        RobotError: the robot has no tendons. UnknownNameError: no such group.
    """
    tendons = tendons_of(robot)
    if not len(tendons):
        raise RobotError(f"{robot.name} has no tendons: {WANTED}")
    if group is None:
        return TendonGeometry(robot.model, tendons, joints)
    found = tendons.groups[known("group", group, tendons.groups, tendons.where)]
    return TendonGeometry(robot.model, tendons.only(found.tendons), found.joints if joints is None else joints)


def read_tendon_file(path: Path, robot: Robot) -> TendonSet:
    """Read a file of tendons and check its names against the robot.

    Raises:
        RobotError, UnknownNameError: one line that names the file, the place in it, and the nearest right word.
    """
    d = schema_file(path, SCHEMA, "file of tendons")
    check_keys(d, FILE_KEYS, ("tendons",), str(path))
    links = parse_urdf(robot.urdf, robot.name).links
    tendons: list[Tendon] = []
    for k, row in enumerate(rows_of(d, "tendons", str(path))):
        where = check_row(row, TENDON_KEYS, f"{path}: tendons[{k}]")
        check_keys(row, TENDON_KEYS, ("name", "points"), where)
        for each in (row, mirrored(row, where)) if row.get("mirror") else (row,):
            tendons.append(_tendon(each, links, where))
    groups = _groups(d.get("groups") or {}, tendons, robot, str(path))
    return TendonSet(tuple(tendons), groups, str(path))


def _tendon(row: dict[str, Any], links: list[str], where: str) -> Tendon:
    path = [_step(step, links, where) for step in rows_of(row, "points", where)]
    refuse_millimetres([e.xyz for e in path if isinstance(e, Point)], where)
    refuse_millimetres([e.centre for e in path if isinstance(e, Wrap)], where)
    tension = {k: number(row, k, where) for k in ("min_tension", "max_tension") if k in row}
    return _made(where, Tendon, str(row["name"]), tuple(path), str(row.get("group", "")), **tension)


def _step(step: Any, links: list[str], where: str) -> Point | Wrap | Pulley:
    """One step of a path: a point, a solid, a pulley."""
    if isinstance(step, list):
        if len(step) != 4:
            raise RobotError(f"{where}: a point must be [link, x, y, z], got {step}")
        xyz = numbers({f"point on {step[0]}": step[1:]}, f"point on {step[0]}", (3,), where)
        return Point(known("link", str(step[0]), links, where), _vec(xyz))
    if not isinstance(step, dict):
        raise RobotError(f"{where}: a step of a path is [link, x, y, z] or a solid or a pulley, got {step}")
    if "pulley" in step:
        check_keys(step, ("pulley",), (), where)
        return _made(where, Pulley, number(step, "pulley", where))
    kind = next((k for k in SOLID_KEYS if k in step), None)
    if kind is None:
        raise RobotError(f"{where}: a step of a path that is no point must be a sphere, a cylinder or a pulley: {step}")
    check_keys(step, (kind, *SOLID_KEYS[kind]), ("centre", "radius"), where)
    link = known("link", str(step[kind]), links, where)
    vectors: dict[str, Vec3] = {k: _vec(numbers(step, k, (3,), where)) for k in ("axis", "side") if k in step}
    centre, radius = _vec(numbers(step, "centre", (3,), where)), number(step, "radius", where)
    return _made(where, Wrap, kind, link, centre, radius, **vectors)


def _made(where: str, make: Callable[..., Step], *args: Any, **more: Any) -> Step:
    """What is made of some values.

    Raises:
        RobotError: it refuses them; the message says where they are.
    """
    try:
        return make(*args, **more)
    except HumanoidError as e:
        raise RobotError(f"{where}: {e}") from None


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


def _vec(x: np.ndarray) -> Vec3:
    return (float(x[0]), float(x[1]), float(x[2]))
