"""Live fit of a person: frame by frame as markers come, from where the frame before led, none waited for.

What a clip gives in passes over all frames is here from the past alone: a marker far beyond where it usually lies
counts less in its frame, and the first frames give the up axis. Angles continue without jumps of a full turn,
for each frame begins where the one before led.
`LiveRecorder` keeps a few seconds of motion, by which the person is calibrated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
from humanoid_control.numerics.packed import Packed

TOLERANCE = 1e-4  # [rad, m] of a step: the root mean square is the same as with less
OUTLIER = 5.0  # in usual residuals of a marker
USUAL = 0.01  # [m] residual that is taken for usual at first
LEAST_SEEN = 3  # markers
TRIED = 10  # frames that tell which way is up


@dataclass(frozen=True, eq=False)
class LiveFrame:
    """One frame.

    Args:
        q: (n,) coordinates [rad, m], angles without jumps.
        std: (n,) their standard deviation by the residuals; infinite where no marker tells.
        root_covariance: (6, 6) of the root's coordinates; NaN where markers do not tell.
        measured, fitted: (M, 3) markers in the axes of the person [m]; measured is NaN where one is not seen.
        residuals: (M,) [m]; NaN where one is not seen.
        rms: of these.
        steps, reason: taken, and why they ended.
        restarted: several starts were tried.
        outliers: labels of markers that count less in this frame.
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
        """(n,) true for coordinates of which no marker tells: they stay where they were."""
        return self.std > UNSEEN


class LiveFit:
    """Fits a person to frames of markers.

    Attributes:
        person: whose root has no bounds.
        labels: of its M markers.
        turn: (3, 3) from the axes of the markers to those of the person; None until it is known.
    """

    def __init__(self, person: Person, tasks: FitTasks | None = None, up: np.ndarray | None = None) -> None:
        """Create the live fit.

        Args:
            person: of the size of who moves, or to be calibrated.
            tasks: weights of the markers.
            up: (3,) direction upwards in the axes of the markers; None: found by the first frames.
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
        """Forget where the person was; the next frame is tried from many starts."""
        self._clip: ClipFit | None = None
        self._first: list[np.ndarray] = []

    def arranged(self, labels: tuple[str, ...], positions: np.ndarray) -> np.ndarray:
        """(M, 3) the markers of a frame in the person's order, NaN for those that are not seen.

        Args:
            labels: as they came, of any number; others than the person's, and those that come twice, are left out.
            positions: one for each label [m]; NaN, infinite or exactly (0, 0, 0): not seen.
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
        """Fit a frame.

        Args:
            markers: (M, 3) as `arranged` gives them, in axes of the markers [m].

        Returns:
            None while it is not known which way is up, and where fewer than three markers are seen.

        Raises:
            ClipError: the first frames are of another size than the person, or not upright at all.
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
        """Arrays of a single frame."""
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
        """Fit markers (M, 3), which are turned in place."""
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
    """(3,) axis of the markers (T, M, 3) that points upwards, by the trunk of the fitted person.

    Raises:
        ClipError: as `fit`.
    """
    trunk = trunk_direction(person, markers, labels)
    k = int(np.argmax(np.abs(trunk)))
    return np.asarray(np.sign(trunk[k]) * np.eye(3)[k])


class LiveRecorder:
    """Keeps frames of a few seconds of motion, and calibrates a person by them.

    Attributes:
        duration: to be recorded [s].
    """

    def __init__(self, duration: float) -> None:
        self.duration = duration
        self._frames: deque[np.ndarray] = deque(maxlen=20_000)
        self._begun = float("nan")
        self.collected = 0.0

    def add(self, markers: np.ndarray, now: float) -> bool:
        """Take a frame (M, 3) at a time [s]; true once there is enough."""
        if not self._frames:
            self._begun = now
        self._frames.append(markers)
        self.collected = now - self._begun
        return self.collected >= self.duration

    def calibrate(self, person: Person, turn: np.ndarray, labels: Sequence[str]) -> Calibration:
        """Find the person's sizes and places of markers.

        Args:
            person: to begin with.
            turn: (3, 3) from the axes of the markers to those of the person.
            labels: of M.

        Raises:
            ClipError: as `humanoid_control.human.calibrate`.
        """
        markers = np.array(self._frames) @ turn.T
        often = np.isfinite(markers[..., 0]).mean(axis=0) > 0.1
        if often.sum() < LEAST_SEEN:
            raise ClipError(f"only {int(often.sum())} markers were seen for {self.duration:g} s: nothing to go by")
        return calibrate(person, markers[:, often], [n for n, k in zip(labels, often, strict=True) if k])
