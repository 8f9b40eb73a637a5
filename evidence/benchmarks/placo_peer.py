"""PlaCo with the job of the other peers, in a process of its own.

PlaCo's wheels pin a pinocchio that cannot be loaded next to another one. They are therefore installed into a folder of
their own (`make bench` does it), and this file is also the script that runs there: it takes a problem from files and
then, a line at a time, the ticks that it is to time. Nothing else of this package is loaded in that process.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from evidence.benchmarks.ik_cases import CaseMotion, SolverCase
    from humanoid_control.robots.robot import Robot

VARIABLE = "HUMANOID_PLACO"
INSIDE = "cmeel.prefix/lib/python{}.{}/site-packages"  # where its wheels, like pinocchio's, keep their modules
TIMEOUT = 20.0  # [s] for the process to end


# -------- This side


def placo_folder() -> Path:
    """The folder that PlaCo is installed into: `HUMANOID_PLACO`, or `placo` in the environment."""
    return Path(os.environ.get(VARIABLE) or Path(sys.prefix) / "placo")


class PlacoProcess:
    """PlaCo at work on one problem.

    Attributes:
        version: of PlaCo.
    """

    def __init__(self, problem: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Start it.

        Raises:
            ImportError: PlaCo is not installed, or does not load.
        """
        folder = placo_folder()
        inside = folder / INSIDE.format(*sys.version_info[:2])
        if not (inside / "placo.so").exists():
            raise ImportError(f"placo is not in {folder}")
        self._files = tempfile.TemporaryDirectory()
        at = Path(self._files.name)
        (at / "problem.json").write_text(json.dumps(problem))
        np.savez(at / "arrays.npz", **arrays)  # type: ignore[arg-type]
        unwanted = ("LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME")
        environment = {k: v for k, v in os.environ.items() if k not in unwanted}
        environment |= {"PYTHONPATH": f"{folder}{os.pathsep}{inside}", "OMP_NUM_THREADS": "1"}
        script = f"import runpy; runpy.run_path({__file__!r}, run_name='__main__')"
        self._said = at / "said.txt"
        with self._said.open("w") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-c", script],  # -S: without this environment's own packages
                cwd=at,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
        self.version = str(self._answer()["version"])

    def ask(self, case: str, ticks: range) -> dict[str, Any]:
        """Let a case take some ticks: their times [s], how many had no solution, and what else the case tells.

        Raises:
            ImportError: the process ended.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps([case, ticks.start, ticks.stop]), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            said = self._said.read_text().strip().splitlines() or ["it ended without output"]
            self.close()
            raise ImportError(f"placo does not run: {said[-1]}")
        return dict(json.loads(line))

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        try:
            self._process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._files.cleanup()


def tick_cases(robot: Robot, motion: CaseMotion) -> list[SolverCase]:
    """placo_no_collision and placo_all_pairs.

    Raises:
        ImportError: PlaCo is not installed.
    """
    from evidence.benchmarks import ik_cases
    from evidence.benchmarks.peers import urdf_with_shapes

    targets, names = ik_cases.PeerTargets.of(robot, motion), list(robot.joint_names)
    urdf, pairs = urdf_with_shapes(robot, names, ik_cases.SOLES)
    problem = {
        "kind": "tick",
        "urdf": urdf,
        "pairs": pairs,
        "joints": names,
        "velocity": list(robot.velocity),
        "dt": ik_cases.DT,
        "damping": ik_cases.DAMPING,
        "posture_weight": ik_cases.POSTURE**2,
        "margin": ik_cases.MARGIN,
        "activation": ik_cases.ACTIVATION,
        "soles": list(ik_cases.SOLES),
        "chest": str(robot.model.frames[ik_cases.chest_frame(robot)].name),
    }
    arrays = {
        "base": np.array([X.homogeneous for X in ik_cases.root_poses(robot, motion.q)]),
        "postures": motion.q[:, robot.iq :],
        "soles": np.array([[X.homogeneous for X in pair] for pair in targets.soles]),
        "chest": np.array([X.rotation for X in targets.chest]),
        "center": targets.center,
    }
    process = PlacoProcess(problem, arrays)
    rows = 6 * len(ik_cases.SOLES) + 3 + 3 + robot.n
    return [_remote_case(process, name, rows, len(pairs) * (name != "no_collision")) for name in TICK_CASES]


def _remote_case(process: PlacoProcess, name: str, rows: int, pairs: int) -> SolverCase:
    from evidence.benchmarks.ik_cases import SolverCase

    case = SolverCase(f"placo_{name}", lambda k: None, lambda q: False, lambda: None, rows, pairs)
    velocity: list[float] = []

    def ticks(part: range) -> list[float]:
        answer = process.ask(name, part)
        case.failed += int(answer["failed"])
        case.constraints += float(answer["constraints"])
        velocity[:] = answer["velocity"]
        return list(answer["times"])

    case.remote, case.velocity = ticks, lambda: np.array(velocity)
    return case


class PlacoRetargeting:
    """PlaCo as a retargeter of one clip: `steps` lets a case take the next frames."""

    def __init__(self, robot: Robot, positions: np.ndarray, dt: float, joints: np.ndarray) -> None:
        """Start it.

        Args:
            robot: with a fixed base. positions: targets (T, 7, 3). dt: between frames [s].
            joints: (n,) the first posture.

        Raises:
            ImportError: PlaCo is not installed.
        """
        from evidence.benchmarks import peers
        from evidence.benchmarks.peers import urdf_with_shapes
        from humanoid_control.retargeting.scaling import POINTS

        self._moving = np.sort(robot.imitation_joints)
        names = [robot.joint_names[j] for j in self._moving]
        urdf, pairs = urdf_with_shapes(robot, names, POINTS)
        problem = {
            "kind": "retargeting",
            "urdf": urdf,
            "pairs": pairs,
            "joints": names,
            "velocity": list(robot.velocity[self._moving]),
            "dt": dt,
            "damping": peers.DAMPING,
            "posture_weight": peers.POSTURE**2,
            "margin": peers.MARGIN,
            "activation": peers.ACTIVATION,
            "points": list(POINTS),
        }
        arrays = {
            "base": robot.X_world_root.homogeneous[None],
            "start": joints[self._moving],
            "rest": robot.postures["neutral"][self._moving],
            "positions": positions,
        }
        self._process = PlacoProcess(problem, arrays)
        self.version, self._joints = self._process.version, joints
        self.failed = dict.fromkeys(TICK_CASES, 0)

    def steps(self, case: str, frames: range) -> tuple[list[float], np.ndarray]:
        """Times of some frames [s], and the postures (frames, n) they end in; frame 1 begins again."""
        answer = self._process.ask(case, frames)
        self.failed[case] += int(answer["failed"])
        out = np.tile(self._joints, (len(frames), 1))
        out[:, self._moving] = answer["joints"]
        return list(answer["times"]), out

    def close(self) -> None:
        """End the process."""
        self._process.close()


# -------- That side: PlaCo and numpy, nothing else

TICK_CASES = ("no_collision", "all_pairs")


def _solver(problem: dict[str, Any], collisions: bool) -> tuple[Any, Any]:
    """A robot and its solver, with the limits of all cases."""
    import placo

    flags = 0 if collisions else int(placo.Flags.ignore_collisions)
    robot = placo.RobotWrapper("", flags, problem["urdf"])
    for name, limit in zip(problem["joints"], problem["velocity"], strict=True):
        robot.set_velocity_limit(name, limit)
    solver = placo.KinematicsSolver(robot)
    solver.dt = problem["dt"]
    solver.enable_joint_limits(True)
    solver.enable_velocity_limits(True)
    solver.add_regularization_task(problem["damping"])
    if collisions:
        places = {g.name: k for k, g in enumerate(robot.collision_model.geometryObjects)}
        Path("pairs.json").write_text(json.dumps([[places[a], places[b]] for a, b in problem["pairs"]]))
        robot.load_collision_pairs("pairs.json")
        apart = solver.add_avoid_self_collisions_constraint()
        apart.configure("apart", "soft", 1e6)  # hard, one start inside the margin would have no solution
        apart.self_collisions_margin = problem["margin"]
        apart.self_collisions_trigger = problem["activation"]
    return robot, solver


def _posture_task(solver: Any, problem: dict[str, Any]) -> Callable[[Sequence[float]], None]:
    task = solver.add_joints_task()
    task.configure("posture", "soft", problem["posture_weight"])

    def aim(posture: Sequence[float]) -> None:
        task.set_joints(dict(zip(problem["joints"], map(float, posture), strict=True)))

    return aim


def _constraints(robot: Any, collisions: bool, activation: float) -> int:
    return sum(d.min_distance < activation for d in robot.distances()) if collisions else 0


def _tick_case(problem: dict[str, Any], given: Any, collisions: bool) -> Callable[[range], dict[str, Any]]:
    """Ticks of whole-body inverse kinematics, each from the given posture to the targets a tick later."""
    robot, solver = _solver(problem, collisions)
    soles = [solver.add_frame_task(f"point_{name}", np.eye(4)) for name in problem["soles"]]
    for name, task in zip(problem["soles"], soles, strict=True):
        task.configure(name, "soft", 1.0, 1.0)
    chest = solver.add_orientation_task(problem["chest"], np.eye(3))
    chest.configure("chest", "soft", 1.0)
    center = solver.add_com_task(np.zeros(3))
    center.configure("center", "soft", 1.0)
    aim = _posture_task(solver, problem)
    columns = [robot.get_joint_v_offset(name) for name in problem["joints"]]
    configurations = []
    for base, posture in zip(given["base"], given["postures"], strict=True):
        robot.set_T_world_fbase(base)
        for name, value in zip(problem["joints"], posture, strict=True):
            robot.set_joint(name, float(value))
        configurations.append(np.array(robot.state.q))

    def run(ticks: range) -> dict[str, Any]:
        times, failed, constraints, v = [], 0, 0, np.zeros(len(configurations[0]) - 1)
        for k in ticks:
            for task, X in zip(soles, given["soles"][k], strict=True):
                task.T_world_frame = X
            chest.R_world_frame, center.target_world = given["chest"][k], given["center"][k]
            aim(given["postures"][k + 1])
            start = time.perf_counter()
            try:
                robot.state.q = configurations[k]
                robot.update_kinematics()
                v = solver.solve(False)
            except RuntimeError:
                failed += 1
            times.append(time.perf_counter() - start)
            constraints += _constraints(robot, collisions, problem["activation"])
        velocity = [float(v[c]) / problem["dt"] for c in columns]
        return {"times": times, "failed": failed, "constraints": constraints, "velocity": velocity}

    return run


def _retargeting_case(problem: dict[str, Any], given: Any, collisions: bool) -> Callable[[range], dict[str, Any]]:
    """Frames of a clip, one solver step each, from a fixed base."""
    robot, solver = _solver(problem, collisions)
    solver.mask_fbase(True)
    robot.set_T_world_fbase(given["base"][0])
    points = [solver.add_position_task(f"point_{name}", np.zeros(3)) for name in problem["points"]]
    for name, task in zip(problem["points"], points, strict=True):
        task.configure(name, "soft", 1.0)
    _posture_task(solver, problem)(given["rest"])
    columns = [robot.get_joint_offset(name) for name in problem["joints"]]

    def run(frames: range) -> dict[str, Any]:
        times, failed, joints = [], 0, []
        if frames.start <= 1:
            for name, value in zip(problem["joints"], given["start"], strict=True):
                robot.set_joint(name, float(value))
            robot.update_kinematics()
        for p in given["positions"][frames.start : frames.stop]:
            start = time.perf_counter()
            try:
                for task, target in zip(points, p, strict=True):
                    task.target_world = target
                solver.solve(True)
                robot.update_kinematics()
            except RuntimeError:  # no solution: the robot stays where it is
                failed += 1
            q = np.array(robot.state.q)
            times.append(time.perf_counter() - start)
            joints.append([float(q[c]) for c in columns])
        return {"times": times, "failed": failed, "joints": joints}

    return run


def serve() -> None:
    """Answer every line of the standard input with one line, until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes elsewhere
    problem: dict[str, Any] = json.loads(Path("problem.json").read_text())
    with np.load("arrays.npz") as file:
        given = {name: file[name] for name in file.files}
    make = {"tick": _tick_case, "retargeting": _retargeting_case}[problem["kind"]]
    cases = {name: make(problem, given, name == "all_pairs") for name in TICK_CASES}
    print(json.dumps({"version": importlib.metadata.version("placo")}), file=answers, flush=True)
    for line in sys.stdin:
        name, first, stop = json.loads(line)
        print(json.dumps(cases[name](range(first, stop))), file=answers, flush=True)


if __name__ == "__main__":
    serve()
