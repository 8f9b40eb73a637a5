"""Format-independent description of a learned policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

OLDEST_FIRST, NEWEST_FIRST = "oldest first", "newest first"
ORDERS = (OLDEST_FIRST, NEWEST_FIRST)
PER_TERM, PER_FRAME = "per term", "per frame"
LAYOUTS = (PER_TERM, PER_FRAME)
FILL_FIRST, FILL_ZERO = "first", "zero"
FILLS = (FILL_FIRST, FILL_ZERO)

# Kinds of outputs
ACTION, TARGET, STIFFNESS, DAMPING, FEEDBACK = "action", "target", "kp", "kd", "feedback"
REFERENCE = "reference"  # followed by a dot and a channel of `REFERENCE_CHANNELS`
REFERENCE_CHANNELS = {
    "joint_pos": "joint positions [rad]",
    "joint_vel": "joint velocities [rad/s]",
    "anchor_pos": "position of the anchor link in the world [m]",
    "anchor_quat_xyzw": "orientation of the anchor link, quaternion x y z w",
    "body_pos": "positions of the tracked links in the world [m]",
    "body_quat_wxyz": "orientations of the tracked links, quaternions w x y z",
    "body_lin_vel": "velocities of the tracked links in the world [m/s]",
    "body_ang_vel": "angular velocities of the tracked links in the world [rad/s]",
}


@dataclass(frozen=True)
class Term:
    """Term of an observation.

    Attributes:
        size: numbers per frame.
        scale: factors after the kind's value (size,).
        clip: bounds after the scale; None: none.
        history: frames; 1: present only.
    """

    name: str
    kind: str
    size: int
    scale: tuple[float, ...]
    clip: tuple[float, float] | None = None
    history: int = 1
    joints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    """Consecutive terms of an input with common history.

    Attributes:
        layout: PER_TERM: all frames of a term, then the next; PER_FRAME: all terms of a frame, then the next.
        delayed: without the present frame.
        fill: before the first frame: that frame, or zeros.
    """

    terms: tuple[Term, ...]
    layout: str = PER_TERM
    order: str = OLDEST_FIRST
    delayed: bool = False
    fill: str = FILL_FIRST

    @property
    def size(self) -> int:
        """Numbers in the input."""
        return sum(term.size * term.history for term in self.terms)


@dataclass(frozen=True)
class Input:
    """Network input with exactly one of three sources: blocks, feedback (initially zero), time_step."""

    name: str
    shape: tuple[int, ...]
    blocks: tuple[Block, ...] = ()
    feedback: str = ""
    time_step: bool = False

    @property
    def size(self) -> int:
        """Numbers of the tensor."""
        return int(np.prod(self.shape)) if self.shape else 1


@dataclass(frozen=True)
class Output:
    """Network output of kind ACTION, TARGET, STIFFNESS, DAMPING, FEEDBACK or REFERENCE.channel."""

    name: str
    shape: tuple[int, ...]
    kind: str

    @property
    def size(self) -> int:
        """Numbers of the tensor."""
        return int(np.prod(self.shape)) if self.shape else 1


RUNNING, BOTH_PI, ZERO, SILENT = "running", "both feet at pi", "zero", "silent"
RESTS = (RUNNING, BOTH_PI, ZERO, SILENT)


class GaitSignal(NamedTuple):
    """Gait clock.

    Attributes:
        period: duration of a step cycle [s].
        phases: initial, by foot [rad].
        rest: at zero command phases run on, are pi, or 0; SILENT: sine and cosine are 0.
    """

    period: float
    phases: tuple[float, ...] = (0.0, float(np.pi))
    rest: str = BOTH_PI


class Assumption(NamedTuple):
    """Fact missing in the file: name, assumed value, usual source."""

    what: str
    value: str
    known_by: str


@dataclass(frozen=True)
class PolicyModel:
    """Learned policy.

    Attributes:
        network: ONNX file; None if rejected or missing.
        joints: observed or driven, in policy order.
        acted: driven, in action order (also of kp, kd, scale, offset, torque_limit).
        default: rest posture (len(joints),) [rad].
        scale: target = offset + scale * action (len(acted),) [rad].
        offset: (len(acted),) [rad].
        action_clip: bounds before the scale.
        target_clip: (2, len(acted)) [rad].
        kp: (len(acted),) [N m/rad].
        kd: [N m s/rad]; NaN: network outputs.
        torque_limit: (len(acted),) [N m]; NaN: not stated.
        period: [s].
        commands: velocity ranges by axis (`x`, `y` [m/s], `yaw` [rad/s], `heading` [rad]).
        imu: link of angular velocity and gravity; empty: root.
        anchor: link with tracked orientation.
        motion_length: duration of the motion whose progress is observed [s]; 0: none.
        height_command: commanded height of the root link [m]; NaN: none.
        held: posture of joints that neither it nor a command drives (len(joints),) [rad]; None: default.
        held_gains: kp [N m/rad] and kd [N m s/rad] of the same joints (2, len(joints)); None: not stated.
        start: first posture of its motion (len(joints),) [rad]; None: rest posture.
        may_touch: pairs of links that the gate ignores.
    """

    path: Path
    form: str
    name: str
    network: Path | None
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    joints: tuple[str, ...]
    acted: tuple[str, ...]
    default: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    kp: np.ndarray
    kd: np.ndarray
    period: float
    action_clip: tuple[float, float] | None = None
    target_clip: np.ndarray | None = None
    torque_limit: np.ndarray | None = None
    commands: dict[str, tuple[float, float]] = field(default_factory=dict)
    gait: GaitSignal | None = None
    imu: str = ""
    anchor: str = ""
    motion_length: float = 0.0
    height_command: float = float("nan")
    held: np.ndarray | None = None
    held_gains: np.ndarray | None = None
    start: np.ndarray | None = None
    bodies: tuple[str, ...] = ()
    may_touch: tuple[tuple[str, str], ...] = ()
    facts: dict[str, str] = field(default_factory=dict)
    assumed: tuple[Assumption, ...] = ()
    contradictions: tuple[str, ...] = ()

    @property
    def undriven(self) -> np.ndarray:
        """Posture of joints that neither it nor a command drives (len(joints),) [rad]."""
        return self.default if self.held is None else self.held

    @property
    def terms(self) -> Iterator[Term]:
        """All terms of all inputs."""
        return (term for one in self.inputs for block in one.blocks for term in block.terms)

    @property
    def tracks(self) -> bool:
        """True for motion trackers."""
        return any(term.kind.startswith("reference_") for term in self.terms)

    @property
    def follows_velocity(self) -> bool:
        """True if it observes a commanded velocity."""
        return any(term.kind in ("velocity_command", "command_lin_vel") for term in self.terms)

    def output(self, kind: str) -> Output | None:
        """Return the output of a kind, or None."""
        return next((o for o in self.outputs if o.kind == kind), None)

    def rest_of(self, joint: str) -> float:
        """Return the rest posture of a joint [rad]."""
        return float(self.default[self.joints.index(joint)])
