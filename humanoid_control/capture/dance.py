"""The built-in dance: everything a person's trunk and arms do, on the spot, at several speeds, never touching.

Its content is that of the recording of Dube 2012, section 5.3: bending and twisting at the waist, arms raised and
lowered at various speeds and on various paths, shrugs, shoulders forward and back; 16 markers, 50 Hz. A score of
moves, counted in beats, is added up to joint angles; the human model turns them into markers.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.capture.choreography import BEATS, SCORE, STANDING, STANDING_DROP, STEPS, Move
from humanoid_control.capture.clip import MarkerClip
from humanoid_control.capture.human import MARKERS, HumanBody, forward_kinematics
from humanoid_control.capture.legs import legs_to_feet
from humanoid_control.errors import ConfigError


def synthetic_dance(duration: float = 24.0, rate: float = 50.0, seed: int = 0, noise: float = 0.0) -> MarkerClip:
    """A dance of one person, made by calculation: the same arguments give the same clip.

    It starts and ends at rest in the same standing posture, so it can be repeated without a jump.

    Args:
        duration: [s]; the score is played faster or slower to fit. At least 12.
        rate: frames a second [Hz].
        seed: varies how far each move goes, by up to a tenth less; 0 plays the score as it is written.
        noise: standard deviation of the error of each marker coordinate [m].

    Returns:
        A clip of 17 markers in world axes, no gaps: the 16 of Dube 2012 and the sternum (marker set dance16).

    Raises:
        ConfigError: an argument outside its range.
    """
    if not (np.isfinite(duration) and duration >= 12):
        raise ConfigError(f"synthetic_dance: duration is {duration} s, at least 12 s: a person cannot dance it faster")
    if not (np.isfinite(rate) and rate > 0):
        raise ConfigError(f"synthetic_dance: rate is {rate} Hz, it must be positive")
    if not (np.isfinite(noise) and noise >= 0):
        raise ConfigError(f"synthetic_dance: noise is {noise} m, it must not be negative")
    times = np.arange(round(duration * rate) + 1) / rate
    positions = forward_kinematics(dance_posture(times / duration * BEATS, seed))
    if noise:
        positions = positions + np.random.default_rng(seed).normal(scale=noise, size=positions.shape)
    return MarkerClip("dance", MARKERS, rate, positions, "built in")


def dance_posture(beat: np.ndarray, seed: int = 0) -> dict[str, np.ndarray]:
    """Joint values of the dancer.

    Args:
        beat: (T,) position in the score; 0 and `BEATS` are the same standing posture.
        seed: as for `synthetic_dance`.

    Returns:
        Joint name to (T,) values [rad], pelvis_x y z in [m].
    """
    body = HumanBody()
    extent = 1.0 - 0.1 * np.random.default_rng(seed).random(len(SCORE)) * (seed != 0)
    posture = {joint: np.full(len(beat), np.radians(angle)) for joint, angle in STANDING.items()}
    posture["pelvis_z"] = np.full(len(beat), body.thigh + body.shank + body.ankle_height - STANDING_DROP)
    for move, share in zip(SCORE, extent, strict=True):
        value = share * move.at(beat)
        if move.joint not in ("pelvis_x", "pelvis_y", "pelvis_z"):
            value = np.radians(value)
        posture[move.joint] = posture.get(move.joint, 0.0) + value
    ankles, toes_down = _feet(beat, body)
    return posture | legs_to_feet(posture, ankles, toes_down, body)


def _feet(beat: np.ndarray, body: HumanBody) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Path of each ankle (T, 3) [m], world, and slope of each foot (T,) [rad]: planted but for the steps."""
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
