"""Retargeting of one clip for one robot, from job to outcome.

On one machine, equal jobs give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import resource
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pinocchio as pin

from humanoid_control import __version__
from humanoid_control.clip_library.clips import LibraryClip, unpacked
from humanoid_control.clip_library.figures import figure_of
from humanoid_control.errors import ClipError, ConfigError, HumanoidError, RobotError, first_line, one_line
from humanoid_control.evaluation import measure_clip
from humanoid_control.evaluation.stretching import feasible_row, stretch_notes, stretched
from humanoid_control.mocap import BodyPoints, find_body_points, load_body_points, load_clip
from humanoid_control.mocap.load import MAY_LACK_RATE
from humanoid_control.performing import (
    WITH_FORCES,
    DynamicMotion,
    FeasibilitySettings,
    approach,
    as_whole_body,
    feasibility_row,
    make_feasible,
    write_with_forces,
)
from humanoid_control.retargeting import (
    INTERCHANGE,
    LIVE,
    JointTrajectory,
    RetargetSettings,
    WholeBodyMotion,
    WholeBodyTask,
    WholeBodyTrajectory,
    retarget_clip,
    scale_to_robot,
    shows_legs,
    whole_body_settings,
)
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.catalogue import urdf_path
from humanoid_control.robots.names import KNOWN
from humanoid_control.robots.robot import FIXED, FLOATING
from humanoid_control.walking.gait import GRAVITY

FORMATS = (".csv", ".npz", ".mcap")
RECORD = 3  # format of records and figures; a new number repeats all jobs
KEPT_BODIES, KEPT_ROBOTS = 2, 16  # clips and robots that a worker keeps for following jobs
BAD_INPUT, UNEXPECTED, NO_MEMORY, DIED = "bad input", "unexpected", "out of memory", "died"
"""Kinds of failures; only bad input is permanent, so the next run does not retry it."""


def write_trajectory(
    path: Path,
    trajectory: JointTrajectory,
    targets: np.ndarray,
    robot: Robot | None = None,
    layout: str = "",
    dynamic: DynamicMotion | None = None,
) -> None:
    """Write a trajectory in the format of the suffix.

    Args:
        targets: targets (T, P, 3) [m], where supported.
        robot: robot, for whole-body bags and foreign layouts.
        layout: layout in `retargeting.INTERCHANGE`, or 'dynamic'; empty: own layout.
        dynamic: the same motion with its forces, for the layouts that hold them.
    """
    if dynamic is not None and robot is not None and layout in WITH_FORCES:
        write_with_forces(path, dynamic, robot, layout)
    elif layout in INTERCHANGE and isinstance(trajectory, WholeBodyTrajectory) and robot is not None:
        INTERCHANGE[layout].write(path, trajectory, robot)
    elif path.suffix == ".csv":
        trajectory.write_csv(path)
    elif path.suffix == ".npz":
        trajectory.write_npz(path, targets)
    else:
        from humanoid_control.evaluation.trajectory_bag import write_joint_commands

        write_joint_commands(path, trajectory, robot)


# -------- Jobs


@dataclass(frozen=True)
class LibrarySettings:
    """Settings of a library, as in `humanoid retarget`.

    Attributes:
        whole_body: move root and legs too, if shown.
        acceleration: joint acceleration limit [rad/s^2]; None: of the solver.
        raw: do not clean clips.
        format: suffix of the files.
        marker_set: name or path of a marker set.
        marker_file: its content, for workers with other disks.
        rate: rate of clips that state none [Hz].
        method: method in WHOLE_BODY_METHODS.
        feasible: make whole bodies feasible (`performing.make_feasible`).
        pace: their pace; 0: slower where needed.
        lead_in: begin feasible motions with steps from standing at rest.
        stretch: slow whole bodies locally (`evaluation.stretching`), or report it, as feasible ones are without.
        layout: layout of another program in INTERCHANGE, or 'dynamic'; empty: ours.
    """

    whole_body: bool = False
    solver: RetargetSettings = field(default_factory=RetargetSettings)
    acceleration: float | None = None
    speed: float = 1.0
    raw: bool = False
    format: str = ".npz"
    marker_set: str | None = None
    marker_file: bytes | None = None
    unit: str = ""
    scale: float = 1.0
    up: str = ""
    rate: float | None = None
    method: str = LIVE
    feasible: bool = False
    pace: float = 0.0
    lead_in: bool = False
    stretch: bool = False
    layout: str = ""

    def text(self) -> str:
        """Return all settings as an identifying line."""
        values = asdict(self)
        if self.marker_file is not None:
            values["marker_file"], values["marker_set"] = hashlib.sha256(self.marker_file).hexdigest(), None
        return json.dumps(values, sort_keys=True)


@dataclass(frozen=True)
class WorkerRobot:
    """Robot with its source for workers.

    Attributes:
        spec: argument of `load_robot` on this machine.
        files: name -> content, URDF first; None if the worker has the robot.
    """

    name: str
    spec: str
    digest: str
    files: dict[str, bytes] | None = None

    @classmethod
    def of(cls, spec: str) -> WorkerRobot:
        """Return a robot that `load_robot` finds here.

        Raises:
            UnknownNameError: if it is unknown.
            RobotError: if it cannot be loaded.
        """
        robot = load_robot(spec, FIXED)
        return cls(robot.name, spec, robot_digest(robot))

    @contextmanager
    def here(self) -> Iterator[str | Path]:
        """Yield the argument of `load_robot` on the worker."""
        if self.files is None:
            yield self.spec
        else:
            with unpacked(self.files) as path:
                yield path

    def packed(self) -> WorkerRobot:
        """Return the robot with its files, unless it is in the catalogue.

        Raises:
            RobotError: if a file is unreadable.
        """
        if self.spec in KNOWN:
            return self
        path = urdf_path(self.spec)
        try:
            beside = sorted(p for p in path.parent.glob(f"{glob_free(path.stem)}.*yaml") if p.is_file())
            return replace(self, files={p.name: p.read_bytes() for p in (path, *beside)})
        except OSError as e:
            raise RobotError(f"{path}: cannot be read: {e.strerror or e}") from None


def glob_free(text: str) -> str:
    """Escape a text for patterns."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in text)


def robot_digest(robot: Robot) -> str:
    """Return the SHA-256 of all robot properties that affect retargeting and quality."""
    text = [robot.name, robot.model.saveToString(), robot.base, robot.anchor, repr(robot.shapes), repr(robot.feet)]
    text += [repr(sorted((k, v.tolist()) for k, v in robot.postures.items())), repr(sorted(robot.points.items()))]
    text += [repr(sorted(robot.meanings.items())), repr(robot.mimic), repr(robot.pairs.tolist())]
    text += [repr(robot.imitation_joints.tolist()), repr(robot.optional_joints.tolist())]
    text += [repr(robot.effort_known.tolist())]
    text += [repr(a.tolist()) for a in (robot.acceleration_limits, robot.braking_limits)]
    text += [repr(pin.SE3ToXYZQUAT(robot.X_world_root).tolist())]
    return hashlib.sha256("\0".join(text).encode()).hexdigest()


@dataclass(frozen=True)
class Job:
    """One clip for one robot.

    Attributes:
        files: files of the clip for workers with other disks; None: read its path.
        deliver: fsspec address of the output; empty: return the content.
    """

    clip: LibraryClip
    digest: str
    robot: WorkerRobot
    settings: LibrarySettings
    files: dict[str, bytes] | None = None
    deliver: str = ""

    @property
    def key(self) -> str:
        """Identifier of clip, content, robot, settings and version."""
        text = [self.clip.name, self.digest, self.robot.name, self.robot.digest, self.settings.text()]
        return hashlib.sha256("\0".join([*text, __version__, str(RECORD)]).encode()).hexdigest()[:32]

    @property
    def output(self) -> str:
        return f"{self.robot.name}/{self.clip.name}{self.settings.format}"


@dataclass(frozen=True)
class ClipOutcome:
    """Result of a job.

    Attributes:
        record: plain values: clip, robot, key, failed (kind of failure, or empty), reason, grade, verdict, numbers,
            warnings, seconds, output (name), bytes (size), sha256, figure.
        content: output, or None after a failure or delivery.
        memory: peak memory of the worker [bytes].
    """

    record: dict[str, Any]
    content: bytes | None = None
    memory: int = 0


def failure(job: Job, kind: str, reason: str, seconds: float = 0.0) -> ClipOutcome:
    record = {"clip": job.clip.name, "robot": job.robot.name, "key": job.key, "failed": kind, "reason": reason}
    return ClipOutcome(record | {"seconds": round(seconds, 3), "output": job.output})


# -------- Execution


class _Kept(threading.local):
    """Thread-local cache of solvers and robots."""

    def __init__(self) -> None:
        self.robots: OrderedDict[str, Any] = OrderedDict()
        self.bodies: OrderedDict[str, Any] = OrderedDict()


_kept = _Kept()


def _once(kept: OrderedDict[str, Any], most: int, key: str, make: Callable[[], Any]) -> Any:
    """Return a cached value, or make it; a HumanoidError is cached too."""
    if key not in kept:
        try:
            kept[key] = make()
        except HumanoidError as e:
            kept[key] = e
        while len(kept) > most:
            kept.popitem(last=False)
    kept.move_to_end(key)
    if isinstance(kept[key], HumanoidError):
        raise kept[key]
    return kept[key]


def do_job(job: Job) -> ClipOutcome:
    """Do a job; errors become failures with a reason."""
    begin = time.monotonic()
    try:
        outcome = _done(job)
    except HumanoidError as e:
        outcome = failure(job, BAD_INPUT, _without_place(job, str(e)))
    except MemoryError:
        outcome = failure(job, NO_MEMORY, "needs more memory than available")
    except Exception as e:  # a bug must not stop the library
        outcome = failure(job, UNEXPECTED, one_line(f"unexpected {type(e).__name__}: {first_line(e)}"))
    outcome.record["seconds"] = round(time.monotonic() - begin, 3)
    memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return replace(outcome, memory=memory)


def _without_place(job: Job, text: str) -> str:
    """Replace a clip's path in a message by its name."""
    return one_line(text.replace(job.clip.source, job.clip.name))


def _done(job: Job) -> ClipOutcome:
    s = job.settings
    body: BodyPoints = _once(
        _kept.bodies, KEPT_BODIES, f"{job.clip.name} {job.digest} {s.text()}", lambda: _placeless_body(job)
    )
    warnings, numbers = list(body.warnings), dict[str, float]()
    whole = s.whole_body and shows_legs(body)
    if s.whole_body and not whole:
        warnings.append("has no legs: only the upper body is retargeted")
    robot = _robot_of(job, FLOATING if whole else FIXED)
    if whole and not robot.feet:
        whole, robot = False, _robot_of(job, FIXED)
        warnings.append(f"{robot.name} has no legs with soles: only the upper body is retargeted")
    if s.layout and not whole:
        raise ClipError(f"{warnings[-1].partition(':')[0]}, and --format {s.layout} has a root")
    dynamic = None
    if whole:
        task = WholeBodyTask.of(body, robot, s.speed)
        motion = task.solve(whole_body_settings(s.acceleration, s.method), None, s.method)
        given, slower = motion, stretched(motion, robot) if s.stretch and not s.feasible else None
        motion = slower.motion if slower is not None else motion
        if s.feasible:
            motion, dynamic = feasible(motion, robot, s.pace, s.lead_in, s.speed)
            row = feasibility_row(dynamic, robot.mass * GRAVITY)
            numbers |= {k: v for k, v in row.items() if not isinstance(v, str)}
            warnings += [dynamic.fallback] if dynamic.fallback else []
        trajectory: JointTrajectory = motion.trajectory
        targets = motion.targets.positions
        warnings += task.notes
        quality = measure_clip(robot, trajectory, motion.targets.contacts)
        changed = slower.row if slower is not None else {}
        if s.stretch and dynamic is not None:
            changed = feasible_row(given, robot, dynamic, quality)
        numbers |= {f"stretch_{k}": v for k, v in changed.items() if not isinstance(v, str)}
        warnings += stretch_notes(changed)
    else:
        trajectory, targets = _upper_body(body, robot, s)
        quality = measure_clip(robot, trajectory)
    numbers = quality.numbers | numbers
    content = _file_content(job, trajectory, targets, robot, dynamic)
    record = {
        "clip": job.clip.name,
        "robot": job.robot.name,
        "key": job.key,
        "failed": "",
        "reason": "",
        "grade": quality.grade,
        "verdict": quality.verdict,
        "numbers": {k: None if np.isnan(v) else v for k, v in numbers.items()},
        "warnings": warnings,
        "output": job.output,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "figure": figure_of(robot, trajectory),
    }
    if job.deliver:
        from humanoid_control.clip_library.places import place_for

        place_for(job.deliver).put(job.output, content)
        return ClipOutcome(record)
    return ClipOutcome(record, content)


def feasible(
    motion: WholeBodyMotion, robot: Robot, pace: float, lead_in: bool, speed: float
) -> tuple[WholeBodyMotion, DynamicMotion]:
    """Return a feasible motion, with its targets and with its forces; arguments as in LibrarySettings."""
    dynamic = make_feasible(motion.trajectory, robot, FeasibilitySettings(pace=pace).at_speed(speed))
    if lead_in:
        dynamic = approach(robot, robot.q("neutral"), dynamic)
    return as_whole_body(dynamic, motion.targets), dynamic


def _robot_of(job: Job, base: str) -> Robot:
    """Return the cached robot of a job."""
    source = job.robot

    def load() -> Robot:
        with source.here() as spec:
            robot = load_robot(spec, FIXED)
            if robot_digest(robot) != source.digest:
                raise RobotError(
                    f"{source.name}: the worker has different files of this robot, or they have changed: install the "
                    "same package and files everywhere"
                )
            robot = load_robot(spec, base) if base != FIXED else robot
            _ = robot.acceleration_limits  # reads the drive file, which may be temporary
        return robot

    return cast(Robot, _once(_kept.robots, KEPT_ROBOTS, f"{source.digest} {base}", load))


def _placeless_body(job: Job) -> BodyPoints:
    """Read the body, without paths in messages."""
    try:
        body = _read_body(job)
    except HumanoidError as e:
        raise ClipError(_without_place(job, str(e))) from None
    return replace(body, warnings=tuple(_without_place(job, w) for w in body.warnings))


def _read_body(job: Job) -> BodyPoints:
    s = job.settings
    if s.marker_file is not None and not Path(s.marker_set or "").is_file():
        with unpacked({"marker_set.yaml": s.marker_file}) as path:
            return _read_body(replace(job, settings=replace(s, marker_set=str(path), marker_file=None)))
    if job.files is not None:
        with unpacked(job.files) as path:
            clip = replace(job.clip, path=str(path))
            try:
                return _read_body(replace(job, clip=clip, files=None))
            except HumanoidError as e:
                raise ClipError(str(e).replace(str(path), job.clip.name)) from None
    rate = s.rate if Path(job.clip.source).suffix.lower() in MAY_LACK_RATE else None
    if s.raw:
        return find_body_points(load_clip(job.clip.source, rate, s.unit, s.scale, s.up), s.marker_set)
    return load_body_points(job.clip.source, s.marker_set, rate=rate, unit=s.unit, scale=s.scale, up=s.up)


def _upper_body(body: BodyPoints, robot: Robot, s: LibrarySettings) -> tuple[JointTrajectory, np.ndarray]:
    settings = s.solver if s.acceleration is None else replace(s.solver, acceleration=s.acceleration)
    targets = scale_to_robot(body, robot).paced(s.speed)
    return retarget_clip(targets, robot, settings), targets.positions


def _file_content(
    job: Job, trajectory: JointTrajectory, targets: np.ndarray, robot: Robot, dynamic: DynamicMotion | None
) -> bytes:
    """Return the output file.

    Raises:
        ConfigError: if the layout cannot hold the motion.
        OSError: if the temporary folder is full.
    """
    layout = job.settings.layout
    with tempfile.TemporaryDirectory(prefix="clip_") as folder:
        path = Path(folder) / f"motion{Path(job.output).suffix}"
        try:
            write_trajectory(path, trajectory, targets, robot, layout, dynamic)
        except ConfigError as e:
            if isinstance(e.__context__, OSError):
                raise OSError(f"the folder for temporary files is full: {e}") from None
            raise
        return path.read_bytes()


def versions() -> dict[str, str]:
    """Return versions that workers must share."""
    return {"humanoid_control": __version__, "record": str(RECORD), "pin": pin.__version__, "numpy": np.__version__}


def compile_for(settings: LibrarySettings) -> None:
    """Compile missing kernels."""
    from humanoid_control.warm_up import PERFORMING, RETARGETING, WHOLE_BODY, compile_first

    groups = [WHOLE_BODY] if settings.whole_body else []
    compile_first(RETARGETING, *groups, *([PERFORMING] if settings.feasible else []))


def warm() -> None:
    from humanoid_control.warm_up import compile_first

    compile_first()
