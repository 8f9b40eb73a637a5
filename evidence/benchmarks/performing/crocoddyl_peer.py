"""crocoddyl with the same motion: optimal control of pieces of two seconds, performed by the feedback of its solution.

Each piece is a problem of FDDP with the contact plan of the motion: contacts of six dimensions for soles that stand
(a point where one rolls over its toe edge), the motion's states, centre of mass and soles as costs, cones of the
contact wrenches, and torques and ranges as costs. It begins where the piece before ends, looks half a second beyond
its own end, and starts from the motion and its torques. The robot is then driven by torques u = u_k - K_k (x - x_k)
from the true state.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from evidence.benchmarks.performing.states import StateSource
    from humanoid_control.performing import DynamicMotion
    from humanoid_control.robots import Robot
    from humanoid_control.simulation import Engine

SOLES = ("left_sole", "right_sole")

NODE = 0.02  # [s]
PIECE, AHEAD = 2.0, 0.5  # [s]
ITERATIONS, TOLERANCE = 50, 1e-4
FRICTION = 0.6
# Costs: of states (root position, rotation, joints; their velocities), centre of mass, swinging soles, torques,
# cones, ranges and torque limits.
STATE, ROOT_PLACE, ROOT_TURN, JOINTS, SPEEDS = 10.0, 0.0, 4.0, 1.0, 0.1
CENTER, SOLE, TORQUE, CONE, BOUNDS = 1e3, 1e4, 1e-4, 1.0, 1e2
DRIFT = (0.0, 50.0)  # gains of the contacts [1/s^2, 1/s]


@dataclass
class Solution:
    """A solved motion, node by node.

    Attributes:
        x: (K + 1, nx) states. u: (K, n) torques. gain: (K, n, ndx) of the feedback.
        seconds: on the processor. iterations: of all pieces. unsolved: pieces that did not converge.
    """

    x: np.ndarray
    u: np.ndarray
    gain: np.ndarray
    seconds: float
    iterations: int
    unsolved: int


class CrocoddylPerformer:
    """The solution of crocoddyl as a performer: true states in, torques out.

    Attributes:
        solution: of the whole motion. version: of crocoddyl, and of the pinocchio that it brings.
    """

    def __init__(self, robot: Robot, motion: DynamicMotion, state: StateSource | None = None) -> None:
        """Solve all pieces, in a process of its own.

        Args:
            robot: with a floating base. motion: of it.
            state: configuration and velocity of the robot; default: the true ones.

        Raises:
            ImportError: crocoddyl is not installed, or does not run.
        """
        from evidence.benchmarks.performing.peer_process import PeerProcess

        process = PeerProcess("crocoddyl", __file__, robot, motion)
        try:
            self.version = process.version
            told = process.line()
            with np.load(process.at / "solution.npz") as arrays:
                self.solution = Solution(arrays["x"], arrays["u"], arrays["gain"], **told)
        finally:
            process.close()
        self._robot, self._times, self._state = robot, list[float](), state
        self._length = len(motion) / motion.rate
        frames = np.minimum(np.round(np.arange(len(self.solution.u)) * NODE * motion.rate).astype(int), len(motion) - 1)
        self._away = np.abs(self.solution.x[:-1, 7 : 7 + robot.n] - motion.q[frames, 7:]).mean()

    def start(self, engine: Engine) -> None:
        """See `Performer.start`."""
        if self._state is not None:
            self._state.start()

    def tick(self, t: float, engine: Engine) -> None:
        """See `Performer.tick`."""
        import pinocchio as pin

        begin, s, model = time.process_time(), self.solution, self._robot.model
        k = min(int(t / NODE + 1e-9), len(s.u) - 1)
        share, nq = min(t / NODE - k, 1.0), model.nq
        q = pin.interpolate(model, s.x[k, :nq], s.x[k + 1, :nq], share)
        v = (1 - share) * s.x[k, nq:] + share * s.x[k + 1, nq:]
        own_q, own_v = (engine.q, engine.v) if self._state is None else self._state(t, engine)
        off = np.concatenate([pin.difference(model, q, own_q), own_v - v])
        u = s.u[k] - s.gain[k] @ off
        self._times.append(time.process_time() - begin)
        if np.isfinite(u).all():
            engine.command(None, None, np.clip(u, -self._robot.effort, self._robot.effort))

    def numbers(self) -> dict[str, Any]:
        """See `Performer.numbers`: solving costs seconds on the processor for each of the motion."""
        times, s = 1000 * np.array(self._times or [0.0]), self.solution
        return {
            "tick_ms": round(float(np.median(times)), 2),
            "tick_p99_ms": round(float(np.percentile(times, 99)), 2),
            "solve_s_per_s": round(s.seconds / self._length, 2),
            "iterations": s.iterations,
            "unsolved_pieces": s.unsolved,
            "joints_off_rad": round(float(self._away), 3),
            "torque_share": round(float((np.abs(s.u) / self._robot.effort).max()), 2),
        }


# -------- That side


class _Problems:
    """The optimal control problems of one motion."""

    def __init__(self, problem: dict[str, Any], motion: dict[str, np.ndarray]) -> None:
        import crocoddyl
        import pinocchio as pin

        self.lib, self.pin, self.motion, self.rate = crocoddyl, pin, motion, float(motion["rate"])
        model = pin.buildModelFromUrdf("robot.urdf", pin.JointModelFreeFlyer())
        order = np.array([model.joints[model.getJointId(name)].idx_v - 6 for name in problem["joints"]])
        n = len(order)
        if not np.array_equal(order, np.arange(n)):
            raise ValueError("its joints are in another order")
        self.effort, armature = np.array(problem["effort"]), np.zeros(n + 6)
        armature[6:] = problem["rotor"]
        model.armature = armature
        self.soles = [model.getFrameId(name) for name in SOLES]
        self.toes = [model.getFrameId(f"{name}_toe") for name in SOLES]
        corners = np.array(problem["corners"])
        self.box = 2.0 * np.abs(corners[:, :, :2]).min(axis=1)  # (2, 2) sides of the largest centred rectangle [m]
        self.most = 2.0 * problem["mass"] * 9.81
        self.model, self.state = model, crocoddyl.StateMultibody(model)
        self.actuation = crocoddyl.ActuationModelFloatingBase(self.state)
        self.weights = np.array([ROOT_PLACE] * 3 + [ROOT_TURN] * 3 + [JOINTS] * n + [SPEEDS] * (6 + n))

    def reference(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """States (K, nx) and torques (K, n) of the motion."""
        k = np.minimum(np.round(times * self.rate).astype(int), len(self.motion["q"]) - 1)
        return np.hstack([self.motion["q"][k], self.motion["v"][k]]), self.motion["torque"][k]

    def solve(self) -> Solution:
        """Solve piece by piece."""
        m, begin = self.motion, time.process_time()
        total = round((len(m["q"]) - 1) / self.rate / NODE)
        x, us, gains = [np.concatenate([m["q"][0], np.zeros(self.model.nv)])], list[Any](), list[Any]()
        iterations = unsolved = 0
        own, ahead = round(PIECE / NODE), round(AHEAD / NODE)
        for first in range(0, total, own):
            nodes = np.arange(first, min(first + own + ahead, total))
            models = [self._node(k * NODE, NODE) for k in nodes]
            problem = self.lib.ShootingProblem(x[-1], models, self._node((nodes[-1] + 1) * NODE, 0.0))
            solver = self.lib.SolverFDDP(problem)
            solver.th_stop = TOLERANCE
            states, torques = self.reference(np.append(nodes, nodes[-1] + 1) * NODE)
            states[0] = x[-1]
            done = solver.solve(list(states), list(torques[:-1]), ITERATIONS, False)
            iterations, unsolved = iterations + int(solver.iter), unsolved + int(not done)
            for k in range(min(own, len(nodes))):
                us.append(np.array(solver.us[k]))
                gains.append(np.array(solver.K[k]))
                x.append(np.array(solver.xs[k + 1]))
        return Solution(np.array(x), np.array(us), np.array(gains), time.process_time() - begin, iterations, unsolved)

    def _node(self, t: float, step: float) -> Any:
        """The action model of a node; the last of a problem has no step."""
        lib, state, m = self.lib, self.state, self.motion
        nu = self.actuation.nu
        k = min(round(t * self.rate), len(m["q"]) - 1)
        contacts, costs = lib.ContactModelMultiple(state, nu), lib.CostModelSum(state, nu)
        aligned = self.pin.LOCAL_WORLD_ALIGNED
        for f in (0, 1):
            place = self.pin.SE3(m["sole_rotation"][k, f], m["sole_position"][k, f])
            if m["stands"][k, f] and not m["toe_only"][k, f]:
                contact = lib.ContactModel6D(state, self.soles[f], place, aligned, nu, np.array(DRIFT))
                contacts.addContact(f"sole_{f}", contact)
                self._add_cone(costs, f, nu)
                continue
            if m["stands"][k, f]:
                point = lib.ContactModel3D(state, self.toes[f], np.zeros(3), aligned, nu, np.array(DRIFT))
                contacts.addContact(f"toe_{f}", point)
            residual = lib.ResidualModelFramePlacement(state, self.soles[f], place, nu)
            costs.addCost(f"sole_{f}", lib.CostModelResidual(state, residual), SOLE)
        x, _ = self.reference(np.array([t]))
        activation = lib.ActivationModelWeightedQuad(self.weights)
        costs.addCost("state", lib.CostModelResidual(state, activation, lib.ResidualModelState(state, x[0], nu)), STATE)
        center = lib.ResidualModelCoMPosition(state, m["center"][k], nu)
        costs.addCost("center", lib.CostModelResidual(state, center), CENTER)
        if step:
            share = lib.ActivationModelWeightedQuad((20.0 / self.effort) ** 2)  # of limits, not of N m
            control = lib.ResidualModelControl(state, m["torque"][k])
            costs.addCost("torque", lib.CostModelResidual(state, share, control), TORQUE * 10.0)
            limits = lib.ActivationModelQuadraticBarrier(lib.ActivationBounds(-self.effort, self.effort))
            torques = lib.CostModelResidual(state, limits, lib.ResidualModelControl(state, nu))
            costs.addCost("limits", torques, BOUNDS * 1e-2)
        dynamics = lib.DifferentialActionModelContactFwdDynamics(state, self.actuation, contacts, costs, 0.0, True)
        return lib.IntegratedActionModelEuler(dynamics, step)

    def _add_cone(self, costs: Any, f: int, nu: int) -> None:
        lib, state = self.lib, self.state
        cone = lib.WrenchCone(np.eye(3), FRICTION, self.box[f], 4, True, 0.0, self.most)
        residual = lib.ResidualModelContactWrenchCone(state, self.soles[f], cone, nu, True)
        activation = lib.ActivationModelQuadraticBarrier(lib.ActivationBounds(cone.lb, cone.ub))
        costs.addCost(f"cone_{f}", lib.CostModelResidual(state, activation, residual), CONE)


def _serve() -> None:
    """Solve the motion, and write the solution."""
    import importlib.metadata

    with np.load("motion.npz") as arrays:
        motion = {name: arrays[name] for name in arrays.files}
    problems = _Problems(json.loads(Path("problem.json").read_text()), motion)
    versions = [importlib.metadata.version(name) for name in ("crocoddyl", "pin")]
    out = sys.stdout
    print(json.dumps({"version": f"{versions[0]} with pin {versions[1]}"}), file=out, flush=True)
    s = problems.solve()
    np.savez("solution.npz", x=s.x, u=s.u, gain=s.gain)
    print(json.dumps({"seconds": s.seconds, "iterations": s.iterations, "unsolved": s.unsolved}), file=out, flush=True)


if __name__ == "__main__":
    _serve()
