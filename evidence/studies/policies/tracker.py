"""A tracker of others judges motions: clips retargeted by us and by GMR, performed by TWIST2 in MuJoCo, and pushed.

A motion that a robot can follow keeps it on its feet. The tracker is a learned policy that knows neither this project
nor GMR; each checkpoint of it performs each motion undisturbed, and once more for every seed with a push on the trunk
whose moment and direction are random. Its torques go through no gate: the motion is judged, not the gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from evidence.studies.gmr import GMR_ROBOTS, gmr_installed
from evidence.studies.report import KeptOutcomes, Progress, StudyReport, as_markdown, silent
from evidence.studies.whole_bodies import CLIP, OURS, clip_name, moved_by
from evidence.studies.whole_bodies import GMR as PEER
from humanoid_control.errors import ConfigError, HumanoidError, UnknownNameError
from humanoid_control.evaluation.clip_quality import GRADES
from humanoid_control.evaluation.whole_body_score import score_motion
from humanoid_control.mocap import load_body_points
from humanoid_control.paths import share_dir, test_data
from humanoid_control.performing import make_feasible
from humanoid_control.policy import (
    Motion,
    MotionReference,
    PlayReport,
    Policy,
    PolicyPlayer,
    load_policy,
    play,
    policy_engine,
)
from humanoid_control.retargeting import WholeBodyTrajectory
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.catalogue import urdf_path
from humanoid_control.terminal import ReportTable, machine
from humanoid_control.warm_up import WHOLE_BODY, compile_first

LIVE, WHOLE, FEASIBLE, GMR = "live", "clip", "feasible", "gmr"
METHODS = (LIVE, WHOLE, FEASIBLE, GMR)
WHO = {LIVE: OURS, WHOLE: CLIP, GMR: PEER}
RECORDINGS = (
    "mocap/dance_markers/dance1.trc",
    "mocap/dance_markers/walk1.trc",
    "mocap/cmu_bvh/02_01.bvh",
    "mocap/cmu_bvh/02_05.bvh",
    "mocap/cmu_bvh/05_02.bvh",
    "mocap/cmu_bvh/07_01.bvh",
    "mocap/vicon_c3d/PiG_Motion-FlatFoot-One.c3d",
)  # of $HUMANOID_TEST_DATA
BUILT_IN = ("dance", "gentle_dance")
NETWORK = "policies/twist2/twist2_1017_20k.onnx"  # of $HUMANOID_TEST_DATA
BLEND = 1.0  # [s] from standing to the motion
PUSH, PUSH_TIME = 20.0, 0.1  # [N s], [s]
MOST_PUSH, MOST_SECONDS = 1000.0, 3600.0
ENGINES = ("mujoco", "multibody")
MARGIN = 1.0  # [s] before the end of a clip, and after its begin, without a push
STANDING = 50.0  # [N] on a foot that stands
CAUGHT = (HumanoidError, ArithmeticError, ValueError, IndexError, KeyError, RuntimeError)
HEAD = "`humanoid study tracker -o FILE.md` writes this page; options select clips and checkpoints."
NOTE = (
    "stands: runs in which the robot stays on its feet to the end of the clip, one per checkpoint; pushed: one per "
    "checkpoint and seed, with one push of the given impulse (0.1 s, horizontal, on the trunk, at a random time in a "
    "random direction). joints: mean distance from the motion. slip: median speed of a sole that carries "
    "more than 50 N. path: mean error of the base displacement within 1 s, in its own heading. saturation: share of "
    "joint "
    "steps at the torque limit. These four are means of the runs without a push, until their end. The tracker blends "
    "from standing within 1 s. GMR plans no contacts and has no grade. infeasible: frames with forces beyond the "
    "contacts."
)


class TrackerTrial(NamedTuple):
    """What performs a motion, and how.

    Attributes:
        policy: path of the tracker's description. networks: its checkpoints. seeds: of pushes. push: impulse [N s].
        seconds: of each clip at most. engine: that simulates.
    """

    policy: str
    networks: tuple[str, ...]
    seeds: int = 3
    push: float = PUSH
    seconds: float = 30.0
    engine: str = "mujoco"


def run_study(
    robot: str = "g1",
    clips: Sequence[str] = (),
    method: Sequence[str] = (),
    resume: Path | None = None,
    workers: int | None = None,
    show: Progress = silent,
    **trial: Any,
) -> StudyReport:
    """Let a tracker perform clips that were retargeted in several ways.

    Args:
        robot: that the tracker drives. clips: built in or files; default: two dances that are built in, and the
            recordings that are here.
        method: of METHODS; default: all, GMR where it is installed.
        resume: file that keeps outcomes. workers: processes; None: one a core.
        trial: as of Trial; default: the description of TWIST2, and one of its networks where it is here.

    Raises:
        UnknownNameError, RobotError, ClipError: no such method, engine, robot, clip. ConfigError: no network, or GMR
        is asked for and is not installed; numbers out of range. PolicyError: not a tracker of any motion.
    """
    for name in method:
        if name not in METHODS:
            raise UnknownNameError("method", name, METHODS)
    urdf_path(robot)
    peer = gmr_installed() and robot in GMR_ROBOTS
    if GMR in method and not peer:
        raise ConfigError(f"GMR is not installed here, or does not know {robot}: remove 'gmr' from --method")
    methods = list(dict.fromkeys(method)) or [m for m in METHODS if m != GMR or peer]
    found = [str(path) for path in map(test_data, RECORDINGS) if path is not None]
    clips = list(dict.fromkeys(clips)) or [*BUILT_IN, *found]
    for clip in clips:
        load_body_points(clip)
    kept = KeptOutcomes(resume, "runs of a tracker")
    chosen = chosen_trial(**trial)
    for network in chosen.networks:
        _tracker(chosen.policy, network, robot)
    jobs = [(clip, robot, name, *chosen) for clip in clips for name in methods]
    outcomes = list(kept.all(jobs, _try, workers, lambda share: show(share, "tracker")))
    rows = [{"clip": job[0], "method": job[2]} | o for job, o in zip(jobs, outcomes, strict=True)]
    parts: list[ReportTable | str] = [total_table(rows, methods), clip_table(rows)]
    parts += [f"{clip_name(r['clip'])}, {r['method']}: {r['why']}" for r in rows if r["why"]]
    parts += [worst_grade_line(rows), NOTE]
    if not peer:
        parts.append(f"GMR is not installed here, or does not know {robot}.")
    data = {"study": "tracker", "robot": robot, "clips": clips, "trial": chosen._asdict(), "rows": rows}
    data["machine"] = machine()
    return StudyReport(
        data, parts, pictures=lambda: {"tracker.md": as_markdown("Motions performed by a learned tracker", HEAD, parts)}
    )


def chosen_trial(policy: Path | None = None, networks: Sequence[str] = (), **numbers: Any) -> TrackerTrial:
    """A trial of what is given; the rest as of Trial.

    Raises:
        ConfigError: no network; a number out of range. UnknownNameError: no such engine.
    """
    default = test_data(NETWORK)
    names = tuple(dict.fromkeys(networks)) or ((str(default),) if default is not None else ())
    for path in (*([str(policy)] if policy is not None else []), *names):
        if not Path(path).is_file():
            raise ConfigError(f"no file {path}: give a description of a policy, or a network as an ONNX file")
    if not names:
        raise ConfigError("no network: name a checkpoint of the tracker, --network twist2_1017_20k.onnx")
    trial = TrackerTrial(str(policy or share_dir() / "config" / "policies" / "twist2.yaml"), names, **numbers)
    if trial.engine not in ENGINES:
        raise UnknownNameError("engine", trial.engine, ENGINES)
    if trial.seeds < 0 or not 0.0 <= trial.push <= MOST_PUSH or not 1.0 <= trial.seconds <= MOST_SECONDS:
        raise ConfigError(
            f"seeds must be 0 or more, --push 0 to {MOST_PUSH:g} N s, and --seconds 1 to {MOST_SECONDS:g}"
        )
    return trial


# -------- A motion


@lru_cache(maxsize=4)
def _tracker(policy: str, network: str, robot: str) -> Policy:
    """A checkpoint of the tracker, loaded once a process.

    Raises:
        ConfigError: it follows no motions that are given.
    """
    found = load_policy(policy, load_robot(robot, "floating"), Path(network))
    if not isinstance(found.reference, MotionReference):
        raise ConfigError(f"{policy} does not follow motions: give a tracker")
    return found


@lru_cache(maxsize=2)
def _moved(clip: str, robot: str, method: str) -> tuple[WholeBodyTrajectory, np.ndarray]:
    """A clip on a robot, and the contacts (T, 4) of the person; kept: a feasible motion begins with that of a clip."""
    compile_first(WHOLE_BODY)
    trajectory, person, _ = moved_by(load_body_points(clip), load_robot(robot, "floating"), robot, WHO[method])
    return trajectory, person


def _try(job: tuple[Any, ...]) -> dict[str, Any]:
    """Make a motion, grade it, and let each checkpoint perform it; what goes wrong is an outcome, not an error."""
    clip, robot, method, *rest = job
    try:
        return {"why": "", **perform_motion(clip, robot, method, TrackerTrial(*rest))}
    except CAUGHT as e:
        return {"why": f"{e.__class__.__name__}: {e}"}


def perform_motion(clip: str, name: str, method: str, trial: TrackerTrial) -> dict[str, Any]:
    """Grade of a motion, and what became of each run of it.

    Args:
        clip: built in, or a file. name: of the robot, or its path. method: of METHODS. trial: what performs it.

    Raises:
        ClipError, RobotError: it cannot be retargeted, or made feasible. PolicyError: the tracker does not fit.
    """
    robot = load_robot(name, "floating")
    trajectory, contacts = _moved(clip, name, WHOLE if method == FEASIBLE else method)
    person: np.ndarray | None = None if method == GMR else contacts
    fallback = ""
    if method == FEASIBLE:
        made = make_feasible(trajectory, robot)
        trajectory, fallback = made.trajectory(), made.fallback
        person = None  # its contacts are planned again, its frames are others
    quality = score_motion(clip_name(clip), robot, trajectory, person).quality
    numbers = quality.numbers
    runs = []
    for network in trial.networks:
        policy = _tracker(trial.policy, network, name)
        motion = as_motion(trajectory, policy, trial.seconds)
        for seed in (None, *range(trial.seeds)):
            runs.append({"network": Path(network).stem, "seed": seed, **perform_once(policy, motion, seed, trial)})
    return {
        "grade": "" if method == GMR else quality.grade,
        "fallback": fallback,
        "infeasible_percent": float(numbers.get("infeasible_percent", np.nan)),
        "seconds": (len(motion.joints) - 1) / motion.rate,
        "runs": runs,
    }


def as_motion(trajectory: WholeBodyTrajectory, policy: Policy, seconds: float) -> Motion:
    """The first seconds of a trajectory, in the order of the tracker's joints.

    Raises:
        ConfigError: it lacks a joint.
    """
    names = list(trajectory.joint_names)
    missing = [j for j in policy.model.joints if j not in names]
    if missing:
        raise ConfigError(f"the motion has no joint '{missing[0]}' of the tracker")
    T = min(len(trajectory.positions), round(seconds * trajectory.rate) + 1)
    q = trajectory.positions[:T, [names.index(j) for j in policy.model.joints]]
    return Motion(trajectory.rate, trajectory.root_position[:T], trajectory.root_quaternion[:T], q)


# -------- A run


class Watch:
    """Slip of soles, and error of the base's way, of a run; one push where a seed says when.

    Attributes:
        slips: speeds of soles that carry weight [m/s]. ways: errors of the way within 1 s [m].
    """

    def __init__(self, policy: Policy, motion: Motion, seed: int | None, push: float) -> None:
        """Draw the push.

        Args:
            seed: of its moment and direction; None: none. push: impulse [N s].
        """
        self.slips: list[float] = []
        self.ways: list[float] = []
        self._robot, self._motion = policy.robot, motion
        self._soles: dict[str, np.ndarray] = {}
        self._every = round(1.0 / policy.period)
        self._base: list[np.ndarray] = []
        self._period, self._link = policy.period, _trunk(policy.robot)
        self._push_at, self._force = np.inf, np.zeros(3)
        if seed is not None:
            random = np.random.default_rng(seed)
            length = BLEND + (len(motion.joints) - 1) / motion.rate
            low, high = BLEND + MARGIN, max(length - MARGIN, BLEND + MARGIN)
            angle, self._push_at = random.uniform(-np.pi, np.pi), random.uniform(low, high)
            self._force = push / PUSH_TIME * np.array([np.cos(angle), np.sin(angle), 0.0])

    def __call__(self, player: PolicyPlayer) -> None:
        """Look at the robot after a period of the policy."""
        engine = player.engine
        if engine.time >= self._push_at:
            engine.push(self._link, np.concatenate([self._force, np.zeros(3)]), PUSH_TIME)
            self._push_at = np.inf
        wrenches = engine.foot_wrenches()
        for foot in self._robot.feet:
            place = engine.link_pose(foot.link).act(foot.corners().mean(axis=0))
            before = self._soles.get(foot.name)
            if before is not None and wrenches[foot.name][2] > STANDING:
                self.slips.append(float(np.hypot(*(place - before)[:2])) / self._period)
            self._soles[foot.name] = place
        pose, _ = engine.base_state()
        self._base.append(np.array([pose[0], pose[1], yaw_of(pose[3:])]))
        k = len(self._base) - 1
        if k % self._every == 0 and k >= self._every and engine.time >= BLEND + 1.0:
            mine = way_between(self._base[k - self._every], self._base[k])
            self.ways.append(float(np.linalg.norm(mine - self._goal(engine.time))))

    def _goal(self, time: float) -> np.ndarray:
        """The way (2,) of the motion within the last second [m]."""
        ends = []
        for t in (time - 1.0, time):
            k = min(round((t - BLEND) * self._motion.rate), len(self._motion.position) - 1)
            x, y, _ = self._motion.position[k]
            ends.append(np.array([x, y, yaw_of(self._motion.quaternion[k])]))
        return way_between(*ends)


def yaw_of(quaternion: np.ndarray) -> float:
    """Heading of a rotation x y z w [rad]."""
    R = pin.Quaternion(quaternion / np.linalg.norm(quaternion)).toRotationMatrix()
    return float(np.arctan2(R[1, 0], R[0, 0]))


def way_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Way (2,) from one place x, y, yaw (3,) to another, in the heading of the first [m]."""
    c, s = np.cos(a[2]), np.sin(a[2])
    dx, dy = b[:2] - a[:2]
    return np.array([c * dx + s * dy, c * dy - s * dx])


def _trunk(robot: Robot) -> str:
    """The link that carries the chest; the root link where it is not known."""
    if "sternum" not in robot.points:
        return robot.root_link
    joint = robot.model.frames[robot.points["sternum"]].parentJoint
    links = [f.name for f in robot.model.frames if f.type == pin.FrameType.BODY and f.parentJoint == joint]
    return links[0] if links else robot.root_link


def perform_once(policy: Policy, motion: Motion, seed: int | None, trial: TrackerTrial) -> dict[str, Any]:
    """A run of the tracker: when it fell, and how well it followed.

    Args:
        policy: the tracker. motion: in its joints. seed: of a push; None: none. trial: the conditions.
    """
    assert isinstance(policy.reference, MotionReference)
    player = PolicyPlayer(policy, policy_engine(policy.robot, trial.engine))
    policy.reference.follow(motion)
    watch = Watch(policy, motion, seed, trial.push)
    report: PlayReport = play(player, BLEND + (len(motion.joints) - 1) / motion.rate, watch)
    fell = report.fell if report.fell is not None else (report.seconds if report.stopped else None)
    return {
        "fell": fell,
        "joints_rad": report.joint_error,
        "slip_mm_s": 1000 * float(np.median(watch.slips)) if watch.slips else np.nan,
        "path_cm": 100 * float(np.mean(watch.ways)) if watch.ways else np.nan,
        "saturation_percent": 100 * report.clipped,
    }


# -------- Tables


def survived(rows: Sequence[Mapping[str, Any]], pushed: bool) -> tuple[int, int]:
    """Runs that stay on their feet, and all of them, with pushes or without."""
    runs = [run for r in rows if not r["why"] for run in r["runs"] if (run["seed"] is not None) == pushed]
    return sum(run["fell"] is None for run in runs), len(runs)


def _of(rows: Sequence[Mapping[str, Any]], pushed: bool) -> str:
    stood, all_ = survived(rows, pushed)
    return f"{stood} of {all_}" if all_ else "-"


def _mean(rows: Sequence[Mapping[str, Any]], key: str, digits: int) -> Any:
    values = [run[key] for r in rows if not r["why"] for run in r["runs"] if run["seed"] is None]
    known = [float(v) for v in values if v is not None and np.isfinite(v)]
    return round(float(np.mean(known)), digits or None) if known else "-"


MEASURED = (
    ("joints rad", "joints_rad", 3),
    ("slip mm/s", "slip_mm_s", 0),
    ("path in 1 s cm", "path_cm", 0),
    ("saturation %", "saturation_percent", 1),
)
"""Head, name of the number, digits."""


def total_table(rows: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> ReportTable:
    """A row for each way of retargeting, over all clips."""
    out = []
    for method in methods:
        mine = [r for r in rows if r["method"] == method]
        good = [r for r in mine if not r["why"]]
        grades = " ".join(f"{n}{g}" for g in GRADES if (n := sum(r["grade"] == g for r in good)))
        infeasible = [r["infeasible_percent"] for r in good if r["infeasible_percent"] is not None]
        share = round(float(np.mean(infeasible)), 1) if infeasible else "-"
        out.append([method, len(good), grades or "-", share, _of(mine, False), _of(mine, True)])
        out[-1] += [_mean(mine, key, digits) for _, key, digits in MEASURED]
    columns = ["retargeted", "clips", "grades", "infeasible %", "stands", "pushed", *(head for head, *_ in MEASURED)]
    return ReportTable("performed by the tracker", columns, out)


def clip_table(rows: Sequence[Mapping[str, Any]]) -> ReportTable:
    """A row for each clip and way of retargeting."""
    out = []
    for r in rows:
        if r["why"]:
            continue
        falls = [run["fell"] for run in r["runs"] if run["seed"] is None and run["fell"] is not None]
        infeasible = r["infeasible_percent"]
        share = round(infeasible, 1) if infeasible is not None and np.isfinite(infeasible) else "-"
        row = [clip_name(r["clip"]), r["method"], r["grade"] or "-", share, _of([r], False), _of([r], True)]
        row.append(f"{min(falls):.1f} of {r['seconds'] + BLEND:.1f}" if falls else "-")
        out.append([*row, *(_mean([r], key, digits) for _, key, digits in MEASURED)])
    columns = ["clip", "retargeted", "grade", "infeasible %", "stands", "pushed", "first fall s"]
    return ReportTable("clip by clip", [*columns, *(head for head, *_ in MEASURED)], out)


def worst_grade_line(rows: Sequence[Mapping[str, Any]]) -> str:
    """Motions of the best grade that fall under every checkpoint, in words."""
    fallen = [
        f"{clip_name(r['clip'])} ({r['method']})"
        for r in rows
        if not r["why"] and r["grade"] == GRADES[0] and survived([r], False)[0] == 0
    ]
    said = ", ".join(fallen) or "none"
    return f"Motions of grade {GRADES[0]} that fall under every checkpoint: {said}."
