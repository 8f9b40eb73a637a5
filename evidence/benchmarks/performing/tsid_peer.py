"""TSID with the job of the whole-body controller, in a process of its own.

This file is also the script that runs there: it takes a motion from files and then, for each tick, the state of the
robot, and returns torques. Nothing else of this package is loaded in that process.

Tasks are those of TSID's own examples of a biped: contacts of six dimensions for soles that stand (a point where one
rolls over its toe edge), the centre of mass, angular momentum, both soles, root and posture, torque limits.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from evidence.benchmarks.performing.states import StateSource
    from humanoid_control.performing import DynamicMotion
    from humanoid_control.robots import Robot
    from humanoid_control.simulation import Engine

SOLES = ("left_sole", "right_sole")
# Gains [1/s^2] and weights of TSID's example of a biped that walks ("exercizes/romeo_conf.py"), and stiffer gains,
# which a simulated floor asks for. The example integrates the accelerations of its own program.
EXAMPLE = {"contact": 10.0, "foot": 10.0, "com": 10.0, "momentum": 10.0, "root": 10.0, "posture": 1.0}
STIFF = {"contact": 200.0, "foot": 500.0, "com": 80.0, "momentum": 10.0, "root": 150.0, "posture": 120.0}
EXAMPLE_WEIGHTS = {"foot": 1.0, "com": 1.0, "momentum": 1e-4, "root": 0.1, "posture": 1e-4}
STIFF_WEIGHTS = {"foot": 10.0, "com": 10.0, "momentum": 1e-2, "root": 2.0, "posture": 0.2}
FORCE = 1e-5  # weight of the forces
FRICTION, LEAST_FORCE = 0.6, 1.0  # of the floor; [N] of a contact
CONFIGURATIONS = {"example": (EXAMPLE, EXAMPLE_WEIGHTS), "stiff": (STIFF, STIFF_WEIGHTS)}


# -------- This side


class TsidPerformer:
    """TSID as a performer: states in, torques out.

    Attributes:
        version: of TSID, and of the pinocchio that it brings.
    """

    def __init__(
        self,
        robot: Robot,
        motion: DynamicMotion,
        configuration: str,
        state: StateSource | None = None,
    ) -> None:
        """Start the process.

        Args:
            robot: with a floating base. motion: of it. configuration: of CONFIGURATIONS.
            state: configuration and velocity of the robot; default: the true ones.

        Raises:
            ImportError: TSID is not installed, or does not load.
        """
        from evidence.benchmarks.performing.peer_process import PeerProcess

        gains, weights = CONFIGURATIONS[configuration]
        self._process = PeerProcess("tsid", __file__, robot, motion, {"gains": gains, "weights": weights})
        self.version, self._n, self._state = self._process.version, robot.n, state
        self._times, self._failed = list[float](), 0

    def start(self, engine: Engine) -> None:
        """See `Performer.start`."""
        if self._state is not None:
            self._state.start()

    def tick(self, t: float, engine: Engine) -> None:
        """See `Performer.tick`: a tick without a solution keeps the torques of the one before."""
        q, v = (engine.q, engine.v) if self._state is None else self._state(t, engine)
        spent, solved, *torque = self._process.ask(np.concatenate([[t], q, v]), self._n + 2)
        self._times.append(float(spent))
        if solved:
            engine.command(None, None, np.array(torque))
        else:
            self._failed += 1

    def numbers(self) -> dict[str, Any]:
        """See `Performer.numbers`: times are of the tick in its own process, without the pipe."""
        times = 1000 * np.array(self._times or [0.0])
        return {
            "tick_ms": round(float(np.median(times)), 2),
            "tick_p99_ms": round(float(np.percentile(times, 99)), 2),
            "failed_programs": self._failed,
        }

    def close(self) -> None:
        """End the process."""
        self._process.close()


# -------- That side


class _Program:
    """TSID's formulation for one motion."""

    def __init__(self, problem: dict[str, Any], motion: dict[str, np.ndarray]) -> None:
        import pinocchio as pin
        import tsid.tsid_pywrap as tsid

        self.pin, self.tsid, self.motion = pin, tsid, motion
        self.gains, self.weights, self.mass = problem["gains"], problem["weights"], problem["mass"]
        self.corners, self.rate = np.array(problem["corners"]), float(motion["rate"])
        model = pin.buildModelFromUrdf("robot.urdf", pin.JointModelFreeFlyer())
        order = [model.joints[model.getJointId(name)].idx_v - 6 for name in problem["joints"]]
        self.order = np.array(order)  # of this package's joints in TSID's vector
        n = len(order)
        effort, armature = np.zeros(n), np.zeros(n + 6)
        effort[self.order], armature[6 + self.order] = problem["effort"], problem["rotor"]
        model.armature = armature  # its own setters of rotor inertias take no numpy array
        self.robot = tsid.RobotWrapper(model, tsid.RootJointType.FLOATING_BASE_SYSTEM, False)
        self.program = tsid.InverseDynamicsFormulationAccForce("tsid", self.robot, False)
        self.solver = tsid.SolverHQuadProgFast("solver")
        q, v = self.vectors(motion["q"][0], np.zeros(n + 6))
        self.program.computeProblemData(0.0, q, v)
        self._add_tasks(problem, effort)
        # Contacts are made once: TSID keeps no reference of its own.
        self.flat = [self._flat_contact(f) for f in (0, 1)]
        self.toes = [self._toe_contact(f) for f in (0, 1)]
        self.touching: list[list[str]] = [[], []]
        self.mode = [-1, -1]

    def _flat_contact(self, f: int) -> Any:
        corners, up = self.corners[f].T.copy(), np.array([0.0, 0.0, 1.0])
        most = 2.0 * self.mass * 9.81
        contact = self.tsid.Contact6d(f"flat_{f}", self.robot, SOLES[f], corners, up, FRICTION, LEAST_FORCE, most)
        self._set_gains(contact, "contact", 6)
        return contact

    def _toe_contact(self, f: int) -> Any:
        up, most = np.array([0.0, 0.0, 1.0]), 2.0 * self.mass * 9.81
        # One point: two on a rigid body are dependent rows, which a program with hard contacts cannot have.
        frame = f"{SOLES[f]}_toe"
        contact = self.tsid.ContactPoint(f"toe_{f}", self.robot, frame, up, FRICTION, LEAST_FORCE, most)
        self._set_gains(contact, "contact", 3)
        contact.useLocalFrame(False)
        return contact

    def _set_gains(self, task: Any, name: str, size: int) -> Any:
        """Critically damped gains of a task."""
        task.setKp(self.gains[name] * np.ones(size))
        task.setKd(2.0 * np.sqrt(self.gains[name]) * np.ones(size))
        return task

    def vectors(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Configuration and velocity in the order of TSID's joints."""
        own_q, own_v = q.copy(), v.copy()
        own_q[7 + self.order], own_v[6 + self.order] = q[7:], v[6:]
        return own_q, own_v

    def _add_tasks(self, problem: dict[str, Any], effort: np.ndarray) -> None:
        tsid, weights, program = self.tsid, self.weights, self.program
        self.com = self._set_gains(tsid.TaskComEquality("com", self.robot), "com", 3)
        self.momentum = self._set_gains(tsid.TaskAMEquality("momentum", self.robot), "momentum", 3)
        self.posture = self._set_gains(tsid.TaskJointPosture("posture", self.robot), "posture", len(effort))
        self.root = self._set_gains(tsid.TaskSE3Equality("root", self.robot, problem["root"]), "root", 6)
        self.root.setMask(np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0]))
        self.root.useLocalFrame(False)
        self.feet = []
        for name in SOLES:
            foot = self._set_gains(tsid.TaskSE3Equality(f"{name}_motion", self.robot, name), "foot", 6)
            foot.useLocalFrame(False)
            self.feet.append(foot)
        own = [(self.com, "com"), (self.momentum, "momentum"), (self.posture, "posture"), (self.root, "root")]
        for task, name in (*own, *((foot, "foot") for foot in self.feet)):
            program.addMotionTask(task, weights[name], 1, 0.0)
        self.bounds = tsid.TaskActuationBounds("torques", self.robot)
        self.bounds.setBounds(-effort, effort)
        program.addActuationTask(self.bounds, 1.0, 0, 0.0)

    def _switch(self, f: int, mode: int) -> None:
        """Contacts of a foot: 0 swings, 1 stands flat, 2 rolls over its toe edge."""
        if mode == self.mode[f]:
            return
        for name in self.touching[f]:
            self.program.removeRigidContact(name, 0.0)
        self.touching[f] = []
        data, model = self.program.data(), self.robot.model()
        if mode:
            contact, name = (self.flat[f], SOLES[f]) if mode == 1 else (self.toes[f], f"{SOLES[f]}_toe")
            contact.setReference(self.robot.framePosition(data, model.getFrameId(name)))
            self.program.addRigidContact(contact, FORCE)
            self.touching[f] = [contact.name]
        self.mode[f] = mode

    def torque(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray | None:
        """Torques (n,) at a time, in this package's order; None without a solution."""
        m, tsid = self.motion, self.tsid
        at = min(t * self.rate, len(m["q"]) - 1.001)
        k, s = int(at), at - int(at)

        def now(name: str) -> np.ndarray:
            return np.asarray((1 - s) * m[name][k] + s * m[name][k + 1])

        own_q, own_v = self.vectors(q, v)
        self.robot.computeAllTerms(self.program.data(), own_q, own_v)
        for f in (0, 1):
            self._switch(f, 0 if not m["stands"][k, f] else 2 if m["toe_only"][k, f] else 1)
        self.com.setReference(_sample(tsid, now("center"), now("center_velocity"), now("center_acceleration")))
        zero = np.zeros(3)
        self.momentum.setReference(_sample(tsid, now("momentum"), now("momentum_rate"), zero))
        ref_q, ref_v = self.vectors(now("q"), now("v"))
        ref_a = self.vectors(now("q"), now("a"))[1]
        self.posture.setReference(_sample(tsid, ref_q[7:], ref_v[6:], ref_a[6:]))
        R = self.pin.Quaternion(ref_q[3:7] / np.linalg.norm(ref_q[3:7])).toRotationMatrix()
        turn = np.concatenate([zero, R @ ref_v[3:6]]), np.concatenate([zero, R @ ref_a[3:6]])
        self.root.setReference(_pose_sample(tsid, ref_q[:3], R, *turn))
        for f in (0, 1):
            R_sole = m["sole_rotation"][k, f]
            place = now("sole_position")[f]
            self.feet[f].setReference(
                _pose_sample(tsid, place, R_sole, now("sole_twist")[f], now("sole_acceleration")[f])
            )
        data = self.program.computeProblemData(t, own_q, own_v)
        self.solver.resize(self.program.nVar, self.program.nEq, self.program.nIn)
        solution = self.solver.solve(data)
        if solution.status != 0:
            return None
        return np.asarray(self.program.getActuatorForces(solution))[self.order]


def _sample(tsid: Any, value: np.ndarray, first: np.ndarray, second: np.ndarray) -> Any:
    sample = tsid.TrajectorySample(len(value), len(first))
    sample.value(value)
    sample.derivative(first)
    sample.second_derivative(second)
    return sample


def _pose_sample(tsid: Any, place: np.ndarray, R: np.ndarray, first: np.ndarray, second: np.ndarray) -> Any:
    sample = tsid.TrajectorySample(12, 6)
    sample.value(np.concatenate([place, R.T.ravel()]))
    sample.derivative(first)
    sample.second_derivative(second)
    return sample


def _serve() -> None:
    """Answer ticks until the pipe ends."""
    import importlib.metadata

    problem = json.loads(Path("problem.json").read_text())
    with np.load("motion.npz") as arrays:
        motion = {name: arrays[name] for name in arrays.files}
    program = _Program(problem, motion)
    versions = [importlib.metadata.version(name) for name in ("tsid", "pin")]
    out, into = sys.stdout.buffer, sys.stdin.buffer
    out.write(json.dumps({"version": f"{versions[0]} with pin {versions[1]}"}).encode() + b"\n")
    out.flush()
    n = len(problem["joints"])
    size = 8 * (2 * n + 14)
    while len(message := into.read(size)) == size:
        values = np.frombuffer(message)
        begin = time.process_time()
        torque = program.torque(float(values[0]), values[1 : n + 8], values[n + 8 :])
        spent = time.process_time() - begin
        solved = torque is not None and bool(np.isfinite(torque).all())
        given = torque if solved and torque is not None else np.zeros(n)
        out.write(struct.pack(f"{n + 2}d", spent, float(solved), *given))
        out.flush()


if __name__ == "__main__":
    _serve()
