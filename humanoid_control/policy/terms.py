"""Observation terms: function, unit, frame and file names of each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from humanoid_control.policy.model import Term

JOINTS, ACTIONS = "joints", "actions"  # sizes that depend on the policy


@dataclass
class Sensed:
    """Sensed values for the terms of one step; q, v, rest (n,) in policy order.

    Attributes:
        q: [rad].
        v: [rad/s].
        rest: [rad].
        gravity: downward unit vector, IMU axes (3,).
        angular_velocity: IMU axes (3,) [rad/s].
        linear_velocity: root link, own axes; NaN: unknown (3,) [m/s].
        orientation: IMU link in the world, x y z w (4,).
        roll: root link [rad].
        pitch: root link [rad].
        yaw: root link [rad].
        command: forward, sideward [m/s], yaw rate [rad/s].
        heading: commanded [rad].
        height: root link over the floor [m].
        target: external joint commands (n,) [rad].
        phases: gait clock [rad]; NaN: silent.
        progress: share of the motion that is over, 0 to 1.
        height_command: commanded height of the root link [m].
        reference: motion channels.
    """

    q: np.ndarray = field(default_factory=lambda: np.zeros(0))
    v: np.ndarray = field(default_factory=lambda: np.zeros(0))
    rest: np.ndarray = field(default_factory=lambda: np.zeros(0))
    gravity: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, -1.0]))
    angular_velocity: np.ndarray = field(default_factory=lambda: np.zeros(3))
    linear_velocity: np.ndarray = field(default_factory=lambda: np.full(3, np.nan))
    orientation: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 0.0, 1.0]))
    roll: float = 0.0
    pitch: float = 0.0
    yaw: float = 0.0
    command: np.ndarray = field(default_factory=lambda: np.zeros(3))
    heading: float = 0.0
    height: float = 0.0
    action: np.ndarray = field(default_factory=lambda: np.zeros(0))
    target: np.ndarray = field(default_factory=lambda: np.zeros(0))
    phases: np.ndarray = field(default_factory=lambda: np.zeros(2))
    progress: float = 0.0
    height_command: float = float("nan")
    reference: Mapping[str, np.ndarray] = field(default_factory=dict)


Value = Callable[[Sensed, Term, np.ndarray], np.ndarray]
"""Function of a kind: measurement, term, and indices of its joints in the policy."""


class TermKind(NamedTuple):
    """Kind of term.

    Attributes:
        size: count of its numbers, or `joints` or `actions` for one each; 0: any.
        unit: unit of the numbers before the scale of a term.
        frame: axes of the numbers, or empty.
        names: other names of the kind in files.
        value: function that returns the numbers (size,), before the scale of a term.
        refused: why such policies are not run; empty: they are.
    """

    size: int | str
    unit: str
    frame: str
    names: tuple[str, ...]
    value: Value
    refused: str = ""


def _moving(s: Sensed) -> float:
    return float(np.linalg.norm(s.command) >= STANDS_BELOW)


def _sines(phases: np.ndarray) -> np.ndarray:
    return np.nan_to_num(np.sin(phases))


def _cosines(phases: np.ndarray) -> np.ndarray:
    return np.nan_to_num(np.cos(phases))


def _channel(name: str) -> Value:
    return lambda s, t, k: s.reference[name]


def _none(s: Sensed, t: Term, k: np.ndarray) -> np.ndarray:
    return np.full(t.size, np.nan)


STANDS_BELOW = 0.01  # command below which a gait clock rests [m/s, rad/s]
ROOT, WORLD, IMU, NONE = "root link", "world", "IMU link", ""
KINDS: dict[str, TermKind] = {  # a new kind is one entry
    "base_ang_vel": TermKind(
        3,
        "rad/s",
        IMU,
        ("base_ang_vel", "ang_vel", "gyro", "base_angular_velocity"),
        lambda s, t, k: s.angular_velocity,
    ),
    "projected_gravity": TermKind(
        3, "1", IMU, ("projected_gravity", "gravity_vec", "gravity", "gravity_orientation"), lambda s, t, k: s.gravity
    ),
    "base_lin_vel": TermKind(
        3, "m/s", ROOT, ("base_lin_vel", "lin_vel", "base_linear_velocity"), lambda s, t, k: s.linear_velocity
    ),
    "base_height": TermKind(1, "m", WORLD, ("base_height",), lambda s, t, k: np.array([s.height])),
    "base_quat_wxyz": TermKind(
        4, "1", WORLD, ("base_quat", "base_quat_w", "root_link_quat_w"), lambda s, t, k: s.orientation[[3, 0, 1, 2]]
    ),
    "base_quat_xyzw": TermKind(4, "1", WORLD, ("base_quat_xyzw", "base_orientation"), lambda s, t, k: s.orientation),
    "roll_pitch": TermKind(2, "rad", WORLD, ("roll_pitch", "rpy", "imu"), lambda s, t, k: np.array([s.roll, s.pitch])),
    "joint_pos_rel": TermKind(
        JOINTS,
        "rad",
        NONE,
        ("joint_pos_rel", "joint_pos", "dof_pos", "joint_positions"),
        lambda s, t, k: s.q[k] - s.rest[k],
    ),
    "joint_pos_abs": TermKind(JOINTS, "rad", NONE, (), lambda s, t, k: s.q[k]),
    "joint_vel": TermKind(
        JOINTS, "rad/s", NONE, ("joint_vel_rel", "joint_vel", "dof_vel", "joint_velocities"), lambda s, t, k: s.v[k]
    ),
    "last_action": TermKind(
        ACTIONS,
        "1",
        NONE,
        ("last_action", "actions", "last_actions", "action", "previous_actions"),
        lambda s, t, k: s.action,
    ),
    "velocity_command": TermKind(
        3,
        "m/s, rad/s",
        ROOT,
        (
            "velocity_commands",
            "velocity_command",
            "commands",
            "command",
            "base_velocity",
            "generated_commands",
            "twist",
        ),
        lambda s, t, k: s.command,
    ),
    "command_lin_vel": TermKind(2, "m/s", ROOT, ("command_lin_vel",), lambda s, t, k: s.command[:2]),
    "command_ang_vel": TermKind(1, "rad/s", ROOT, ("command_ang_vel",), lambda s, t, k: s.command[2:]),
    "command_moves": TermKind(1, "0 or 1", NONE, ("command_stand",), lambda s, t, k: np.array([_moving(s)])),
    "command_waist": TermKind(3, "rad", NONE, ("command_waist_dofs",), lambda s, t, k: np.zeros(3)),
    "heading": TermKind(1, "rad", WORLD, ("heading", "command_heading"), lambda s, t, k: np.array([s.heading - s.yaw])),
    "joint_target": TermKind(JOINTS, "rad", NONE, ("ref_upper_dof_pos", "joint_target"), lambda s, t, k: s.target[k]),
    "sin_phase": TermKind(0, "1", NONE, ("sin_phase", "phase_sin"), lambda s, t, k: _sines(s.phases[: t.size])),
    "cos_phase": TermKind(0, "1", NONE, ("cos_phase", "phase_cos"), lambda s, t, k: _cosines(s.phases[: t.size])),
    "phase": TermKind(
        0,
        "1",
        NONE,
        ("gait_phase", "phase"),
        lambda s, t, k: np.concatenate([_sines(s.phases[: t.size // 2]), _cosines(s.phases[: t.size // 2])]),
    ),
    "motion_phase": TermKind(
        1, "1", NONE, ("ref_motion_phase", "motion_phase"), lambda s, t, k: np.array([s.progress])
    ),
    "command_height": TermKind(
        1, "m", WORLD, ("command_base_height", "command_height"), lambda s, t, k: np.array([s.height_command])
    ),
    "height_scan": TermKind(
        0, "m", ROOT, ("height_scan", "height_measurements", "heights"), _none, "no sensor measures the terrain"
    ),
    "reference_motion": TermKind(
        0,
        "rad, rad/s",
        NONE,
        ("motion_command", "whole_body_tracking/motion_command", "motion", "reference_motion"),
        lambda s, t, k: np.concatenate([s.reference["joint_pos"], s.reference["joint_vel"]]),
    ),
    "reference_joint_pos": TermKind(JOINTS, "rad", NONE, ("motion_joint_pos", "ref_joint_pos"), _channel("joint_pos")),
    "reference_joint_vel": TermKind(
        JOINTS, "rad/s", NONE, ("motion_joint_vel", "ref_joint_vel"), _channel("joint_vel")
    ),
    "reference_anchor_pos": TermKind(
        3, "m", "anchor link", ("motion_anchor_pos_b", "motion_ref_pos_b"), _channel("anchor_pos_b")
    ),
    "reference_anchor_ori": TermKind(
        6,
        "1",
        "anchor link",
        ("motion_anchor_ori_b", "motion_ref_ori_b", "whole_body_tracking/motion_anchor_ori_b"),
        _channel("anchor_ori_b"),
    ),
    "reference_base_lin_vel_xy": TermKind(2, "m/s", ROOT, ("motion_base_lin_vel_xy",), _channel("base_lin_vel_xy")),
    "reference_base_height": TermKind(1, "m", WORLD, ("motion_base_height",), _channel("base_height")),
    "reference_roll_pitch": TermKind(2, "rad", WORLD, ("motion_roll_pitch",), _channel("roll_pitch")),
    "reference_yaw_rate": TermKind(1, "rad/s", ROOT, ("motion_yaw_rate",), _channel("yaw_rate")),
}
NAMES = {name: kind for kind, row in KINDS.items() for name in (kind, *row.names)}


def kind_of(name: str) -> str | None:
    """Return the kind for a name in a file, or None."""
    plain = name.lower().rpartition("/")[2].removeprefix("obs_")
    return NAMES.get(name) or NAMES.get(plain) or NAMES.get(plain.removesuffix("_b"))


def size_of(kind: str, joints: int, actions: int) -> int:
    """Return the size of a kind; 0: open."""
    size = KINDS[kind].size
    if isinstance(size, int):
        return 2 * joints if kind == "reference_motion" else size
    return joints if size == JOINTS else actions
