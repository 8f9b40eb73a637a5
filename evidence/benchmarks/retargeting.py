"""Retargeting, frame by frame and as a whole clip, next to what a user would take instead: speed and quality.

Everybody begins a clip in the same posture and is judged on the same frames by the same measure. WE-4RII is measured
next to WABIAN-2 because avoidance of self-collision has more to do there, and a recorded dance next to the built-in one
because it has more to do still.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from evidence.benchmarks import Row, row_of
from evidence.benchmarks.peers import PINK_PAIRS, mink_stepper, pink_stepper
from evidence.benchmarks.placo_peer import PlacoRetargeting
from humanoid_control.errors import ConfigError
from humanoid_control.mocap import BodyPoints, load_body_points
from humanoid_control.paths import TEST_DATA, test_data
from humanoid_control.retargeting import Retargeter, RetargetSettings, Targets, retarget_clip, scale_to_robot
from humanoid_control.robots import Robot, load_robot
from humanoid_control.terminal import progress, warn
from humanoid_control.warm_up import compile_first

COLUMNS = ["name", "unit", "median", "p99", "n", "error_cm", "error_p95_cm", "closest_mm", "touching_percent"]
COLUMNS += ["peak_rad_s2", "rms_rad_s2", "speed_percent"]
FIVE = ("armar3", "hrp2", "suralp", "wabian2", "we4rii")
ROUNDS = 3
REAL = "mocap/cmu_bvh/05_02.bvh"  # a modern dance of the CMU database, in the folder of `test_data`
ABSENT = f"no rows of {REAL}, in which avoidance is most active: set {TEST_DATA} to the folder that contains it"
FRAMES = 2000  # of a longer clip, as many are taken
CHUNK = 50  # frames after which the next solver has its turn

Frames = Callable[[range], tuple[list[float], np.ndarray]]
"""Takes some frames of a clip: the time of each [s], and the postures (frames, n) that they end in."""


@dataclass
class Method:
    """A way to retarget.

    Attributes:
        name: of its row, below the robot's. begin: makes what takes the frames from 1 on; None where it is one call.
        times: of all frames, over the rounds [s]. joints: (T, n) postures of the last round.
    """

    name: str
    begin: Callable[[], Frames]
    times: list[float] = field(default_factory=list)
    joints: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))


def measure(
    robot: str = "wabian2,we4rii",
    motion: str = "",
    marker_set: str = "",
    unit: str = "",
    scale: float = 1.0,
    quiet: bool = True,
) -> list[Row]:
    """Rows, for each robot: a frame by each method [us] with the quality of its trajectory; and five robots' clips.

    Args:
        robot: a name or a path, or several with commas between. quiet: show no bar.
        motion: a clip; empty: the built-in dance, and REAL where it is.
        marker_set, unit, scale: of the motion, as for `load_body_points`.
    """
    names = [name for name in robot.split(",") if name]
    if not names:
        raise ConfigError("--robot needs the name of a robot")
    bodies, rows = [load_body_points(motion or "dance", marker_set or None, unit=unit, scale=scale)], []
    robots = [load_robot(name, "fixed") for name in names]
    real = None if motion else test_data(REAL)
    if real is not None:
        bodies.append(load_body_points(str(real)))
    elif not motion:
        warn(ABSENT)
    compile_first()
    scenes = [(body, model) for body in bodies for model in robots]
    with progress("retargeting", len(scenes) * ROUNDS, quiet=quiet) as show:
        for k, (body, model) in enumerate(scenes):
            scene = model.name if body is bodies[0] else f"{model.name}_{Path(REAL).stem}"
            told = _scene(body, model, scene, lambda done, k=k: show(k * ROUNDS + done))  # type: ignore[misc]
            rows += [row | {"clip": body.name} for row in told]
    five = row_of("five_robots_s", "s", [_five_robots(bodies[0]) for _ in range(3)]) | dict.fromkeys(COLUMNS[5:], "")
    return [*rows, five | {"clip": bodies[0].name}]


def _scene(body: BodyPoints, robot: Robot, scene: str, show: Callable[[float], object]) -> list[Row]:
    """Rows of one clip for one robot, whose names begin with `scene`."""
    targets = scale_to_robot(body, robot)
    T = min(len(targets), FRAMES)
    targets = replace(targets, positions=targets.positions[:T], body=targets.body[:T], forearms=None)
    first = Retargeter(robot).start(targets.positions[0])
    with ExitStack() as stack:
        methods = _methods(robot, targets, first, stack)
        for method in methods:  # whatever is compiled or made at the first calls
            method.begin()(range(1, min(4, T)))
        for done in range(ROUNDS):
            running = [(m, m.begin()) for m in methods]
            for m in methods:
                m.joints = np.tile(first, (T, 1))
            for start in range(1, T, CHUNK):  # in turns, so that other work on the machine hits all alike
                part = range(start, min(start + CHUNK, T))
                for m, frames in running:
                    times, postures = frames(part)
                    m.times += times
                    m.joints[part.start : part.stop] = postures
            show(done + 1)
    rows = [row_of(f"{scene}_{m.name}", "us", 1e6 * np.array(m.times)) for m in methods]
    told = [r | quality(robot, targets, m.joints) for r, m in zip(rows, methods, strict=True)]
    return [*told, *_batches(robot, targets, scene)]


def _methods(robot: Robot, targets: Targets, first: np.ndarray, stack: ExitStack) -> list[Method]:
    """This package by single frames, and every peer that is installed."""
    dt, goals = 1.0 / targets.rate, targets.positions

    def stepping(step: Callable[[np.ndarray, float], np.ndarray]) -> Frames:
        def frames(part: range) -> tuple[list[float], np.ndarray]:
            times, postures = [], []
            for k in part:
                start = time.perf_counter()
                postures.append(step(goals[k], dt))
                times.append(time.perf_counter() - start)
            return times, np.array(postures)

        return frames

    def own(iterations: int) -> Frames:
        solver = Retargeter(robot, RetargetSettings(iterations=iterations))
        solver.start(goals[0])
        return stepping(solver.step)

    out = [Method("ours_3_steps", lambda: own(3)), Method("ours_1_step", lambda: own(1))]
    found: dict[str, Callable[[], list[Method]]] = {
        "placo": lambda: _placo(robot, targets, first, stack),
        "mink": lambda: [
            Method(f"mink_{n}_step{'s' * (n > 1)}", lambda n=n: stepping(mink_stepper(robot, first, n)))  # type: ignore[misc]
            for n in (3, 1)
        ],
        "pink": lambda: [Method(f"pink_nearest_{PINK_PAIRS}", lambda: stepping(pink_stepper(robot, first)))],
    }
    for name, make in found.items():
        try:
            methods = make()
            for m in methods:
                m.begin()
        except ImportError as e:
            warn(f"{name}'s rows are omitted: {e} (`make bench` installs it)")
        else:
            out += methods
    return out


def _placo(robot: Robot, targets: Targets, first: np.ndarray, stack: ExitStack) -> list[Method]:
    peer = PlacoRetargeting(robot, targets.positions, 1.0 / targets.rate, first)
    stack.callback(peer.close)

    def frames(case: str) -> Callable[[range], tuple[list[float], np.ndarray]]:
        return lambda part: peer.steps(case, part)

    return [Method(f"placo_{case}", lambda case=case: frames(case)) for case in ("all_pairs", "no_collision")]  # type: ignore[misc]


def _batches(robot: Robot, targets: Targets, scene: str) -> list[Row]:
    """The whole clip in one call: the time of a frame is the call's, the first posture with it, by their number."""
    out = []
    for iterations, name in ((3, "batch_3_steps"), (1, "batch_1_step")):
        settings, times = RetargetSettings(iterations=iterations), []
        for _ in range(ROUNDS + 1):
            start = time.perf_counter()
            trajectory = retarget_clip(targets, robot, settings)
            times.append((time.perf_counter() - start) / len(targets))
        row = row_of(f"{scene}_{name}", "us", 1e6 * np.array(times[1:]))
        out.append(row | quality(robot, targets, trajectory.positions))
    return out


def quality(robot: Robot, targets: Targets, joints: np.ndarray) -> dict[str, float]:
    """Quality of a trajectory (T, n) that begins at rest, by the robot's own shapes and points.

    Mean error of the seven points and the 95th percentile over the frames [cm], nearest two shapes of all frames [mm],
    share of the frames in which two overlap [%], largest and root mean square acceleration of the imitation joints
    [rad/s^2], largest joint speed as a share of its limit [%].
    """
    judge, moving = Retargeter(robot), robot.imitation_joints
    pairs = robot.collision_monitor("shapes")
    errors, closest = np.empty(len(joints)), np.empty(len(joints))
    for k, (goal, posture) in enumerate(zip(targets.positions, joints, strict=True)):
        points, _ = judge.points(posture[moving])
        errors[k] = np.linalg.norm(points - goal, axis=1).mean()
        closest[k] = pairs.update(robot.q(posture), np.inf).distance.min(initial=np.inf)
    v = np.diff(joints[:, moving], axis=0, prepend=joints[:1, moving]) * targets.rate
    a = np.diff(v, axis=0) * targets.rate
    values = {
        "error_cm": 100 * errors.mean(),
        "error_p95_cm": 100 * np.percentile(errors, 95),
        "closest_mm": 1000 * closest.min(),
        "touching_percent": 100 * np.mean(closest < 0),
        "peak_rad_s2": np.abs(a).max(),
        "rms_rad_s2": np.sqrt(np.mean(a**2)),
        "speed_percent": 100 * (np.abs(v) / robot.velocity[moving]).max(),
    }
    return {name: round(float(value), 3) for name, value in values.items()}


def _five_robots(body: BodyPoints) -> float:
    """Time for loading five robots, scaling and solving the clip for each [s]."""
    start = time.perf_counter()
    for name in FIVE:
        robot = load_robot(name, "fixed")
        retarget_clip(scale_to_robot(body, robot), robot)
    return time.perf_counter() - start


def notes(rows: list[Row]) -> list[str]:
    """Meaning of the counts, and what was left out."""
    absent = [] if any(r["clip"] != "dance" for r in rows) else [ABSENT[0].upper() + ABSENT[1:] + "."]
    return [
        *absent,
        "One core, every solver is called frame by frame with the same seven points, from the same start posture; "
        "batch: the whole clip in one call. 3 steps: at most three solver steps per frame.",
        "All frames are evaluated with the shapes of the robot: mean error of the points, its 95th percentile, "
        "smallest distance of two shapes, frames with overlap, largest and rms joint acceleration, largest share of "
        "a joint speed limit. Peers have no acceleration limit.",
        "mink and PlaCo take capsules of the mean radius for elliptic ones; mink keeps all pairs of the moving joints "
        f"apart, pink the {PINK_PAIRS} nearest, PlaCo all of them (soft constraints), or none.",
    ]
