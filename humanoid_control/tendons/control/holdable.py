"""Postures that tendons can hold: torque that no tensions give, the box of joint ranges that is held, the governor.

Gravity asks for the torques g(q), and tensions f in their range give -G^T f (G = dl/dq). Where no f gives g the joints
fall, whatever the law of control, so that this is known before anything moves (`HoldableSet`) and references stay where
they can be held (`ReferenceGovernor`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, SizeError
from humanoid_control.tendons.control.body_image import CorrectedGeometry
from humanoid_control.tendons.control.distribution import TensionDistribution
from humanoid_control.tendons.routing.geometry import TendonGeometry, link_frame

HELD = 0.5  # [N m] torque missed by a joint up to which a posture counts as held
BISECTIONS = 4
SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)
PRETENSION = 10.0  # [N] of a tendon whose file names no least tension: a wire without tension leaves its pulley


class TensionMargin(NamedTuple):
    """What tendons make of a posture.

    Attributes:
        missed: (D,) torque that they do not give [N m]. slack: what the most loaded tendon has left to its most [N].
        tensions: (M,) [N], of the distribution.
    """

    missed: np.ndarray
    slack: float
    tensions: np.ndarray

    @property
    def worst(self) -> float:
        """Largest torque that a joint misses [N m]."""
        return float(np.max(np.abs(self.missed), initial=0.0))


def tension_range(geometry: TendonGeometry) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest tensions (M,) [N] of the tendons' file; `PRETENSION` where it names no least one."""
    rows = np.array([(t.min_tension, t.max_tension) for t in geometry.tendons]).reshape(-1, 2)
    return np.where(rows[:, 0] > 0, rows[:, 0], np.minimum(PRETENSION, rows[:, 1])), rows[:, 1]


class HoldableSet:
    """Which postures the tendons of a robot hold against gravity.

    Attributes:
        model: with the payload. geometry: of the tendons over the joints (D,) that they cross.
        distribution: with the range of the tensions, which may be changed in place.
        joints: (D,) index of each of these joints among the velocities of the model.
    """

    def __init__(
        self,
        model: pin.Model,
        geometry: TendonGeometry,
        least: np.ndarray | None = None,
        most: np.ndarray | None = None,
        payload: Mapping[str, float] | None = None,
        held: np.ndarray | None = None,
    ) -> None:
        """Create the holdable set.

        Args:
            model: of a robot whose base is fixed. geometry: of its tendons.
            least, most: (M,) range of the tensions [N]; default: `tension_range`.
            payload: mass [kg] by the link that carries it at its origin, or the name of any other frame.
            held: (nq,) configuration of the joints that no tendon crosses; default: pinocchio's neutral one.

        Raises:
            ConfigError: a mass below 0 or not a number, a model with a free base. UnknownNameError: no such link.
        """
        if model.nq != model.nv:
            raise ConfigError("tendons hold a robot whose base is fixed; load it with a fixed base")
        self.model = with_payload(model, payload or {})
        self.geometry: TendonGeometry | CorrectedGeometry = geometry
        usual = tension_range(geometry)
        self.distribution = TensionDistribution(
            len(geometry.joint_names), usual[0] if least is None else least, usual[1] if most is None else most
        )
        self._data = self.model.createData()
        self.joints = np.array([self.model.joints[self.model.getJointId(n)].idx_v for n in geometry.joint_names])
        self._q = np.array(pin.neutral(model) if held is None else held, dtype=float)
        self._lengths = np.zeros(len(geometry.tendon_names))
        self.G = np.zeros((len(geometry.tendon_names), len(geometry.joint_names)))

    def gravity(self, theta: np.ndarray) -> np.ndarray:
        """Torques (D,) [N m] that hold the robot at rest with joints theta (D,) [rad]."""
        self._q[self.joints] = theta
        return pin.computeGeneralizedGravity(self.model, self._data, self._q)[self.joints]

    def margin(self, theta: np.ndarray) -> TensionMargin:
        """Margin at joints theta (D,) [rad], in arrays that are used again.

        Raises:
            SizeError: another number of joints. NotANumberError: not a number.
        """
        if np.shape(theta) != self.joints.shape:
            raise SizeError(f"tension margin: needs {len(self.joints)} joints, got {np.shape(theta)}")
        self.geometry.raw_into(theta, self._lengths, self.G)
        d = self.distribution
        f = d.solve(self.G, self.gravity(theta))
        return TensionMargin(d.missed, float(np.min(d.most - f)), f)

    def missed(self, thetas: np.ndarray) -> np.ndarray:
        """Torques missed (N, D) [N m] in postures (N, D) [rad]."""
        return np.array([self.margin(row).missed.copy() for row in thetas]).reshape(len(thetas), -1)


def with_payload(model: pin.Model, payload: Mapping[str, float]) -> pin.Model:
    """Return the model with point masses added.

    Args:
        payload: mass [kg] by the frame whose origin it is at.

    Raises:
        ConfigError: a mass below 0 or not a number. UnknownNameError: no such frame.
    """
    if not payload:
        return model
    out = model.copy()
    for name, mass in payload.items():
        if not 0 <= mass < float("inf"):
            raise ConfigError(f"payload at '{name}' must be 0 kg or more, got {mass:g}")
        frame = model.frames[model.getFrameId(name)] if model.existFrame(name) else link_frame(model, name, "payload")
        body = pin.Inertia(mass, frame.placement.translation, np.zeros((3, 3)))
        out.inertias[frame.parentJoint] = out.inertias[frame.parentJoint] + body
    return out


# -------- The range of motion


def scaled_range(limits: np.ndarray, neutral: np.ndarray, share: float) -> np.ndarray:
    """Joint ranges (D, 2) shrunk towards the neutral posture (D,) [rad] to a share of each side."""
    return neutral[:, None] + share * (limits - neutral[:, None])


def drawn_postures(limits: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """Postures (count, D) drawn evenly from ranges (D, 2)."""
    return np.random.default_rng(seed).uniform(limits[:, 0], limits[:, 1], (count, len(limits)))


def holdable_limits(
    holdable: HoldableSet, neutral: np.ndarray, share: float = 0.99, postures: int = 300, most_missed: float = HELD
) -> tuple[float, np.ndarray]:
    """Return the largest scale of the joint ranges around neutral of which a share is held, and the ranges (D, 2).

    Args:
        neutral: (D,) [rad]. share: of drawn postures that has to be held. postures: how many are drawn.
        most_missed: torque that a joint may miss [N m].
    """
    limits = holdable.geometry.limits
    unit = np.random.default_rng(0).uniform(size=(postures, len(limits)))

    def held(scale: float) -> bool:
        box = scaled_range(limits, neutral, scale)
        missed = np.abs(holdable.missed(box[:, 0] + unit * (box[:, 1] - box[:, 0]))).max(axis=1)
        return float(np.mean(missed <= most_missed)) >= share

    low, high = 0.0, 1.0
    if held(high):
        low = high
    for _ in range(6 if low < high else 0):  # to 1.6 % of the range
        middle = 0.5 * (low + high)
        low, high = (middle, high) if held(middle) else (low, middle)
    return low, scaled_range(limits, neutral, low)


@dataclass(frozen=True)
class RangeHeld:
    """How much of a share of the joint ranges is held.

    Attributes:
        share: of the range around neutral. held: share of drawn postures that are held. tension: mean [N] of the
            held ones. by_joint: (D,) share of postures in which a joint misses too much torque.
    """

    share: float
    held: float
    tension: float
    by_joint: np.ndarray


def ranges_held(
    holdable: HoldableSet, neutral: np.ndarray, shares: Sequence[float] = SHARES, postures: int = 300
) -> list[RangeHeld]:
    """Return how many drawn postures are held within shares of the joint ranges around neutral (D,) [rad]."""
    out = []
    for share in shares:
        rows = drawn_postures(scaled_range(holdable.geometry.limits, neutral, share), postures)
        missed, means = np.zeros(rows.shape), np.zeros(len(rows))
        for k, row in enumerate(rows):
            margin = holdable.margin(row)
            missed[k], means[k] = margin.missed, margin.tensions.mean()
        good = np.abs(missed).max(axis=1) <= HELD
        mean = float(means[good].mean()) if good.any() else float("nan")
        out.append(RangeHeld(share, float(good.mean()), mean, (np.abs(missed) > HELD).mean(axis=0)))
    return out


def losses_by_tendon(
    holdable: HoldableSet, neutral: np.ndarray, share: float = 0.4, postures: int = 100
) -> dict[str, float]:
    """Return, by each tendon's name, the share of held postures that are not held without that tendon.

    Args:
        neutral: (D,) [rad]. share: of the joint ranges around neutral. postures: how many are drawn.
    """
    rows = drawn_postures(scaled_range(holdable.geometry.limits, neutral, share), postures)
    held = rows[np.abs(holdable.missed(rows)).max(axis=1) <= HELD]
    d, out = holdable.distribution, {}
    for k, name in enumerate(holdable.geometry.tendon_names):
        usual = d.least[k], d.most[k]
        d.least[k] = d.most[k] = 0.0
        lost = np.abs(holdable.missed(held)).max(axis=1) > HELD if len(held) else np.zeros(0)
        out[name] = float(np.mean(lost)) if len(held) else float("nan")
        d.least[k], d.most[k] = usual
    return out


# -------- References that stay where they can be held


class ReferenceGovernor:
    """Advances references as far as the tendons can hold them.

    A step that no tensions hold is cut to the last share of it that is held. A step that lessens the torque missed is
    always taken, so that a robot that starts beyond what it can hold may come back.

    Attributes:
        most_missed: torque that a joint may miss [N m]; 0: references pass as they are.
        reference: (D,) the last one that was let through [rad].
        joint: index of the joint that misses most where a step was cut; -1 where none was.
        tendons: indices of the tendons at their greatest tension then, which cross that joint.
    """

    def __init__(self, holdable: HoldableSet, most_missed: float = 0.3) -> None:
        if not most_missed >= 0:
            raise ConfigError(f"governor must be 0 or more N m, got {most_missed:g}")
        self.holdable, self.most_missed = holdable, most_missed
        self.reference = np.zeros(len(holdable.joints))
        self.joint, self.tendons = -1, tuple[int, ...]()
        self._missed = 0.0

    def reset(self, theta: np.ndarray) -> None:
        """Begin at a posture (D,) [rad], held or not."""
        self.reference[:] = theta
        self._missed, self.joint, self.tendons = self.holdable.margin(self.reference).worst, -1, ()

    def step(self, wanted: np.ndarray) -> np.ndarray:
        """Return the last reference (D,) [rad] on the way to the one wanted, in an array that is used again."""
        if self.most_missed == 0:
            self.reference[:] = wanted
            self.joint, self.tendons = -1, ()
            return self.reference
        margin = self.holdable.margin(wanted)
        allowed = max(self.most_missed, self._missed)
        if margin.worst <= allowed:
            self._missed, self.joint, self.tendons = margin.worst, -1, ()
            self.reference[:] = wanted
            return self.reference
        self._name(margin)
        start, step, low, high = self.reference.copy(), wanted - self.reference, 0.0, 1.0
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            worst = self.holdable.margin(start + middle * step).worst
            if worst <= allowed:
                low, self._missed = middle, worst
            else:
                high = middle
        self.reference[:] = start + low * step
        return self.reference

    def _name(self, margin: TensionMargin) -> None:
        """Keep which joint cannot be held, and the tendons that are at their end there."""
        d, self.joint = self.holdable.distribution, int(np.argmax(np.abs(margin.missed)))
        pulling = self.holdable.G[:, self.joint] * margin.missed[self.joint] < 0
        full = margin.tensions >= d.most - 1e-6
        self.tendons = tuple(int(k) for k in np.flatnonzero(full & pulling))
