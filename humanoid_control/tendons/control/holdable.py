"""Holdable postures: missed torque, holdable joint ranges, and the reference governor.

If no tensions in range give the torques of gravity, no control law can hold a posture.
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

HELD = 0.5  # [N m] maximum missed torque of a held posture
BISECTIONS = 4
SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)
PRETENSION = 10.0  # [N] default minimum tension: a slack wire leaves its pulley


class TensionMargin(NamedTuple):
    """Tension margin of a posture.

    Attributes:
        missed: (D,) torque not given [N m].
        slack: smallest distance to a maximum [N].
        tensions: (M,) [N].
    """

    missed: np.ndarray
    slack: float
    tensions: np.ndarray

    @property
    def worst(self) -> float:
        """Largest missed joint torque [N m]."""
        return float(np.max(np.abs(self.missed), initial=0.0))


def tension_range(geometry: TendonGeometry) -> tuple[np.ndarray, np.ndarray]:
    """Return minimum and maximum tensions (M,) [N] of the source file; minimum `PRETENSION` if undefined."""
    rows = np.array([(t.min_tension, t.max_tension) for t in geometry.tendons]).reshape(-1, 2)
    return np.where(rows[:, 0] > 0, rows[:, 0], np.minimum(PRETENSION, rows[:, 1])), rows[:, 1]


class HoldableSet:
    """Postures that the tendons hold against gravity.

    Attributes:
        model: with payload.
        geometry: tendons over their crossed joints (D,).
        distribution: with tension range, changeable in place.
        joints: (D,) velocity indices in the model.
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
        """Create the set.

        Args:
            model: robot with a fixed base.
            geometry: M tendons.
            least: (M,) [N]; default: `tension_range`.
            most: (M,) [N]; default: `tension_range`.
            payload: mass [kg] at the origin of a link or frame, by name.
            held: configuration (nq,) of joints without tendons; default: neutral.

        Raises:
            ConfigError: if a mass is negative or not finite, or the base is free.
            UnknownNameError: if a frame is unknown.
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
        """Return the torques (D,) [N m] that hold theta (D,) [rad]."""
        self._q[self.joints] = theta
        return pin.computeGeneralizedGravity(self.model, self._data, self._q)[self.joints]

    def margin(self, theta: np.ndarray) -> TensionMargin:
        """Return the margin at theta (D,) [rad], in reused arrays.

        Raises:
            SizeError: if the number of joints is wrong.
            NotANumberError: if a value is not finite.
        """
        if np.shape(theta) != self.joints.shape:
            raise SizeError(f"tension margin: needs {len(self.joints)} joints, got {np.shape(theta)}")
        self.geometry.raw_into(theta, self._lengths, self.G)
        d = self.distribution
        f = d.solve(self.G, self.gravity(theta))
        return TensionMargin(d.missed, float(np.min(d.most - f)), f)

    def missed(self, thetas: np.ndarray) -> np.ndarray:
        """Return missed torques (N, D) [N m] at postures (N, D) [rad]."""
        return np.array([self.margin(row).missed.copy() for row in thetas]).reshape(len(thetas), -1)


def with_payload(model: pin.Model, payload: Mapping[str, float]) -> pin.Model:
    """Return the model with point masses [kg] at frame origins.

    Raises:
        ConfigError: if a mass is negative or not finite.
        UnknownNameError: if a frame is unknown.
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
    """Return joint ranges (D, 2), both sides scaled towards neutral (D,) [rad]."""
    return neutral[:, None] + share * (limits - neutral[:, None])


def drawn_postures(limits: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """Return uniform random postures (count, D) from ranges (D, 2)."""
    return np.random.default_rng(seed).uniform(limits[:, 0], limits[:, 1], (count, len(limits)))


def holdable_limits(
    holdable: HoldableSet, neutral: np.ndarray, share: float = 0.99, postures: int = 300, most_missed: float = HELD
) -> tuple[float, np.ndarray]:
    """Return the largest scale of the joint ranges with enough held postures, and the ranges (D, 2).

    Args:
        holdable: holdable set.
        neutral: (D,) [rad].
        share: required held fraction.
        postures: number of random postures.
        most_missed: maximum missed torque [N m].
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
    for _ in range(6 if low < high else 0):  # bisection, to 1.6 % of the range
        middle = 0.5 * (low + high)
        low, high = (middle, high) if held(middle) else (low, middle)
    return low, scaled_range(limits, neutral, low)


@dataclass(frozen=True)
class RangeHeld:
    """Held postures in a fraction of the joint ranges.

    Attributes:
        share: of the range around neutral.
        held: fraction of held postures.
        tension: mean of held postures [N].
        by_joint: (D,) fraction of postures in which the joint misses torque.
    """

    share: float
    held: float
    tension: float
    by_joint: np.ndarray


def ranges_held(
    holdable: HoldableSet, neutral: np.ndarray, shares: Sequence[float] = SHARES, postures: int = 300
) -> list[RangeHeld]:
    """Return held fractions of random postures within scaled joint ranges around neutral (D,) [rad]."""
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
    """Return, by tendon, the fraction of held postures lost without it.

    Args:
        holdable: holdable set.
        neutral: (D,) [rad].
        share: scale of the joint ranges.
        postures: number of random postures.
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
    """Advances references as far as the tendons can hold.

    An unholdable step is shortened. Steps that reduce the missed torque always pass.

    Attributes:
        most_missed: maximum missed torque [N m]; 0: no limit.
        reference: (D,) last accepted [rad].
        joint: with the most missed torque in a shortened step; -1: none.
        tendons: its saturated tendons.
    """

    def __init__(self, holdable: HoldableSet, most_missed: float = 0.3) -> None:
        if not most_missed >= 0:
            raise ConfigError(f"governor must be 0 or more N m, got {most_missed:g}")
        self.holdable, self.most_missed = holdable, most_missed
        self.reference = np.zeros(len(holdable.joints))
        self.joint, self.tendons = -1, tuple[int, ...]()
        self._missed = 0.0

    def reset(self, theta: np.ndarray) -> None:
        """Start at a posture (D,) [rad], held or not."""
        self.reference[:] = theta
        self._missed, self.joint, self.tendons = self.holdable.margin(self.reference).worst, -1, ()

    def step(self, wanted: np.ndarray) -> np.ndarray:
        """Return the farthest holdable reference (D,) [rad] towards `wanted`, in a reused array."""
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
        d, self.joint = self.holdable.distribution, int(np.argmax(np.abs(margin.missed)))
        pulling = self.holdable.G[:, self.joint] * margin.missed[self.joint] < 0
        full = margin.tensions >= d.most - 1e-6
        self.tendons = tuple(int(k) for k in np.flatnonzero(full & pulling))
