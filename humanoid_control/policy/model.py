"""Description of a learned policy, whatever its file: inputs, outputs, joints, gains, rate, and what was assumed.

Every reader of `formats` fills a `PolicyModel`; the checks, the printed page and the controller need nothing else.
"""

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
    """A part of an observation.

    Attributes:
        name: as the file calls it.
        kind: of `terms.KINDS`.
        size: numbers in one frame.
        scale: (size,) factors, applied after the kind's value.
        clip: lower and upper bound after the scale; None: unbounded.
        history: frames that the network sees, 1: the present one only.
        joints: the joints of a term about joints, in its order.
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
    """Terms that follow each other in an input, with the layout of their history.

    Attributes:
        terms: in their order.
        layout: PER_TERM: all frames of a term, then the next term; PER_FRAME: all terms of a frame, then the next.
        order: of the frames.
        delayed: the present frame is not among them: the history ends one frame before.
        fill: what stands for frames before the first: the first one, or zeros.
    """

    terms: tuple[Term, ...]
    layout: str = PER_TERM
    order: str = OLDEST_FIRST
    delayed: bool = False
    fill: str = FILL_FIRST

    @property
    def size(self) -> int:
        """Numbers of the block in the input."""
        return sum(term.size * term.history for term in self.terms)


@dataclass(frozen=True)
class Input:
    """One input of the network; exactly one of the three sources is given.

    Attributes:
        name, shape: of the tensor; a dimension that the file leaves open is 1.
        blocks: of an observation.
        feedback: the output whose last value is fed back; zeros at first.
        time_step: the input counts the steps of a motion that the network holds.
    """

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
    """One output of the network: its kind is ACTION, TARGET, STIFFNESS, DAMPING, FEEDBACK or REFERENCE.channel."""

    name: str
    shape: tuple[int, ...]
    kind: str

    @property
    def size(self) -> int:
        """Numbers of the tensor."""
        return int(np.prod(self.shape)) if self.shape else 1


RUNNING, BOTH_PI, ZERO = "running", "both feet at pi", "zero"
RESTS = (RUNNING, BOTH_PI, ZERO)


class GaitSignal(NamedTuple):
    """Clock of a gait.

    Attributes:
        period: of a step cycle [s].
        phases: at its start [rad], a foot each.
        rest: of the phases where the commanded velocity is 0: they run on, are both pi, or are 0.
    """

    period: float
    phases: tuple[float, ...] = (0.0, float(np.pi))
    rest: str = BOTH_PI


class Assumption(NamedTuple):
    """A fact that the file does not state: what it is, the value taken, and who usually knows it."""

    what: str
    value: str
    known_by: str


@dataclass(frozen=True)
class PolicyModel:
    """A learned policy.

    Attributes:
        path: of the file that was read.
        form: its format.
        name: of the policy.
        network: path of the ONNX file; None where it is refused or missing.
        inputs, outputs: of the network.
        joints: all that it observes or drives, in the policy's order.
        acted: those that it drives, in the order of the action; kp, kd, scale, offset, torque_limit are in this order.
        default: (len(joints),) rest posture [rad].
        scale, offset: (len(acted),) target = offset + scale * action [rad].
        action_clip: bounds of the action before the scale.
        target_clip: (2, len(acted)) bounds of the target [rad].
        kp: (len(acted),) [N m/rad].
        kd: [N m s/rad]; NaN where an output of the network gives them.
        torque_limit: (len(acted),) [N m]; NaN: not stated.
        period: of the policy [s].
        commands: ranges of the commanded velocity by axis (`x`, `y` [m/s], `yaw` [rad/s], `heading` [rad]).
        gait: its clock, where a term needs one.
        imu: link in which it wants angular velocity and gravity; empty: the root link.
        anchor: link whose orientation a tracker compares.
        bodies: the tracked links.
        may_touch: pairs of links that the motion brings together on purpose: the gate leaves them alone.
        facts: further facts of the file, by name.
        assumed: facts that it does not state.
        contradictions: reasons not to run it, a line each.
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
    bodies: tuple[str, ...] = ()
    may_touch: tuple[tuple[str, str], ...] = ()
    facts: dict[str, str] = field(default_factory=dict)
    assumed: tuple[Assumption, ...] = ()
    contradictions: tuple[str, ...] = ()

    @property
    def terms(self) -> Iterator[Term]:
        """All terms of all inputs, in their order."""
        return (term for one in self.inputs for block in one.blocks for term in block.terms)

    @property
    def tracks(self) -> bool:
        """True for a policy that follows a motion, its own or one that is given."""
        return any(term.kind.startswith("reference_") for term in self.terms)

    def output(self, kind: str) -> Output | None:
        """The output of a kind; None where there is none."""
        return next((o for o in self.outputs if o.kind == kind), None)

    def rest_of(self, joint: str) -> float:
        """Rest posture of a joint [rad]."""
        return float(self.default[self.joints.index(joint)])
