"""Live markers as body points without gaps and jumps.

Frames after `LiveCalibration` pass `LabelOrder`, `MarkerTracks`, `LiveBody`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from humanoid_control.errors import ClipError, UnknownNameError
from humanoid_control.mocap.body_points import LEAST_LENGTH, BodyPoints, Placement, find_placement
from humanoid_control.mocap.cleaning import fill_gaps
from humanoid_control.mocap.clip import MarkerClip
from humanoid_control.mocap.labels import MAX_ACCELERATION, NOISE
from humanoid_control.mocap.marker_sets import ESTIMATED, OPTIONAL, REQUIRED, BodyLocator, find_marker_set
from humanoid_control.mocap.sternum import SternumSettings, chest_axes, complete_sternum
from humanoid_control.numerics.minimum_jerk import PEAK_SPEED, minimum_jerk

# -------- continuous paths

FARTHEST = 100.0  # [m] largest distance from the origin of the laboratory
_SPEED = 10.0  # [m/s] largest speed of a hidden marker
_SMOOTHING = 0.05  # [s] time constant of velocities
_STRAY = 0.4  # [m] largest growth of the bound, at 1 m/s, while a marker is rejected
_LEAST_SPREAD = 0.05  # [m] extent of trunk markers across a line below which their rotation is not observable


@dataclass(frozen=True)
class TrackSettings:
    """Bridging of hidden and faulty markers.

    Attributes:
        fade: time in which a hidden marker's velocity fades [s].
        return_speed: limit of the return to a visible marker [m/s].
        jump_hold: time until a jumped marker is accepted [s].
    """

    fade: float = 0.3
    return_speed: float = 1.0
    jump_hold: float = 0.5


class MarkerTracks:
    """Continuous paths of M markers.

    A hidden marker moves with the trunk, plus its own fading velocity. The path returns to a visible marker along a
    minimum-jerk profile. Implausible motion counts as hidden until the marker stays. Always visible markers pass
    without delay.

    Attributes:
        shown: (M, 3) [m].
        hidden: (M,) time since last visible [s].
    """

    def __init__(self, start: np.ndarray, trunk: np.ndarray, settings: TrackSettings | None = None) -> None:
        """Start the paths.

        Args:
            start: (M, 3) finite [m].
            trunk: indices on pelvis and chest.
        """
        m = len(start)
        self.settings = settings or TrackSettings()
        self.shown = np.array(start, dtype=float)
        self.hidden = np.zeros(m)
        self._trunk = np.zeros(m, dtype=bool)
        self._trunk[trunk] = True
        self._held = self.shown.copy()  # path of a hidden marker
        self._accepted = self.shown.copy()  # last accepted measurement
        self._velocity, self._own = np.zeros((m, 3)), np.zeros((m, 3))  # in space, and relative to the trunk [m/s]
        self._share = np.ones(m)  # of the return from the held to the measured path
        self._seen_for = np.zeros(m)  # since visible again [s]
        self._suspect = np.full((m, 3), np.nan)
        self._suspected = np.zeros(m)  # time at the suspect place [s]
        self._absent, self._rejected = np.zeros(m), np.zeros(m)  # since accepted: not visible, rejected [s]

    def update(self, positions: np.ndarray, dt: float) -> np.ndarray:
        """Advance by one frame; return `shown`.

        Args:
            positions: (M, 3) measured [m]; NaN: hidden.
            dt: [s].
        """
        dt = float(min(max(1e-4, dt), 1.0))  # NaN becomes the shortest step
        seen = self._plausible(positions, dt)
        measured = np.where(seen[:, None], positions, self._accepted)
        R, p = self._carry(measured, seen & (self.hidden == 0))
        gone, back = ~seen, seen & (self.hidden > 0)
        before = self.shown @ R.T + p
        self._seen_for = np.where(seen, np.where(back, 0.0, self._seen_for + dt), 0.0)
        joins = np.minimum(1.0, self._seen_for / max(self.settings.fade, 1e-6))[:, None]
        along = self._held @ R.T + p + joins * (measured - self._accepted @ R.T - p)
        self._held = np.where(gone[:, None], before + self._own * self._faded(dt)[:, None], along)
        self._return(measured, seen, back, dt)
        blend = minimum_jerk(self._share[:, None])
        shown = np.where(seen[:, None], (1 - blend) * self._held + blend * measured, self._held)
        self._learn(measured, shown - before, seen, back, dt)
        self.hidden = np.where(seen, 0.0, self.hidden + dt)
        self._share[gone] = 0.0
        self._accepted, self.shown = measured, shown
        return shown

    def _plausible(self, positions: np.ndarray, dt: float) -> np.ndarray:
        """Return True (M,) for visible markers with plausible motion."""
        with np.errstate(invalid="ignore"):
            measured = (np.abs(positions) < FARTHEST).all(axis=1)
            time = self._absent + dt
            bound = NOISE + np.minimum(MAX_ACCELERATION * time**2, _SPEED * time)
            bound += np.minimum(self._rejected, _STRAY)
            off = np.linalg.norm(positions - self._expected(dt), axis=1) > bound
            stays = np.linalg.norm(positions - self._suspect, axis=1) <= NOISE + _SPEED * dt
        wrong = measured & off
        self._suspected = np.where(wrong & stays, self._suspected + dt, 0.0)
        self._suspect = np.where(wrong[:, None], positions, np.nan)
        accepted = measured & (~wrong | (self._suspected >= self.settings.jump_hold))
        self._rejected = np.where(accepted, 0.0, np.where(wrong, self._rejected + dt, self._rejected))
        self._absent = np.where(accepted, 0.0, np.where(measured, self._absent, time))
        return accepted

    def _expected(self, dt: float) -> np.ndarray:
        """Return the expected measurement (M, 3): constant velocity, or the held path."""
        hidden = (self.hidden > 0)[:, None]
        return np.where(hidden, self.shown, self._accepted + self._velocity * dt)

    def _carry(self, measured: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rigid trunk motion (R, p) since the last frame (Kabsch)."""
        use = seen & self._trunk
        if not use.any():
            return np.eye(3), np.zeros(3)
        before, now = self._accepted[use], measured[use]
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
        """Return the time (M,) at full velocity equivalent to this fading step [s]."""
        T = max(self.settings.fade, 1e-6)
        begin, end = np.minimum(self.hidden, T), np.minimum(self.hidden + dt, T)
        return (end - begin) - (end**2 - begin**2) / (2 * T)

    def _return(self, measured: np.ndarray, seen: np.ndarray, back: np.ndarray, dt: float) -> None:
        """Advance and start returns to measured paths.

        The held path adopts the measured velocity, so the distance stops growing.
        """
        self._share[back] = 0.0
        moving = seen & (self._share < 1.0)
        if moving.any():
            distance = np.linalg.norm(measured[moving] - self._held[moving], axis=1)
            pace = self.settings.return_speed / (PEAK_SPEED * np.maximum(distance, 1e-6))
            self._share[moving] = np.minimum(1.0, self._share[moving] + pace * dt)

    def _learn(self, measured: np.ndarray, moved: np.ndarray, seen: np.ndarray, back: np.ndarray, dt: float) -> None:
        """Update velocities in space of visible markers, and of paths relative to the trunk."""
        gain = dt / (dt + _SMOOTHING)
        velocity = (measured - self._accepted) / dt
        velocity *= np.minimum(1.0, _SPEED / np.maximum(np.linalg.norm(velocity, axis=1, keepdims=True), 1e-9))
        steady = (seen & ~back)[:, None]
        self._velocity = np.where(steady, self._velocity + gain * (velocity - self._velocity), 0.0)
        self._own = np.where(seen[:, None], self._own + gain * (moved / dt - self._own), self._own)


# -------- labels of live frames

MAX_LABELS = 400  # labels of a frame beyond this number are ignored


def distinct(labels: tuple[str, ...], positions: np.ndarray) -> tuple[list[str], np.ndarray, list[str]]:
    """Return labels and positions (M, 3) [m] without duplicates, and duplicates."""
    twice = sorted(label for label, n in Counter(labels).items() if n > 1)
    keep = [k for k, label in enumerate(labels) if label not in twice][:MAX_LABELS]
    return [labels[k] for k in keep], positions[keep], twice


class LabelOrder:
    """Fixed order of markers.

    Attributes:
        twice: duplicate labels of the last frame; they count as hidden.
    """

    def __init__(self, labels: tuple[str, ...]) -> None:
        """Set the order of M labels."""
        self.labels, self.twice = labels, list[str]()
        self._frame: tuple[str, ...] | None = None
        self._columns = np.zeros(len(labels), dtype=int)

    def arrange(self, labels: tuple[str, ...], positions: np.ndarray) -> np.ndarray:
        """Return positions (M, 3) [m] in this order, NaN if absent."""
        if labels != self._frame:
            count = Counter(labels)
            column = {label: k for k, label in enumerate(labels) if count[label] == 1}
            self.twice = [label for label in self.labels if count[label] > 1]
            self._frame, self._columns = labels, np.array([column.get(n, len(labels)) for n in self.labels])
        return np.concatenate([positions, np.full((1, 3), np.nan)])[self._columns]


# -------- body points of one frame

TRUNK = ("l_hip", "r_hip", "sternum", "l_shoulder", "r_shoulder")


class LiveBody:
    """Marker set applied to single frames.

    Every rule input is a mean of markers: one matrix computes all.

    Attributes:
        labels: M used markers, in the order of `locate`.
        trunk: indices on pelvis and chest.
        names: P body points.
        start: (M, 3) at the end of the calibration [m], recording axes.
        calibration: body during the calibration.
    """

    def __init__(
        self, locator: BodyLocator, placement: Placement, calibration: BodyPoints, sternum: np.ndarray | None
    ) -> None:
        """Create the live body.

        Args:
            locator: of the calibration frames.
            placement: recording to world.
            calibration: its body points.
            sternum: (3,) from the middle of the shoulders, chest axes [m]; None: marker.
        """
        self.names, self.calibration, self.placement = calibration.names, calibration, placement
        self.marker_set = locator.marker_set.name
        self._sternum, self._locator = sternum, locator
        estimated = () if sternum is None else ("sternum",)
        self._points = [point for point in locator.points if point in self.names and point not in estimated]
        self.labels = tuple(dict.fromkeys(label for point in self._points for label in locator.labels(point)))
        index = {label: k for k, label in enumerate(self.labels)}
        shown = {label for point in TRUNK if point in self._points for label in locator.labels(point)}
        self.trunk = np.array([index[label] for label in self.labels if label in shown], dtype=int)
        rows: dict[tuple[str, ...], int] = {}
        self._rules = []
        for point in self._points:
            inputs = {name: rows.setdefault(labels, len(rows)) for name, labels in locator.inputs(point).items()}
            self._rules.append((point, inputs, locator.marker_set.points[point]))
        self._means = np.zeros((len(rows), len(self.labels)))
        for labels, row in rows.items():
            self._means[row, [index[label] for label in labels]] = 1.0 / len(labels)
        self.start = np.stack([_last_seen(locator.clip.marker(label)) for label in self.labels])

    def labels_of(self, point: str) -> tuple[str, ...]:
        """Return the markers of a body point, or ()."""
        return self._locator.labels(point) if point in self._points else ()

    def locate(self, markers: np.ndarray) -> np.ndarray:
        """Return body points (P, 3) [m], world, from markers (M, 3), recording axes."""
        inputs = (self._means @ markers)[:, None]
        at = {}
        for point, rows, rule in self._rules:
            if rule.function is None:
                at[point] = inputs[rows[point]]
            else:
                at[point] = rule.function(rule.side, **{name: inputs[row] for name, row in rows.items()})
        if self._sternum is not None:
            at["sternum"] = self._estimate(at["l_hip"], at["r_hip"], at["l_shoulder"], at["r_shoulder"])
        return self.placement.apply(np.concatenate([at[name] for name in self.names]))

    def _estimate(self, l_hip: np.ndarray, r_hip: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the sternum (1, 3), fixed in the chest."""
        hips = (l_hip + r_hip) / 2
        return (left + right) / 2 + chest_axes(left - hips, right - hips) @ self._sternum

    def missing(self, hidden: np.ndarray) -> dict[str, tuple[str, ...]]:
        """Return body points for imitation -> hidden markers; `hidden` (M,)."""
        gone = {label for label, flag in zip(self.labels, hidden, strict=True) if flag}
        needed = [p for p in self._points if p in TRUNK or p.endswith(("elbow", "wrist"))]
        found = {point: tuple(label for label in self.labels_of(point) if label in gone) for point in needed}
        return {point: labels for point, labels in found.items() if labels}


def _last_seen(path: np.ndarray) -> np.ndarray:
    """Return the last visible position (3,) of a path (T, 3)."""
    return path[~np.isnan(path[:, 0])][-1]


# -------- calibration

UP = {f"{sign}{axis}": float(f"{sign}1") * np.eye(3)[k] for k, axis in enumerate("xyz") for sign in "+-"}
_LEAST_FRAMES = 10
_MOST_FRAMES = 2000
_SEEN = 0.5  # share of frames in which a marker must be visible
_TRUNK = (0.15, 1.2)  # [m] plausible distance between the middles of hips and shoulders


class LiveCalibration:
    """Calibration from the last seconds of live frames.

    The person should stand upright with all markers visible. A failed calibration can succeed later.
    """

    def __init__(self, duration: float = 2.0, marker_set: str | Path | None = None, up: str = "auto") -> None:
        """Create a calibration.

        Args:
            duration: [s].
            up: "+x", "-x", ... "-z", or "auto".

        Raises:
            UnknownNameError: if `up` or the marker set is unknown.
            ClipError: if the marker set is invalid.
        """
        if up != "auto" and up not in UP:
            raise UnknownNameError("axis", up, ("auto", *UP))
        if marker_set is not None:
            find_marker_set(marker_set)
        self.duration, self.marker_set, self.up_F = duration, marker_set, UP.get(up)
        self._frames: deque[tuple[float, tuple[str, ...], np.ndarray]] = deque(maxlen=_MOST_FRAMES)

    def add(self, labels: Sequence[str], positions: np.ndarray, time: float) -> None:
        """Add a frame.

        Args:
            labels: M distinct names.
            positions: (M, 3) [m], NaN: hidden.
            time: [s].
        """
        if self._frames and not 0 < time - self._frames[-1][0] < self.duration / 2:  # a pause restarts
            self._frames.clear()
        self._frames.append((time, tuple(labels), positions))
        while time - self._frames[0][0] > 1.2 * self.duration and len(self._frames) > _LEAST_FRAMES:
            self._frames.popleft()

    @property
    def collected(self) -> float:
        """Collected time [s]."""
        return self._frames[-1][0] - self._frames[0][0] if self._frames else 0.0

    def body(self) -> LiveBody | None:
        """Return the `LiveBody`, or None with too few frames.

        Raises:
            ClipError: if markers are missing.
        """
        if len(self._frames) < _LEAST_FRAMES or self.collected < 0.999 * self.duration:
            return None
        clip = self._clip()
        locator = BodyLocator(clip, self.marker_set)
        seen = {label: float((~np.isnan(clip.marker(label)[:, 0])).mean()) for label in clip.labels}
        _check_seen(seen, locator)
        located = locator.locate(fill_gaps(clip, np.inf))
        if "sternum" in located and min(seen[label] for label in locator.labels("sternum")) < _SEEN:
            del located["sternum"]
        points = {p: located[p] for p in REQUIRED + OPTIONAL if p in located and not np.isnan(located[p]).any()}
        sternum, warnings = None, locator.warnings
        if "sternum" not in points:
            settings = SternumSettings()
            breadth = float(np.mean(np.linalg.norm(points["l_shoulder"] - points["r_shoulder"], axis=1)))
            sternum = breadth * np.array([settings.forward, settings.left, settings.up])
            points["sternum"], note = complete_sternum(points, clip.rate)
            warnings = (*warnings, note.replace("the clip does", "the markers do"))
        _check_sizes(points)
        placement = find_placement(points, clip.rate, "live markers", self.up_F)
        names = tuple(p for p in REQUIRED + OPTIONAL if p in points)
        positions = np.stack([placement.apply(points[p]) for p in names], axis=1)
        missing = np.zeros(len(names))
        estimated = () if sternum is None else ("sternum",)
        body = BodyPoints("live markers", clip.rate, names, positions, missing, warnings, estimated)
        return LiveBody(locator, placement, body, sternum)

    def _clip(self) -> MarkerClip:
        labels = list(dict.fromkeys(label for _, names, _ in self._frames for label in names))[:MAX_LABELS]
        column = {label: k for k, label in enumerate(labels)}
        positions = np.full((len(self._frames), len(labels), 3), np.nan)
        for frame, (_, names, at) in enumerate(self._frames):
            for label, position in zip(names, at, strict=True):
                if label in column:
                    positions[frame, column[label]] = position
        rate = (len(self._frames) - 1) / self.collected
        return MarkerClip("live", tuple(labels), rate, positions, "markers")


def _check_seen(seen: dict[str, float], locator: BodyLocator) -> None:
    """Raise ClipError for mostly hidden required markers, except the sternum."""
    needed = [p for p in REQUIRED if p in locator.points and p not in ESTIMATED]
    labels = dict.fromkeys(label for p in needed for label in locator.labels(p))
    hidden = [f"{label} ({100 * seen[label]:.0f} % of the time)" for label in labels if seen[label] < _SEEN]
    if hidden:
        raise ClipError(f"seen too rarely: {', '.join(hidden)}: stand so that every marker is in view")


def _check_sizes(points: dict[str, np.ndarray]) -> None:
    """Raise ClipError for implausible sizes."""
    middle = [(points[f"l_{p}"] + points[f"r_{p}"]) / 2 for p in ("hip", "shoulder")]
    trunk = float(np.median(np.linalg.norm(middle[1] - middle[0], axis=1)))
    if not _TRUNK[0] <= trunk <= _TRUNK[1]:
        raise ClipError(f"hips and shoulders are {trunk:.3g} m apart: are the markers in metres, and the labels right?")
    for side in "lr":
        for a, b in (("shoulder", "elbow"), ("elbow", "wrist")):
            length = float(np.median(np.linalg.norm(points[f"{side}_{a}"] - points[f"{side}_{b}"], axis=1)))
            if not length >= LEAST_LENGTH:
                raise ClipError(f"{side}_{a} and {side}_{b} are {length:.3f} m apart: two labels refer to one marker")
