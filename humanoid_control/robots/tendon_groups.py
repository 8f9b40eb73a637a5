"""How a robot's tendons and joints are put into groups to be estimated, and the mapping of each group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from humanoid_control.errors import ConfigError, RobotError, UnknownNameError
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.tendon_file import tendon_geometry, tendons_of
from humanoid_control.tendons.grouping import find_groups
from humanoid_control.tendons.groups import completed, owners
from humanoid_control.tendons.mappings.group_geometry import group_mappings
from humanoid_control.tendons.mappings.mapping import JointMuscleMapping
from humanoid_control.tendons.mappings.mapping_file import load_mapping
from humanoid_control.tendons.mappings.posture_grid import random_postures
from humanoid_control.tendons.tendon import TendonGroup

GROUPINGS = {
    "file": "as the robot's file of tendons says; what else the tendons cross is taken to be at zero",
    "completed": "as the file says, with every joint borrowed that the tendons cross",
    "whole": "all joints in one group",
    "automatic": "found from the moment arms, and completed",
}
_POSTURES = 200  # that automatic grouping looks at


def tendon_groups(robot: Robot, how: str = "completed") -> tuple[TendonGroup, ...]:
    """The groups in which a robot's joints are estimated.

    Args:
        how: one of GROUPINGS.

    Raises:
        UnknownNameError: no such way. RobotError: the robot has no tendons, or its file no groups.
        ConfigError: groups that contradict each other.
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
            raise RobotError(f"{robot.tendons}: names no groups of joints; group them 'whole' or 'automatic'")
    if how != "file":
        groups = completed(groups, whole.crossed, whole.joint_names, whole.tendon_names)
    owners(groups)
    return groups


def tendon_mappings(
    robot: Robot, groups: Sequence[TendonGroup], file: Path | None = None
) -> dict[str, JointMuscleMapping]:
    """The mapping of each group by its name: the geometry, and for one group what a file holds.

    Raises:
        ConfigError: the file is none, is of another robot or model, or of joints and tendons that no group has.
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
        raise ConfigError(f"mapping file {file}: is of another robot, {robot.name} has no '{strange[0]}'")
    raise ConfigError(
        f"mapping file {file}: no group has its joints and tendons ({', '.join(fitted.joint_names)}); "
        "choose the groups that it was fitted for"
    )
