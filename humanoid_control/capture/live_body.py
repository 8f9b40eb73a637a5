"""The body of one frame: from tracked markers to body points in world axes, in well under a millisecond."""

from __future__ import annotations

import numpy as np

from humanoid_control.capture.axes import Placement
from humanoid_control.capture.body_points import BodyPoints
from humanoid_control.capture.marker_sets import BodyLocator
from humanoid_control.capture.sternum import chest_axes

TRUNK = ("l_hip", "r_hip", "sternum", "l_shoulder", "r_shoulder")


class LiveBody:
    """A marker set applied to single frames, with what was found at the calibration.

    Every input of a recipe is a mean of markers, so that one matrix gives all of them at once.

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
        self._recipes = []
        for point in self._points:
            inputs = {name: rows.setdefault(labels, len(rows)) for name, labels in locator.inputs(point).items()}
            self._recipes.append((point, inputs, locator.marker_set.points[point]))
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
        for point, rows, recipe in self._recipes:
            if recipe.rule is None:
                at[point] = inputs[rows[point]]
            else:
                at[point] = recipe.rule(recipe.side, **{name: inputs[row] for name, row in rows.items()})
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
