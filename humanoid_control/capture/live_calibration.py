"""The first seconds of live markers: which marker set they are, which way is up, how large the person is."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from humanoid_control.capture.axes import find_placement
from humanoid_control.capture.body_points import BodyPoints
from humanoid_control.capture.clip import MarkerClip
from humanoid_control.capture.gaps import fill_gaps
from humanoid_control.capture.live_body import LiveBody
from humanoid_control.capture.live_labels import MAX_LABELS
from humanoid_control.capture.marker_set_file import ESTIMATED, OPTIONAL, REQUIRED
from humanoid_control.capture.marker_sets import BodyLocator, find_marker_set
from humanoid_control.capture.missing_sternum import complete_sternum
from humanoid_control.capture.sternum import SternumSettings
from humanoid_control.errors import ClipError, UnknownNameError

UP = {f"{sign}{axis}": float(f"{sign}1") * np.eye(3)[k] for k, axis in enumerate("xyz") for sign in "+-"}
_LEAST_FRAMES = 10
_MOST_FRAMES = 2000
_SEEN = 0.5  # share of the frames in which a marker must be seen
_TRUNK = (0.15, 1.2)  # [m] from the middle of the hips to that of the shoulders, of any person
_LEAST_LENGTH = 0.03  # [m] no limb is shorter


class LiveCalibration:
    """Collects frames, and makes of the last few seconds what single frames need.

    The person should stand upright, with every marker in view. Old frames are dropped, so that a calibration that
    failed can succeed later.
    """

    def __init__(self, duration: float = 2.0, marker_set: str | Path | None = None, up: str = "auto") -> None:
        """Prepare.

        Args:
            duration: of the calibration [s].
            marker_set: as for `body_points`.
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
        """How much has been collected [s]."""
        return self._frames[-1][0] - self._frames[0][0] if self._frames else 0.0

    def body(self) -> LiveBody | None:
        """What single frames need; None while there is too little.

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
            if not length >= _LEAST_LENGTH:
                raise ClipError(f"{side}_{a} and {side}_{b} are {length:.3f} m apart: two labels lie on one marker")
