"""Retargeting of a library, with results stored one by one.

clips x robots -> jobs -> those without a record -> executor -> output, record, manifest
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from humanoid_control.clip_library.clips import LibraryClip
from humanoid_control.clip_library.manifest import Record, Records, write_manifest
from humanoid_control.clip_library.places import Place
from humanoid_control.clip_library.work import BAD_INPUT, Job, LibrarySettings, WorkerRobot, failure
from humanoid_control.clip_library.workers import Executor
from humanoid_control.errors import ClipError, HumanoidError

MANIFEST_PERIOD = 20.0  # [s] between manifests during a run
Show = Callable[[float, str], None]
"""Progress callback: share done (0 to 1), and a text with counts, failures and remaining time."""


@dataclass
class LibraryReport:
    """Result of a library run.

    Attributes:
        rows: record of each job, by clip and robot.
        done: jobs done in this run.
        kept: jobs done before.
        files: manifest files.
        seconds: duration [s].
    """

    rows: list[Record] = field(default_factory=list)
    done: int = 0
    kept: int = 0
    files: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failures(self) -> list[Record]:
        return [r for r in self.rows if r["failed"]]

    def grades(self) -> dict[str, dict[str, int]]:
        """Return robot -> grade -> number of clips; failures under '-'."""
        out: dict[str, dict[str, int]] = {}
        for r in self.rows:
            row = out.setdefault(r["robot"], {})
            row[r.get("grade", "-")] = row.get(r.get("grade", "-"), 0) + 1
        return out


def library_jobs(
    clips: Sequence[LibraryClip],
    robots: Sequence[WorkerRobot],
    settings: LibrarySettings,
    show: Show = lambda share, text: None,
) -> tuple[list[Job], list[Record]]:
    """Return jobs, and failure records of unreadable clips."""
    jobs, failed = [], []
    total, done = sum(clip.size() for clip in clips), 0
    for k, clip in enumerate(clips):
        try:
            digest, reason = clip.digest(), ""
        except ClipError as e:
            digest, reason = "", str(e).replace(clip.source, clip.name)
        for robot in robots:
            job = Job(clip, digest, robot, settings)
            if reason:
                failed.append(failure(job, BAD_INPUT, reason).record)
            else:
                jobs.append(job)
        done += clip.size()
        show(done / total, f"{k + 1} of {len(clips)} clips read")
    return jobs, failed


def retarget_library(
    jobs: Sequence[Job], failed: Sequence[Record], place: Place, executor: Executor, show: Show
) -> LibraryReport:
    """Process the jobs without a finished record.

    Results are also stored after an error or Ctrl-C.

    Args:
        jobs: jobs of `library_jobs`.
        failed: its failure records.
        show: called with the progress, 0 to 1, and a text.

    Raises:
        ConfigError: if the disk is full.
        EnvironmentProblem: if no worker is left.
    """
    begin = time.monotonic()
    records = Records(place)
    for record in failed:
        records.add(record)
    todo = [job for job in jobs if not records.finished(job)]
    report = LibraryReport(kept=len(jobs) - len(todo))
    pace = _Pace(todo, show, sum(bool(records.known[j.key]["failed"]) for j in jobs if j.key in records.known))
    by_key = {job.key: job for job in todo}
    if executor.delivers:  # workers write outputs before their outcomes arrive
        for job in todo:
            records.remove(job.clip.name, job.robot.name)
    written = time.monotonic()
    outcomes = executor.outcomes(todo)
    try:
        for outcome in outcomes:
            record = outcome.record
            records.add(record, outcome.content)
            report.done += 1
            pace.passed(by_key[record["key"]], bool(record["failed"]))
            if time.monotonic() - written > MANIFEST_PERIOD:
                took = time.monotonic()
                write_manifest(place, records.rows())
                written = time.monotonic() + 20 * (time.monotonic() - took)  # at most a twentieth of the time
    except BaseException:
        with contextlib.suppress(HumanoidError):  # the first error is reported
            write_manifest(place, records.rows())
        raise
    finally:
        close = getattr(outcomes, "close", None)
        if close is not None:
            close()
    report.files = write_manifest(place, records.rows())
    keys = [job.key for job in jobs] + [record["key"] for record in failed]
    report.rows = sorted((records.known[key] for key in keys), key=lambda r: (r["clip"], r["robot"]))
    report.seconds = time.monotonic() - begin
    return report


class _Pace:
    """Progress of a run by clip sizes."""

    def __init__(self, jobs: Sequence[Job], show: Show, failed: int) -> None:
        self._size = {job.key: job.clip.size() for job in jobs}
        self._total, self._left = sum(self._size.values()), len(jobs)
        self._jobs, self._done, self._failed, self._show = len(jobs), 0, failed, show
        self._first: tuple[float, int] | None = None

    def passed(self, job: Job, failed: bool) -> None:
        self._done += self._size[job.key]
        self._left -= 1
        self._failed += failed
        text, now = f"{self._jobs - self._left} of {self._jobs}, {self._failed} failed", time.monotonic()
        if self._first is None:  # earlier, workers started and kernels were possibly compiled
            self._first = now, self._done
        else:
            left = (now - self._first[0]) * (self._total - self._done) / (self._done - self._first[1])
            text += f", {duration_text(left)} left"
        self._show(self._done / self._total, text)


def duration_text(seconds: float) -> str:
    """Return a duration as text, such as 2 h 5 min."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
