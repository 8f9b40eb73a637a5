"""Built-in dance of trunk and arms on the spot, without contact: a score of joint moves in beats."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.mocap.clip import MarkerClip
from humanoid_control.mocap.human_model import MARKERS, HumanBody, human_markers, legs_to_feet
from humanoid_control.numerics.minimum_jerk import minimum_jerk

BOW = 17.8  # first beat of the bow
GENTLE_BOW, GENTLE_DURATION = 0.6, 30.0  # share of the bow; [s]
BEATS = 40.0
"""Length of the score [beats]; in 24 s, 100 beats per minute."""

STANDING: dict[str, float] = {
    **{f"{side}_{joint}": angle for side in "lr" for joint, angle in
       {"gh_abd": 14.0, "gh_rot": 10.0, "el_flex": 18.0, "sg_elev": 3.0}.items()},
    "wt_flex": 2.0,
}  # fmt: skip
"""Posture at start and end, and base of every move [degrees]; other joints are zero."""
STANDING_DROP = 0.012
"""Drop of the hips below their height over straight legs [m]: the knees are slightly bent."""


@dataclass(frozen=True)
class Move:
    """Contribution to one joint.

    Attributes:
        amount: peak [degrees; m for pelvis_x y z].
        start: beat; exactly zero before.
        end: beat; exactly zero after.
        cycles: 0: raise and hold; n > 0: n swings both ways; n < 0: -n one-way pulses.
        ramp: beats of the onset.
        fade: beats of the fade-out; default: `ramp`.
    """

    joint: str
    amount: float
    start: float
    end: float
    cycles: float = 0.0
    ramp: float = 1.0
    fade: float | None = None

    def at(self, beat: np.ndarray) -> np.ndarray:
        """Return the contribution (T,) at the given beats, twice continuously differentiable."""
        window = _smooth((beat - self.start) / self.ramp) * _smooth((self.end - beat) / (self.fade or self.ramp))
        phase = 2 * np.pi * abs(self.cycles) * (beat - self.start) / (self.end - self.start)
        if self.cycles > 0:
            return self.amount * window * np.sin(phase)
        if self.cycles < 0:
            return self.amount * window * (1 - np.cos(phase)) / 2
        return self.amount * window


def _smooth(share: np.ndarray) -> np.ndarray:
    """Return 0, 1, and between them the quintic with zero end slopes and curvatures."""
    return minimum_jerk(np.clip(share, 0.0, 1.0))


def _both(joint: str, *arguments: float) -> list[Move]:
    """Return the move on both sides."""
    return [Move(f"{side}_{joint}", *arguments) for side in "lr"]


SCORE: tuple[Move, ...] = (
    # Groove under everything: knees bend on every beat, hips sway away from the stepping foot.
    Move("pelvis_z", -0.035, 2, 38, -36),
    Move("pelvis_y", -0.045, 2, 38, 18),
    Move("pelvis_roll", -4, 2, 38, 18),
    Move("pelvis_yaw", 10, 10, 36, 6.5, 2),
    Move("wt_lat", 5, 2, 38, 18),
    Move("wt_rot", 5, 3, 18, 7.5),
    # Shrugs: both, then alternating; then shoulders forward and back. The arms swing with the steps.
    *_both("sg_elev", 24, 2, 5, -3, 0.5),
    Move("l_sg_elev", 26, 5, 8, -2, 0.5),
    Move("r_sg_elev", 26, 5.75, 8.75, -2, 0.5),
    *_both("sg_prot", 20, 7, 11, 2),
    Move("l_gh_flex", -16, 3.5, 8.5, 2.5),
    Move("r_gh_flex", 16, 3.5, 8.5, 2.5),
    *_both("el_flex", 14, 3.5, 8.5),
    *_both("gh_abd", 6, 1.6, 10.2),
    # Both arms slowly to the front and overhead, fast down.
    *_both("gh_flex", 146, 8.5, 13.4, 0, 3.2, 1.5),
    *_both("sg_elev", 18, 9.5, 13.4, 0, 2.2, 1.5),
    # Both arms out to the side, forearms up and down on the beat.
    *_both("gh_abd", 78, 12.8, 18.5, 0, 1.4),
    *_both("el_flex", 72, 13.5, 18, 0, 1.2),
    *_both("gh_rot", -85, 14, 18, -4, 0.8),
    # Bend forward with hanging, swinging arms; rise into a slight back bend with the arms behind.
    Move("wt_flex", 52, BOW, 22.5, 0, 1.9),
    Move("pelvis_pitch", 16, BOW, 22.5, 0, 1.9),
    Move("pelvis_x", -0.08, BOW, 22.5, 0, 1.9),
    Move("pelvis_z", -0.05, BOW, 22.5, 0, 1.9),
    *_both("gh_flex", 52, BOW, 22.2, 0, 1.8),
    Move("l_gh_flex", 26, 18.5, 22, 2, 0.8),
    Move("r_gh_flex", -26, 18.5, 22, 2, 0.8),
    Move("wt_rot", -14, 18.5, 22, 2, 0.8),
    Move("wt_flex", -16, 21.5, 24.5, 0, 1.3),
    *_both("gh_flex", -36, 21.5, 24.5, 0, 1.3),
    *_both("gh_abd", 10, 21.5, 24.5, 0, 1.3),
    *_both("sg_prot", -16, 21.5, 24.5, 0, 1.3),
    # Bend right with the left arm overhead and the right hand at the hip, then mirrored and faster.
    Move("wt_lat", 22, 24, 28, 0, 1.4),
    Move("l_gh_abd", 135, 24, 28, 0, 1.5),
    Move("l_sg_elev", 22, 24, 28, 0, 1.4),
    Move("r_gh_abd", 28, 24, 28, 0, 1.4),
    Move("r_el_flex", 62, 24, 28, 0, 1.4),
    Move("r_gh_rot", 30, 24, 28, 0, 1.4),
    Move("wt_lat", -22, 27.2, 30.2, 0, 1.2),
    Move("r_gh_abd", 135, 27.2, 30.2, 0, 1.3),
    Move("r_sg_elev", 22, 27.2, 30.2, 0, 1.2),
    Move("l_gh_abd", 28, 27.2, 30.2, 0, 1.2),
    Move("l_el_flex", 62, 27.2, 30.2, 0, 1.2),
    Move("l_gh_rot", 30, 27.2, 30.2, 0, 1.2),
    # Twist with forearms crossing in front of the chest, left above right.
    Move("wt_rot", 24, 29.5, 35.5, 3),
    Move("l_gh_flex", 84, 29.5, 35, 0, 1.5),
    Move("r_gh_flex", 54, 29.5, 35, 0, 1.5),
    *_both("el_flex", 58, 29.5, 35, 0, 1.5),
    *_both("gh_rot", 58, 29.5, 35, -3, 1.2),
    *_both("gh_abd", -14, 29.5, 35, -3, 1.2),
    # Fast alternating pumping of the arms.
    Move("l_gh_flex", 42, 34, 38, 4, 0.8),
    Move("r_gh_flex", -42, 34, 38, 4, 0.8),
    *_both("el_flex", 64, 34, 38),
    *_both("gh_abd", 8, 34, 38),
)  # fmt: skip

STEPS: tuple[tuple[str, float, float], ...] = (
    *(("lr"[i % 2], 4.0 + i, 0.10) for i in range(12)),
    *(("lr"[i % 2], 24.0 + i, 0.18) for i in range(12)),
)
"""Steps on the spot: side, beat, lift of the foot [m]. The hips sway to the other side."""


def gentle_dance() -> MarkerClip:
    """Return the dance at 80 beats/min with a bow of 43 instead of 70 degrees."""
    return replace(synthetic_dance(GENTLE_DURATION, bow=GENTLE_BOW), name="gentle_dance")


def synthetic_dance(
    duration: float = 24.0, rate: float = 50.0, seed: int = 0, noise: float = 0.0, bow: float = 1.0
) -> MarkerClip:
    """Return the computed dance of one person; equal arguments give equal clips.

    It starts and ends at rest in the same posture. The 17 markers are the 16 of Dube 2012 and the sternum (marker set
    dance16), world axes.

    Args:
        duration: [s], at least 12.
        rate: [Hz].
        seed: reduces each move by up to a tenth; 0: as written.
        noise: standard deviation of each coordinate [m].
        bow: share of the forward bend.

    Raises:
        ConfigError: if an argument is out of range.
    """
    if not (np.isfinite(duration) and duration >= 12):
        raise ConfigError(
            f"synthetic_dance: duration must be at least 12 s, got {duration} s: a person cannot dance it faster"
        )
    if not (np.isfinite(rate) and rate > 0):
        raise ConfigError(f"synthetic_dance: rate must be positive, got {rate} Hz")
    if not (np.isfinite(noise) and noise >= 0):
        raise ConfigError(f"synthetic_dance: noise must not be negative, got {noise} m")
    times = np.arange(round(duration * rate) + 1) / rate
    if not 0 <= bow <= 1:
        raise ConfigError(f"synthetic_dance: bow must be between 0 and 1, got {bow}")
    positions = human_markers(dance_posture(times / duration * BEATS, seed, bow))
    if noise:
        positions = positions + np.random.default_rng(seed).normal(scale=noise, size=positions.shape)
    return MarkerClip("dance", MARKERS, rate, positions, "built in", up="+z")


def dance_posture(beat: np.ndarray, seed: int = 0, bow: float = 1.0) -> dict[str, np.ndarray]:
    """Return joint -> values (T,) [rad], pelvis_x y z [m]; other arguments as for `synthetic_dance`.

    Args:
        beat: (T,) 0 and `BEATS` are the same posture.
    """
    body = HumanBody()
    extent = 1.0 - 0.1 * np.random.default_rng(seed).random(len(SCORE)) * (seed != 0)
    posture = {joint: np.full(len(beat), np.radians(angle)) for joint, angle in STANDING.items()}
    posture["pelvis_z"] = np.full(len(beat), body.thigh + body.shank + body.ankle_height - STANDING_DROP)
    for move, share in zip(SCORE, extent, strict=True):
        value = share * (bow if move.start == BOW else 1.0) * move.at(beat)
        if move.joint not in ("pelvis_x", "pelvis_y", "pelvis_z"):
            value = np.radians(value)
        posture[move.joint] = posture.get(move.joint, 0.0) + value
    ankles, toes_down = _feet(beat, body)
    return posture | legs_to_feet(posture, ankles, toes_down, body)


def _feet(beat: np.ndarray, body: HumanBody) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return ankle paths (T, 3) [m], world, and foot slopes (T,) [rad]."""
    ankles, toes_down = {}, {}
    for side, s in (("l", 1), ("r", -1)):
        lift = np.zeros(len(beat))
        for who, start, height in STEPS:
            if who == side:
                lift = lift + Move("", height, start, start + 1, -1, 0.3).at(beat)
        ankles[side] = np.stack(
            [np.zeros_like(beat), np.full(len(beat), s * 0.6 * body.hip_width), body.ankle_height + lift], axis=1
        )
        toes_down[side] = 2.0 * lift
    return ankles, toes_down
