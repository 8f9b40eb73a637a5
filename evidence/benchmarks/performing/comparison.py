"""`humanoid bench perform`: one clip on one robot in one simulated world, by this package's controller and by peers.

All peers but the walker get the same feasible motion; the walker makes the dancer's steps of the clip by itself. Peers
without an estimator get the true state of the robot, which this package's controller never sees. TSID and crocoddyl
are tried once more by the same noisy sensors and the same estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evidence.benchmarks import Row
from evidence.benchmarks.performing.states import EstimatedStates
from evidence.studies.walking.dance_study import dance
from humanoid_control.errors import ConfigError, HumanoidError, PolicyError, UnknownNameError
from humanoid_control.mocap import load_body_points
from humanoid_control.performing import (
    DynamicMotion,
    OpenLoop,
    WholeBodyController,
    make_feasible,
    perform,
    retargeted_motion,
)
from humanoid_control.performing.performance import TICK, Performer
from humanoid_control.retargeting import CLIP, WholeBodyTask, WholeBodyTrajectory, scale_to_robot
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.humanoids import found_humanoids
from humanoid_control.simulation import ENGINES, Engine, SimulationConfig
from humanoid_control.simulation.noisy_sensors import NOISE, NoisySensors
from humanoid_control.terminal import progress, warn
from humanoid_control.walking import Walker
from humanoid_control.walking.dancing.routine import routine
from humanoid_control.warm_up import PERFORMING, SIMULATION, WHOLE_BODY, compile_first

TITLE = "bench perform"
COLUMNS = ["name", "unit", "median", "p99", "n", "danced", "steps", "made", "placed", "on_beat", "slip_mm"]
COLUMNS += ["root_cm", "world_cm", "solve_s_per_s"]
G1, OWN = "g1", "hrp2"  # the robot that the tracker drives, where it is here; else
BEAT = 0.1  # [s]
SEED = 0
FULL_GAIN, ANYTHING = "stiff", "example"  # configurations of TSID
NAMES = (
    *("ours", "ours_true_state", "pd_retargeted", "pd_feasible", "tsid_example", "tsid_stiff", "tsid_stiff_noise"),
    *("crocoddyl", "crocoddyl_noise", "twist2", "walker"),
)
NO_TIME = {"unit": "", "median": "", "p99": "", "n": 0}


def measure(
    robot: str = "", motion: str = "dance", engine: str = "mujoco", only: str = "", quiet: bool = True
) -> list[Row]:
    """A row for each peer that is here; the others are named in a warning.

    Args:
        robot: by name or URDF; '': the G1 where its model is here, since the tracker drives no other robot, else HRP-2.
        motion: clip. engine: of ENGINES. only: some of NAMES, with commas.

    Raises:
        UnknownNameError: a peer or engine that is none. ClipError, RobotError: what cannot be read or made feasible.
    """
    chosen = [name for name in only.split(",") if name] or list(NAMES)
    for name in chosen:
        if name not in NAMES:
            raise UnknownNameError("peer", name, NAMES)
    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, ENGINES)
    robot = robot or (G1 if G1 in found_humanoids() else OWN)
    case = Case.of(robot, motion, engine)
    rows: list[Row] = []
    with progress("performing", float(len(chosen)), quiet) as show:
        for k, name in enumerate(chosen):
            try:
                rows.append(case.row(name))
            except (ImportError, ConfigError, PolicyError) as e:
                warn(f"{name} is omitted: {e}")
            show(k + 1.0, name)
    return rows


@dataclass(frozen=True)
class Case:
    """One clip on one robot in one world.

    Attributes:
        name: of the robot, or its path. clip: built in, or a file. engine: of ENGINES. robot: with a floating base.
        trajectory: the clip, retargeted. motion: made feasible.
    """

    name: str
    clip: str
    engine: str
    robot: Robot
    trajectory: WholeBodyTrajectory
    motion: DynamicMotion

    @classmethod
    def of(cls, name: str, clip: str, engine: str) -> Case:
        """Retarget the clip, and make it feasible.

        Raises:
            ClipError, RobotError: what cannot be read or made feasible.
        """
        body, robot = load_body_points(clip), load_robot(name, "floating")
        task = WholeBodyTask.of(body, robot)
        compile_first(WHOLE_BODY, PERFORMING, SIMULATION)
        trajectory = task.solve(None, None, CLIP).trajectory
        return cls(name, clip, engine, robot, trajectory, make_feasible(trajectory, robot))

    def world(self) -> Engine:
        """A new world with the robot."""
        return SimulationConfig(self.name, "floating", self.engine).build(self.robot)

    def row(self, name: str) -> Row:
        """Let a peer perform.

        Raises:
            ImportError, ConfigError: it is not installed, or does not drive this robot.
        """
        if name == "walker":
            return self._walked()
        if name == "pd_retargeted":
            motion = retargeted_motion(self.trajectory, self.robot)
            return _row(name, perform(motion, self.world(), OpenLoop(motion)).row(), {})
        world = self._tracker_world() if name == "twist2" else self.world()
        performer = self._performer(name, world)
        try:
            outcome = perform(self.motion, world, performer).row()
        finally:
            close: Callable[[], None] | None = getattr(performer, "close", None)
            if close is not None:
                close()
        more = performer.numbers() | {"version": getattr(performer, "version", "")}
        return _row(name, outcome, more)

    def _tracker_world(self) -> Engine:
        from humanoid_control.policy import policy_engine

        return policy_engine(self.robot, self.engine)

    def _performer(self, name: str, world: Engine) -> Performer:
        """A peer that is here."""
        motion = self.motion
        noisy = EstimatedStates(self.name, motion, world, SEED) if name.endswith("_noise") else None
        if name in ("ours", "ours_true_state"):
            read = NoisySensors(world, NOISE, SEED).read if name == "ours" else None
            return WholeBodyController(load_robot(self.name, "floating"), motion, read=read)
        if name == "pd_feasible":
            return OpenLoop(motion)
        if name == "twist2":
            from evidence.benchmarks.performing.tracker_peer import TrackerPerformer

            return TrackerPerformer(self.name, motion)
        if name.startswith("tsid"):
            from evidence.benchmarks.performing.tsid_peer import TsidPerformer

            return TsidPerformer(self.robot, motion, ANYTHING if name == "tsid_example" else FULL_GAIN, noisy)
        from evidence.benchmarks.performing.crocoddyl_peer import CrocoddylPerformer

        return CrocoddylPerformer(self.robot, motion, noisy)

    def _walked(self) -> Row:
        """The walker with the dancer's steps: its own plan of the same clip, by noisy sensors."""
        fixed, body = load_robot(self.name, "fixed"), load_body_points(self.clip)
        targets = scale_to_robot(body, fixed)
        try:
            walker = Walker(load_robot(self.name, "floating"))
            plan = routine(walker, targets.positions, targets.rate, body)
            told = asdict(dance(self.world(), walker, plan, SEED))
        except HumanoidError as e:
            raise ConfigError(str(e)) from None
        beat = np.asarray(told["beat_error"], dtype=float)
        outcome = {
            "survived": not told["fell"],
            "fell_s": round(told["time"], 2),
            "steps": plan.found,
            "made": told["taken"],
            "placed": told["placed"],
            "on_beat": int((beat < BEAT).sum()) + bool(told["taken"]),
        }
        return _row("walker", outcome, {})


def _row(name: str, outcome: dict[str, Any], numbers: dict[str, Any]) -> Row:
    """A row of the table: times of a tick on the processor, and what became of the performance."""
    row: Row = {"name": name, **NO_TIME}
    if "tick_ms" in numbers:
        ticks = round(outcome.get("seconds", 0.0) / TICK)
        row |= {"unit": "ms", "median": numbers["tick_ms"], "p99": numbers["tick_p99_ms"], "n": ticks}
    fate = "to the end" if outcome["survived"] else f"fell at {outcome['fell_s']:g} s"
    row |= {"danced": fate} | {key: outcome[key] for key in ("steps", "made", "placed", "on_beat")}
    row |= {"slip_mm": outcome.get("slip_mm", ""), "root_cm": outcome.get("tracking_root_cm", "")}
    row |= {"world_cm": outcome.get("tracking_world_cm", ""), "solve_s_per_s": numbers.get("solve_s_per_s", "")}
    told = ("iterations", "unsolved_pieces", "joints_off_rad", "torque_share", "failed_programs", "version")
    return row | {key: numbers[key] for key in told if key in numbers}


def notes(rows: Sequence[Row]) -> list[str]:
    """Lines on what is counted."""
    lines = [
        "median, p99: time of a tick on the processor: crocoddyl's feedback at 500 Hz, the network of twist2 at 50 Hz. "
        "made: steps in which the foot left the floor and landed; placed: within 30 mm of the planned position "
        "relative to the other foot; "
        "on_beat: within 0.1 s of the plan. root_cm, world_cm: mean distance of seven points, in the axes of the root "
        "and in the world.",
        "ours: noisy sensors, 2 ms late, no ground truth; ours_true_state, tsid_*, crocoddyl, twist2: true state of "
        "the robot; *_noise: the same noisy sensors and the same estimate as ours.",
        "pd_*: position drives follow the motion with feed-forward torques, without balance control. pd_retargeted: "
        "the motion before it is made feasible, with its own number of steps.",
        "tsid_example: gains and weights of the biped example of TSID; tsid_stiff: gains adapted to a simulated "
        "floor. walker: the dancer's steps of the clip by this package's walker, with its own measures: placed "
        "within a fifth of the length or 3 cm, on_beat within 0.1 s from one lift-off to the next.",
    ]
    for r in rows:
        if r["name"] == "crocoddyl" and "iterations" in r:
            lines.append(
                f"crocoddyl {r['version']}: FDDP in pieces of 2 s with nodes of 20 ms and the contact plan of the "
                f"motion, {r['iterations']} iterations in all, {r['unsolved_pieces']} pieces that did not converge; "
                f"joints {r['joints_off_rad']} rad from the motion on average, torques up to {r['torque_share']} of "
                "their limits; solve_s_per_s: processor seconds per second of the motion."
            )
        elif r["name"] == "tsid_stiff" and r.get("version"):
            failed = r["failed_programs"]
            lines.append(f"tsid {r['version']}: in a separate process; {failed} ticks without a solution.")
    return lines
