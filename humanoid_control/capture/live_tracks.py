"""Markers as they arrive, some hidden, some wrong: made into paths without holes and without jumps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FARTHEST = 100.0  # [m] no marker is farther from the origin of the laboratory
_NOISE = 0.05  # [m] a marker may be so far from where it is expected,
_ACCELERATION = 300.0  # [m/s^2] and farther by how it may have been accelerated since it was seen last,
_SPEED = 10.0  # [m/s] but not by more than at this speed
_SMOOTHING = 0.05  # [s] time constant of the velocities
_PEAK = 1.875  # of the speed of a minimum-jerk move, as a multiple of its mean
_STRAY = 0.4  # [m] so much farther, growing by 1 m/s, while the marker is seen at places that are not believed
_LEAST_SPREAD = 0.05  # [m] trunk markers nearer than this to one line do not tell how the trunk turned


@dataclass(frozen=True)
class TrackSettings:
    """How hidden and wrong markers are bridged.

    Attributes:
        fade: a marker that vanishes goes on with its velocity, which fades to zero over this time [s].
        return_speed: a marker that comes back is moved over to with this speed at the most [m/s].
        jump_hold: a marker that jumped is believed when it stays at the new place for so long [s].
    """

    fade: float = 0.3
    return_speed: float = 1.0
    jump_hold: float = 0.5


class MarkerTracks:
    """Paths of M markers without holes.

    A marker that is not seen is carried along with the trunk, whose seen markers tell how it moves, and goes on with
    its own velocity against the trunk, which fades. When it is seen again, the path moves over to it along a
    minimum-jerk profile. A marker farther from where it is expected than a body can move counts as not seen, until it
    stays at its new place. A marker that was always seen is passed on as it is, without any delay.

    Attributes:
        shown: (M, 3) where the markers are taken to be [m].
        hidden: (M,) for how long each has not been seen [s].
    """

    def __init__(self, start: np.ndarray, trunk: np.ndarray, settings: TrackSettings | None = None) -> None:
        """Begin.

        Args:
            start: (M, 3) where the markers are, all finite [m].
            trunk: indices of those on pelvis and chest.
            settings: of the bridging.
        """
        m = len(start)
        self.settings = settings or TrackSettings()
        self.shown = np.array(start, dtype=float)
        self.hidden = np.zeros(m)
        self._trunk = np.zeros(m, dtype=bool)
        self._trunk[trunk] = True
        self._held = self.shown.copy()  # the path that a hidden marker is on
        self._believed = self.shown.copy()  # the last measurement that was
        self._velocity, self._own = np.zeros((m, 3)), np.zeros((m, 3))  # in space, and against the trunk [m/s]
        self._share = np.ones(m)  # of the way back from the held path to the measured one
        self._seen_for = np.zeros(m)  # since it is back [s]
        self._suspect = np.full((m, 3), np.nan)
        self._suspected = np.zeros(m)  # for how long the marker has been at the suspect place [s]
        self._absent, self._rejected = np.zeros(m), np.zeros(m)  # since it was believed: not seen, not believed [s]

    def update(self, positions: np.ndarray, dt: float) -> np.ndarray:
        """Go on by one frame.

        Args:
            positions: (M, 3) as measured [m]; a marker with a NaN is hidden.
            dt: time since the last frame [s].

        Returns:
            `shown`.
        """
        dt = float(np.clip(dt, 1e-4, 1.0))
        seen = self._plausible(positions, dt)
        measured = np.where(seen[:, None], positions, self._believed)
        R, p = self._carry(measured, seen & (self.hidden == 0))
        gone, back = ~seen, seen & (self.hidden > 0)
        before = self.shown @ R.T + p
        self._seen_for = np.where(seen, np.where(back, 0.0, self._seen_for + dt), 0.0)
        joins = np.minimum(1.0, self._seen_for / max(self.settings.fade, 1e-6))[:, None]
        along = self._held @ R.T + p + joins * (measured - self._believed @ R.T - p)
        self._held = np.where(gone[:, None], before + self._own * self._faded(dt)[:, None], along)
        self._return(measured, seen, back, dt)
        s = self._share[:, None]
        blend = s**3 * (10 - 15 * s + 6 * s**2)
        shown = np.where(seen[:, None], (1 - blend) * self._held + blend * measured, self._held)
        self._learn(measured, shown - before, seen, back, dt)
        self.hidden = np.where(seen, 0.0, self.hidden + dt)
        self._share[gone] = 0.0
        self._believed, self.shown = measured, shown
        return shown

    def _plausible(self, positions: np.ndarray, dt: float) -> np.ndarray:
        """(M,) which markers are seen and where a body can have moved them."""
        with np.errstate(invalid="ignore"):
            measured = (np.abs(positions) < FARTHEST).all(axis=1)
            time = self._absent + dt
            reach = _NOISE + np.minimum(_ACCELERATION * time**2, _SPEED * time)
            reach += np.minimum(self._rejected, _STRAY)
            off = np.linalg.norm(positions - self._expected(dt), axis=1) > reach
            stays = np.linalg.norm(positions - self._suspect, axis=1) <= _NOISE + _SPEED * dt
        wrong = measured & off
        self._suspected = np.where(wrong & stays, self._suspected + dt, 0.0)
        self._suspect = np.where(wrong[:, None], positions, np.nan)
        believed = measured & (~wrong | (self._suspected >= self.settings.jump_hold))
        self._rejected = np.where(believed, 0.0, np.where(wrong, self._rejected + dt, self._rejected))
        self._absent = np.where(believed, 0.0, np.where(measured, self._absent, time))
        return believed

    def _expected(self, dt: float) -> np.ndarray:
        """(M, 3) where the next measurement should be: straight on from the last one, or the held path."""
        hidden = (self.hidden > 0)[:, None]
        return np.where(hidden, self.shown, self._believed + self._velocity * dt)

    def _carry(self, measured: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rigid motion (R, p) of the trunk since the last frame, by its markers seen in both frames (Kabsch)."""
        use = seen & self._trunk
        if not use.any():
            return np.eye(3), np.zeros(3)
        before, now = self._believed[use], measured[use]
        a, b = before.mean(axis=0), now.mean(axis=0)
        if len(before) < 3:
            return np.eye(3), b - a
        A, B = before - a, now - b
        U, spread, Vt = np.linalg.svd(B.T @ A)
        if spread[1] < _LEAST_SPREAD**2:
            return np.eye(3), b - a
        R = U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt
        return R, b - R @ a

    def _faded(self, dt: float) -> np.ndarray:
        """(M,) the time for which the full velocity would lead as far as the fading one does in this step [s]."""
        T = max(self.settings.fade, 1e-6)
        begin, end = np.minimum(self.hidden, T), np.minimum(self.hidden + dt, T)
        return (end - begin) - (end**2 - begin**2) / (2 * T)

    def _return(self, measured: np.ndarray, seen: np.ndarray, back: np.ndarray, dt: float) -> None:
        """Advance the moves over to the measured paths; begin those of the markers that are back.

        The held path takes up the measured velocity, so that the distance between the two does not grow for long.
        """
        self._share[back] = 0.0
        moving = seen & (self._share < 1.0)
        if moving.any():
            distance = np.linalg.norm(measured[moving] - self._held[moving], axis=1)
            pace = self.settings.return_speed / (_PEAK * np.maximum(distance, 1e-6))
            self._share[moving] = np.minimum(1.0, self._share[moving] + pace * dt)

    def _learn(self, measured: np.ndarray, moved: np.ndarray, seen: np.ndarray, back: np.ndarray, dt: float) -> None:
        """Velocities in space, of markers seen twice in a row, and of the shown paths against the trunk."""
        gain = dt / (dt + _SMOOTHING)
        velocity = (measured - self._believed) / dt
        velocity *= np.minimum(1.0, _SPEED / np.maximum(np.linalg.norm(velocity, axis=1, keepdims=True), 1e-9))
        steady = (seen & ~back)[:, None]
        self._velocity = np.where(steady, self._velocity + gain * (velocity - self._velocity), 0.0)
        self._own = np.where(seen[:, None], self._own + gain * (moved / dt - self._own), self._own)
