"""Live markers, frame by frame as they arrive, some hidden, some wrong, made into body points without jumps.

`LiveCalibration` finds in the first seconds the marker set, the vertical and the size of the person. After that each
frame takes three steps, together well under a millisecond: `LabelOrder`, `MarkerTracks`, `LiveBody`.
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

# -------- paths without holes and jumps

FARTHEST = 100.0  # [m] no marker is farther from the origin of the laboratory
_SPEED = 10.0  # [m/s] of a marker that is not seen, at the most
_SMOOTHING = 0.05  # [s] time constant of the velocities
_STRAY = 0.4  # [m] so much farther, growing by 1 m/s, while the marker is seen at places that are rejected
_LEAST_SPREAD = 0.05  # [m] trunk markers nearer than this to one line do not tell how the trunk turned


@dataclass(frozen=True)
class TrackSettings:
    """Bridging of hidden and wrong markers.

    Attributes:
        fade: a marker that vanishes goes on with its velocity, which fades to zero over this time [s].
        return_speed: a marker that comes back is moved over to with this speed at the most [m/s].
        jump_hold: a marker that jumped is accepted when it stays at the new place for so long [s].
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
        self._accepted = self.shown.copy()  # the last measurement that was
        self._velocity, self._own = np.zeros((m, 3)), np.zeros((m, 3))  # in space, and against the trunk [m/s]
        self._share = np.ones(m)  # of the way back from the held path to the measured one
        self._seen_for = np.zeros(m)  # since it is back [s]
        self._suspect = np.full((m, 3), np.nan)
        self._suspected = np.zeros(m)  # for how long the marker has been at the suspect place [s]
        self._absent, self._rejected = np.zeros(m), np.zeros(m)  # since the last accepted one: not seen, rejected [s]

    def update(self, positions: np.ndarray, dt: float) -> np.ndarray:
        """Go on by one frame.

        Args:
            positions: (M, 3) as measured [m]; a marker with a NaN is hidden.
            dt: time since the last frame [s].

        Returns:
            `shown`.
        """
        dt = float(min(max(1e-4, dt), 1.0))  # the shortest where dt is NaN
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
        """(M,) which markers are seen and where a body can have moved them."""
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
        """(M, 3) where the next measurement should be: straight on from the last one, or the held path."""
        hidden = (self.hidden > 0)[:, None]
        return np.where(hidden, self.shown, self._accepted + self._velocity * dt)

    def _carry(self, measured: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rigid motion (R, p) of the trunk since the last frame, by its markers seen in both frames (Kabsch)."""
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
            pace = self.settings.return_speed / (PEAK_SPEED * np.maximum(distance, 1e-6))
            self._share[moving] = np.minimum(1.0, self._share[moving] + pace * dt)

    def _learn(self, measured: np.ndarray, moved: np.ndarray, seen: np.ndarray, back: np.ndarray, dt: float) -> None:
        """Velocities in space, of markers seen twice in a row, and of the shown paths against the trunk."""
        gain = dt / (dt + _SMOOTHING)
        velocity = (measured - self._accepted) / dt
        velocity *= np.minimum(1.0, _SPEED / np.maximum(np.linalg.norm(velocity, axis=1, keepdims=True), 1e-9))
        steady = (seen & ~back)[:, None]
        self._velocity = np.where(steady, self._velocity + gain * (velocity - self._velocity), 0.0)
        self._own = np.where(seen[:, None], self._own + gain * (moved / dt - self._own), self._own)


# -------- labels of live frames

MAX_LABELS = 400  # more in one frame are left out


def distinct(labels: tuple[str, ...], positions: np.ndarray) -> tuple[list[str], np.ndarray, list[str]]:
    """A frame without the labels that occur twice in it: nobody knows which of the two is right.

    Args:
        labels: M names. positions: (M, 3) [m].

    Returns:
        The labels and positions that are left, and the labels that occur twice.
    """
    twice = sorted(label for label, n in Counter(labels).items() if n > 1)
    keep = [k for k, label in enumerate(labels) if label not in twice][:MAX_LABELS]
    return [labels[k] for k in keep], positions[keep], twice


class LabelOrder:
    """Puts the markers of each frame into one order.

    Attributes:
        twice: labels of the order that occur twice in the last frame; they count as hidden.
    """

    def __init__(self, labels: tuple[str, ...]) -> None:
        """Make an order of these M labels."""
        self.labels, self.twice = labels, list[str]()
        self._frame: tuple[str, ...] | None = None
        self._columns = np.zeros(len(labels), dtype=int)

    def arrange(self, labels: tuple[str, ...], positions: np.ndarray) -> np.ndarray:
        """(M, 3) positions [m] in this order, NaN for those that are not in the frame."""
        if labels != self._frame:
            count = Counter(labels)
            column = {label: k for k, label in enumerate(labels) if count[label] == 1}
            self.twice = [label for label in self.labels if count[label] > 1]
            self._frame, self._columns = labels, np.array([column.get(n, len(labels)) for n in self.labels])
        return np.concatenate([positions, np.full((1, 3), np.nan)])[self._columns]


# -------- body points of one frame

TRUNK = ("l_hip", "r_hip", "sternum", "l_shoulder", "r_shoulder")


class LiveBody:
    """A marker set applied to single frames, with what was found at the calibration.

    Every input of a rule is a mean of markers, so that one matrix gives all of them at once.

    Attributes:
        labels: M labels of the markers that are used, in the order of `locate`.
        trunk: indices of those on pelvis and chest.
        names: P body points, as in BodyPoints.
        start: (M, 3) where the markers were when the calibration ended [m], axes of the recording.
        calibration: the body during the calibration.
        marker_set: name of the set.
    """

    def __init__(
        self, locator: BodyLocator, placement: Placement, calibration: BodyPoints, sternum: np.ndarray | None
    ) -> None:
        """Prepare.

        Args:
            locator: of the frames of the calibration.
            placement: how the recording stands in the world.
            calibration: its body points.
            sternum: (3,) place in the chest's axes, from the middle of the shoulders, where no marker shows it [m].
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
        """The markers that a body point is made of; none for an estimated sternum."""
        return self._locator.labels(point) if point in self._points else ()

    def locate(self, markers: np.ndarray) -> np.ndarray:
        """Body points (P, 3) [m], world, from markers (M, 3) [m], axes of the recording."""
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
        """The sternum (1, 3), fixed in the chest."""
        hips = (l_hip + r_hip) / 2
        return (left + right) / 2 + chest_axes(left - hips, right - hips) @ self._sternum

    def missing(self, hidden: np.ndarray) -> dict[str, tuple[str, ...]]:
        """By body point that imitation needs: those of its markers for which `hidden` (M,) is true."""
        gone = {label for label, flag in zip(self.labels, hidden, strict=True) if flag}
        needed = [p for p in self._points if p in TRUNK or p.endswith(("elbow", "wrist"))]
        found = {point: tuple(label for label in self.labels_of(point) if label in gone) for point in needed}
        return {point: labels for point, labels in found.items() if labels}


def _last_seen(path: np.ndarray) -> np.ndarray:
    """The last position (3,) of a path (T, 3) that is there."""
    return path[~np.isnan(path[:, 0])][-1]


# -------- calibration

UP = {f"{sign}{axis}": float(f"{sign}1") * np.eye(3)[k] for k, axis in enumerate("xyz") for sign in "+-"}
_LEAST_FRAMES = 10
_MOST_FRAMES = 2000
_SEEN = 0.5  # share of the frames in which a marker must be seen
_TRUNK = (0.15, 1.2)  # [m] from the middle of the hips to that of the shoulders, of any person


class LiveCalibration:
    """Collects frames, and makes of the last few seconds what single frames need.

    The person should stand upright, with every marker in view. Old frames are dropped, so that a calibration that
    failed can succeed later.
    """

    def __init__(self, duration: float = 2.0, marker_set: str | Path | None = None, up: str = "auto") -> None:
        """Prepare.

        Args:
            duration: of the calibration [s].
            marker_set: as for `find_body_points`.
            up: which axis of the recording points upward: "+x", "-x", ... "-z", or "auto": found from the body.

        Raises:
            UnknownNameError: another `up`, or no such marker set. ClipError: the file of a set is wrong.
        """
        if up != "auto" and up not in UP:
            raise UnknownNameError("axis", up, ("auto", *UP))
        if marker_set is not None:
            find_marker_set(marker_set)
        self.duration, self.marker_set, self.up_F = duration, marker_set, UP.get(up)
        self._frames: deque[tuple[float, tuple[str, ...], np.ndarray]] = deque(maxlen=_MOST_FRAMES)

    def add(self, labels: Sequence[str], positions: np.ndarray, time: float) -> None:
        """Take a frame.

        Args:
            labels: M distinct names.
            positions: (M, 3) [m], NaN where a marker is hidden.
            time: [s].
        """
        if self._frames and not 0 < time - self._frames[-1][0] < self.duration / 2:  # a pause: begin again
            self._frames.clear()
        self._frames.append((time, tuple(labels), positions))
        while time - self._frames[0][0] > 1.2 * self.duration and len(self._frames) > _LEAST_FRAMES:
            self._frames.popleft()

    @property
    def collected(self) -> float:
        """Time that has been collected [s]."""
        return self._frames[-1][0] - self._frames[0][0] if self._frames else 0.0

    def body(self) -> LiveBody | None:
        """`LiveBody` of the collected frames; None while there are too few.

        Raises:
            ClipError: the markers do not suffice; the message names those that are missing.
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
        """The collected frames as a clip; labels that came only now and then have gaps."""
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
    """Raise ClipError for markers of required points that are hidden most of the time; the sternum can be estimated."""
    needed = [p for p in REQUIRED if p in locator.points and p not in ESTIMATED]
    labels = dict.fromkeys(label for p in needed for label in locator.labels(p))
    hidden = [f"{label} ({100 * seen[label]:.0f} % of the time)" for label in labels if seen[label] < _SEEN]
    if hidden:
        raise ClipError(f"seen too rarely: {', '.join(hidden)}: stand so that every marker is in view")


def _check_sizes(points: dict[str, np.ndarray]) -> None:
    """Raise ClipError when the body is no person's: wrong unit, or two labels on one marker."""
    middle = [(points[f"l_{p}"] + points[f"r_{p}"]) / 2 for p in ("hip", "shoulder")]
    trunk = float(np.median(np.linalg.norm(middle[1] - middle[0], axis=1)))
    if not _TRUNK[0] <= trunk <= _TRUNK[1]:
        raise ClipError(f"hips and shoulders are {trunk:.3g} m apart: are the markers in metres, are the labels right?")
    for side in "lr":
        for a, b in (("shoulder", "elbow"), ("elbow", "wrist")):
            length = float(np.median(np.linalg.norm(points[f"{side}_{a}"] - points[f"{side}_{b}"], axis=1)))
            if not length >= LEAST_LENGTH:
                raise ClipError(f"{side}_{a} and {side}_{b} are {length:.3f} m apart: two labels lie on one marker")
