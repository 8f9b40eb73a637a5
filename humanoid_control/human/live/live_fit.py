"""Live fit of a person, each frame from the previous one.

Outliers are down-weighted from the past alone. The first frames give the up axis. Angles have no jumps of full turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.compiled.packed import Packed
from humanoid_control.errors import ClipError, ConfigError
from humanoid_control.human.analysis import trunk_direction, turning_to_up, upward, with_free_root
from humanoid_control.human.calibration import Calibration, calibrate
from humanoid_control.human.ik_setup import FitTasks
from humanoid_control.human.live.frame_solver import LiveRecord, arrange, fit_live
from humanoid_control.human.marker_fit import LEAST_OUTLIER, REASONS, UNSEEN, ClipFit, FitSettings
from humanoid_control.human.marker_solver import start_memory
from humanoid_control.human.model import Person
from humanoid_control.mocap import plain_label
from humanoid_control.mocap.live import FARTHEST

TOLERANCE = 1e-4  # [rad, m] of a step: a smaller one does not lower the residual
OUTLIER = 5.0  # in usual residuals of a marker
USUAL = 0.01  # [m] initial usual residual
LEAST_SEEN = 3  # markers
TRIED = 10  # frames used to find the up axis


@dataclass(frozen=True, eq=False)
class LiveFrame:
    """Result of one frame.

    Attributes:
        q: (n,) [rad, m].
        std: (n,); inf: undetermined.
        root_covariance: (6, 6); NaN: undetermined.
        measured: (M, 3) person axes [m]; NaN: not visible.
        fitted: (M, 3) person axes [m].
        residuals: (M,) [m]; NaN: not visible.
        rms: [m].
        reason: why the search ended.
        restarted: several starts were tried.
        outliers: labels with reduced weight.
    """

    q: np.ndarray
    std: np.ndarray
    root_covariance: np.ndarray
    measured: np.ndarray
    fitted: np.ndarray
    residuals: np.ndarray
    rms: float
    steps: int
    reason: str
    restarted: bool
    outliers: tuple[str, ...]

    @property
    def unknown(self) -> np.ndarray:
        """(n,) True for undetermined coordinates, which keep their value."""
        return self.std > UNSEEN


class LiveFit:
    """Live fit of a person to frames of markers.

    Attributes:
        person: with an unbounded root.
        labels: of its M markers.
        turn: (3, 3) rotation from marker to person axes; None until known.
    """

    def __init__(self, person: Person, tasks: FitTasks | None = None, up: np.ndarray | None = None) -> None:
        """Create a live fit.

        Args:
            tasks: weights of the markers.
            up: (3,) marker axes; None: from the first frames.
        """
        self.person, self._tasks = with_free_root(person), tasks or FitTasks()
        self._tasks.check(self.person)
        self.labels = tuple(m.name for m in self.person.markers)
        if len(self.labels) < LEAST_SEEN:
            raise ConfigError(f"{person.name} has {len(self.labels)} markers: a live fit needs {LEAST_SEEN} or more")
        self.turn = None if up is None else turning_to_up(up / np.linalg.norm(up), upward(self.person))
        self._exact = {label: k for k, label in enumerate(self.labels)}
        self._plain = {plain_label(label): k for k, label in reversed(list(enumerate(self.labels)))}
        self._given: tuple[str, ...] = ()
        self._columns, self._rows = np.zeros(0, dtype=int), np.zeros(0, dtype=int)
        self.restart()

    def restart(self) -> None:
        """Discard the posture."""
        self._clip: ClipFit | None = None
        self._first: list[np.ndarray] = []

    def arranged(self, labels: tuple[str, ...], positions: np.ndarray) -> np.ndarray:
        """Return markers (M, 3) in the person's order; NaN: not visible.

        Args:
            labels: unknown and duplicate ones are ignored.
            positions: [m]; NaN, infinite or exactly (0, 0, 0): not visible.
        """
        if labels != self._given:
            found = [self._exact.get(label, self._plain.get(plain_label(label), -1)) for label in labels]
            rows = [k for k, m in enumerate(found) if m >= 0 and found.count(m) == 1]
            self._given, self._rows = labels, np.array(rows, dtype=int)
            self._columns = np.array([found[k] for k in rows], dtype=int)
        out = np.empty((len(self.labels), 3))
        arrange(np.ascontiguousarray(positions, dtype=float), self._rows, self._columns, FARTHEST, out)
        return out

    def fit(self, markers: np.ndarray) -> LiveFrame | None:
        """Fit markers (M, 3) [m] from `arranged`; None until up is known, or with fewer than three.

        Raises:
            ClipError: if the first frames have another size than the person.
        """
        if np.count_nonzero(np.isfinite(markers[:, 0])) < LEAST_SEEN:
            return None
        if self.turn is None:
            self._first.append(markers)
            if len(self._first) < TRIED:
                return None
            tried, self._first = np.array(self._first), []
            self.turn = turning_to_up(find_up(self.person, tried, self.labels), upward(self.person))
        if self._clip is None:
            self._begin(markers @ self.turn.T)
        return self._solve(np.array(markers, dtype=float), np.ascontiguousarray(self.turn))

    def _begin(self, markers: np.ndarray) -> None:
        """Create the arrays of a single frame."""
        settings = FitSettings(tolerance=TOLERANCE, swaps=False, outliers=0.0)
        own = list(range(len(self.labels)))
        clip = ClipFit(self.person, markers[None], own, self._tasks, settings)
        n, shape = self.person.n, (len(own), 3)
        told = np.zeros(shape), np.zeros(n), np.full((6, 6), np.nan), np.zeros(len(own), dtype=bool)
        self._clip, self._record = clip, Packed(
            LiveRecord(
                clip.record().record, start_memory(clip.problem.rest), clip.given.astype(float),
                np.full(len(own), USUAL), OUTLIER, LEAST_OUTLIER, *told,
            )
        )  # fmt: skip

    def _solve(self, markers: np.ndarray, turn: np.ndarray) -> LiveFrame:
        """Fit markers (M, 3), turned in place."""
        live = self._record.record
        rms = fit_live(self._record.table, markers, turn)
        results, far = live.fit.results, live.far
        steps, why, anew, _ = results.info[0].tolist()
        outliers = tuple(self.labels[m] for m in np.flatnonzero(far)) if far.any() else ()
        return LiveFrame(
            results.q[0].copy(), live.std.copy(), live.covariance.copy(), markers, live.fitted.copy(),
            results.residual[0].copy(), rms, steps, REASONS[why], anew == 1, outliers,
        )  # fmt: skip


def find_up(person: Person, markers: np.ndarray, labels: Sequence[str]) -> np.ndarray:
    """Return the up axis (3,) of markers (T, M, 3) from the fitted trunk."""
    trunk = trunk_direction(person, markers, labels)
    k = int(np.argmax(np.abs(trunk)))
    return np.asarray(np.sign(trunk[k]) * np.eye(3)[k])


class LiveRecorder:
    """Recorder of `duration` [s] of motion to calibrate a person."""

    def __init__(self, duration: float) -> None:
        self.duration = duration
        self._frames: deque[np.ndarray] = deque(maxlen=20_000)
        self._started_at = float("nan")
        self.collected = 0.0

    def add(self, markers: np.ndarray, now: float) -> bool:
        """Add a frame (M, 3) at a time [s]; return True when complete."""
        if not self._frames:
            self._started_at = now
        self._frames.append(markers)
        self.collected = now - self._started_at
        return self.collected >= self.duration

    def calibrate(self, person: Person, turn: np.ndarray, labels: Sequence[str]) -> Calibration:
        """Calibrate the person to the recorded frames; ClipError as `calibrate`.

        Args:
            turn: (3, 3) marker to person axes.
            labels: of the M markers.
        """
        markers = np.array(self._frames) @ turn.T
        often = np.isfinite(markers[..., 0]).mean(axis=0) > 0.1
        if often.sum() < LEAST_SEEN:
            raise ClipError(
                f"only {int(often.sum())} markers were seen for {self.duration:g} s: calibration is not possible"
            )
        return calibrate(person, markers[:, often], [n for n, k in zip(labels, often, strict=True) if k])
