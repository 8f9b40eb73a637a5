"""Network inputs from sensed values: terms, scales, clips, history, gait clock."""

from __future__ import annotations

import numpy as np

from humanoid_control.policy.model import (
    BOTH_PI,
    FILL_ZERO,
    NEWEST_FIRST,
    PER_TERM,
    RUNNING,
    SILENT,
    Block,
    GaitSignal,
    PolicyModel,
    Term,
)
from humanoid_control.policy.terms import KINDS, STANDS_BELOW, Sensed


class BlockHistory:
    """Frames of one block.

    Args:
        place: indices of the block's terms in the vector of all terms (frame,).
    """

    def __init__(self, block: Block, place: np.ndarray) -> None:
        self.place = place
        self.delayed, self.fill = block.delayed, block.fill
        length = max((t.history for t in block.terms), default=1)
        width = sum(t.size for t in block.terms)
        self.frames = np.zeros((length, width))  # oldest first
        rows = []
        begins = np.cumsum([0, *(t.size for t in block.terms)])
        if block.layout == PER_TERM:
            for term, begin in zip(block.terms, begins, strict=False):
                inside = np.arange(begin, begin + term.size)
                rows += [f * width + inside for f in self._order(block, length, term.history)]
        else:
            rows += [f * width + np.arange(width) for f in self._order(block, length, length)]
        self.index = np.concatenate(rows) if rows else np.zeros(0, dtype=int)
        self._begun = False

    @staticmethod
    def _order(block: Block, length: int, history: int) -> range:
        oldest, newest = length - history, length - 1
        return range(newest, oldest - 1, -1) if block.order == NEWEST_FIRST else range(oldest, newest + 1)

    def reset(self) -> None:
        """Clear the history."""
        self.frames[:] = 0.0
        self._begun = False

    def numbers(self, terms: np.ndarray) -> np.ndarray:
        """Add a frame of all `terms`; return the block's numbers."""
        frame = terms[self.place]
        if not self._begun:
            self._begun = True
            if self.fill != FILL_ZERO:
                self.frames[:] = frame
        if self.delayed:
            out = self.frames.ravel()[self.index]
            self._push(frame)
            return out
        self._push(frame)
        return self.frames.ravel()[self.index]

    def _push(self, frame: np.ndarray) -> None:
        if len(self.frames) > 1:
            self.frames[:-1] = self.frames[1:]
        self.frames[-1] = frame


class ObservationBuilder:
    """Observations of a policy at each step."""

    def __init__(self, model: PolicyModel, dtypes: dict[str, str] | None = None) -> None:
        """Lay out the terms.

        Args:
            dtypes: types of inputs other than float32.
        """
        self.terms: list[Term] = []
        places: dict[Term, np.ndarray] = {}
        size = 0
        for term in model.terms:
            plain = Term(term.name, term.kind, term.size, term.scale, term.clip, 1, term.joints)
            if plain not in places:
                places[plain] = np.arange(size, size + plain.size)
                self.terms.append(plain)
                size += plain.size
        place = {joint: k for k, joint in enumerate(model.joints)}
        self._values = [
            (KINDS[t.kind].value, t, np.array([place[j] for j in t.joints], dtype=int), slice(at[0], at[0] + t.size))
            for t in self.terms
            for at in [places[t]]
        ]
        self.vector = np.zeros(size)
        self._scale = np.array([s for t in self.terms for s in t.scale])
        bounds = [t.clip if t.clip is not None else (-np.inf, np.inf) for t in self.terms for _ in range(t.size)]
        self._low, self._high = np.array(bounds).reshape(-1, 2).T
        self._bounded = bool(np.isfinite(self._low).any() or np.isfinite(self._high).any())
        self.inputs = []
        for one in model.inputs:
            blocks = []
            for block in one.blocks:
                plain_terms = [Term(t.name, t.kind, t.size, t.scale, t.clip, 1, t.joints) for t in block.terms]
                found = [places[t] for t in plain_terms]
                blocks.append(BlockHistory(block, np.concatenate(found) if found else np.zeros(0, dtype=int)))
            if blocks:
                self.inputs.append((one.name, one.shape, (dtypes or {}).get(one.name, "float32"), blocks))

    def reset(self) -> None:
        """Clear the history."""
        for _, _, _, blocks in self.inputs:
            for block in blocks:
                block.reset()

    def frame(self, sensed: Sensed) -> np.ndarray:
        """Return all terms, scaled and clipped; overwritten."""
        for value, term, joints, place in self._values:
            self.vector[place] = value(sensed, term, joints)
        self.vector *= self._scale
        if self._bounded:
            np.clip(self.vector, self._low, self._high, out=self.vector)
        return self.vector

    def build(self, sensed: Sensed) -> dict[str, np.ndarray]:
        """Return observations by input, and advance the history."""
        terms = self.frame(sensed)
        return {
            name: np.concatenate([b.numbers(terms) for b in blocks]).astype(dtype).reshape(shape)
            for name, shape, dtype, blocks in self.inputs
        }


# -------- The clock of a gait

TURN = 2.0 * np.pi


class GaitClock:
    """Gait phases in [-pi, pi).

    Attributes:
        phases: at least two [rad]; NaN: silent.
    """

    def __init__(self, gait: GaitSignal, period: float) -> None:
        """Set the clock; `period` of the policy [s]."""
        self._gait, self._step = gait, TURN * period / gait.period
        self.phases = np.zeros(max(len(gait.phases), 2))
        self.reset()

    def reset(self) -> None:
        """Reset to rest."""
        self._rests = self._gait.rest != RUNNING
        self._begin()
        if self._rests:
            self._hold()

    def _begin(self) -> None:
        self.phases = np.resize(np.array(self._gait.phases), len(self.phases))

    def _hold(self) -> None:
        self.phases = np.full(len(self.phases), {BOTH_PI: np.pi, SILENT: np.nan}.get(self._gait.rest, 0.0))

    def advance(self, command: np.ndarray) -> None:
        """Advance by one policy period.

        Args:
            command: velocity (3,) [m/s], [rad/s]; near zero the clock rests.
        """
        self.phases = np.fmod(self.phases + self._step + np.pi, TURN) - np.pi
        if self._gait.rest == RUNNING:
            return
        if np.linalg.norm(command[:2]) < STANDS_BELOW and abs(command[2]) < STANDS_BELOW:
            self._hold()
            self._rests = True
        elif self._rests:
            self._begin()
            self._rests = False


# -------- At rest


def rest_sensed(model: PolicyModel) -> Sensed:
    """Return sensed values of a robot standing in the rest posture."""
    rest, n = model.default, len(model.joints)
    reference = {
        "joint_pos": model.default,
        "joint_vel": np.zeros(n),
        "anchor_pos_b": np.zeros(3),
        "anchor_ori_b": np.array([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]),
        "base_lin_vel_xy": np.zeros(2),
        "base_height": np.array([STANDING_HEIGHT]),
        "roll_pitch": np.zeros(2),
        "yaw_rate": np.zeros(1),
    }
    return Sensed(
        q=rest,
        v=np.zeros(n),
        rest=rest,
        linear_velocity=np.zeros(3),
        height=STANDING_HEIGHT,
        action=np.zeros(len(model.acted)),
        target=model.undriven,
        phases=np.full(2, np.pi),
        height_command=model.height_command,
        reference=reference,
    )


STANDING_HEIGHT = 0.79  # [m] G1 base height, used without a robot


def rest_inputs(model: PolicyModel, dtypes: dict[str, str] | None = None) -> dict[str, np.ndarray]:
    """Return all network inputs at rest."""
    out = ObservationBuilder(model, dtypes).build(rest_sensed(model))
    for one in model.inputs:
        if one.name not in out:
            out[one.name] = np.zeros(one.shape, dtype=(dtypes or {}).get(one.name, "float32"))
    return out
