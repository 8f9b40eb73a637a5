"""The whole-body controller: its program beside a dense one, contacts by timing, and dances by sensors with noise."""

from dataclasses import replace

import daqp
import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.performing import (
    ControllerSettings,
    FeasibilitySettings,
    PositionDrives,
    WholeBodyController,
    make_feasible,
    perform,
)
from humanoid_control.performing.clip_dynamics import friction_cone
from humanoid_control.performing.whole_body_controller import LATE, STAND, SWING
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.simulation.noisy_sensors import NOISE, NoisySensors
from test.performing.pieces import piece, retargeted_dance
from test.robots_under_test import nightly


@pytest.fixture(scope="module")
def dance():
    robot = load_robot("hrp2", "floating")
    return robot, make_feasible(piece(retargeted_dance(robot), 3.0, 6.0), robot, FeasibilitySettings(hold=0.3))


def beginning(motion, frames):
    """The first frames of a motion."""
    return replace(motion, **{
        name: value[:frames]
        for name, value in vars(motion).items()
        if isinstance(value, np.ndarray) and len(value) == len(motion)
    })  # fmt: skip


def performed(dance, engine="multibody", seed=0, watch=None, assumed=0.6, **changed):
    robot, motion = dance
    world = SimulationConfig(robot.name, "floating", engine, **changed).build(load_robot("hrp2", "floating"))
    settings = ControllerSettings(friction=assumed)
    controller = WholeBodyController(robot, motion, settings, NoisySensors(world, NOISE, seed).read)
    return perform(motion, world, controller, watch), controller


@pytest.mark.parametrize("engine", ["multibody", nightly("mujoco")])
def test_it_dances_by_noisy_sensors(dance, engine):
    if engine == "mujoco":
        pytest.importorskip("mujoco")
    outcome, controller = performed(dance, engine)
    assert outcome.survived and outcome.made == outcome.placed == outcome.on_beat == outcome.steps >= 4
    assert outcome.slip < 0.01 and np.degrees(outcome.tilt) < 3 and outcome.tracking[0] < 0.005
    assert outcome.tracking[1] < 0.03 and controller.failed == 0
    assert max(controller.numbers()["dcm_error_mm"]) < 15


@pytest.mark.parametrize(
    "changed", [nightly({"friction": 0.4}), nightly({"contact_stiffness": 2.0e4})], ids=["slippery", "soft"]
)
def test_it_dances_on_other_ground(dance, changed):
    outcome, _ = performed(dance, **changed)
    assert outcome.survived and outcome.placed == outcome.steps


def test_contact_forces_keep_the_assumed_friction(dance, monkeypatch):
    shares, ticked = [], WholeBodyController.tick

    def tick(self, *args):
        ticked(self, *args)
        f = self.forces.reshape(-1, 3)
        shares.append(np.abs(f[f[:, 2] > 5.0, :2] / f[f[:, 2] > 5.0, 2:]).max(initial=0.0))

    monkeypatch.setattr(WholeBodyController, "tick", tick)
    most = {}
    for assumed in (0.6, 0.3):
        shares.clear()
        outcome, _ = performed((dance[0], beginning(dance[1], 240)), assumed=assumed, friction=0.4)
        most[assumed] = max(shares)
        assert outcome.survived
    assert most[0.3] <= 0.3 + 1e-3 < 0.4 < most[0.6] <= 0.6 + 1e-3


def test_it_dances_on_position_drives(dance):
    """Commands that leak to what is measured; those that hold their own positions fall (2 1/s)."""
    robot, motion = dance[0], beginning(dance[1], 220)
    world = SimulationConfig(robot.name, "floating").build(load_robot("hrp2", "floating"))
    controller = WholeBodyController(robot, motion, read=NoisySensors(world, NOISE, 0).read)
    drives = PositionDrives(controller)
    outcome = perform(motion, world, drives)
    assert outcome.survived and outcome.placed == outcome.on_beat == outcome.steps >= 1
    assert np.degrees(outcome.tilt) < 3 and max(drives.numbers()["dcm_error_mm"]) < 15
    assert (drives.q >= robot.lower).all() and (drives.q <= robot.upper).all()


def test_a_push_of_eight_newton_seconds_is_balanced(dance):
    def push(t, engine):
        if abs(t - 1.8) < 1e-6:
            engine.push(engine.robot.root_link, np.array([0.0, 80.0, 0.0, 0.0, 0.0, 0.0]), 0.1)

    outcome, controller = performed((dance[0], beginning(dance[1], 330)), watch=push)
    assert outcome.survived and np.degrees(outcome.tilt) < 12 and controller.failed == 0


def test_the_same_seed_is_the_same_dance(dance):
    short = dance[0], beginning(dance[1], 60)
    first, again = performed(short, seed=3)[0], performed(short, seed=3)[0]
    assert all(np.array_equal(first.traces[k], again.traces[k]) for k in first.traces)


def standing(dance):
    """A controller at a frame in double support, and the state of the plan there."""
    robot, motion = dance
    controller = WholeBodyController(robot, motion)
    frame = int(np.flatnonzero(motion.stands.all(axis=1) & ~motion.toe_only.any(axis=1))[60])
    controller.clock = frame / motion.rate
    return controller, motion.q[frame].copy(), motion.v[frame].copy()


def test_torques_are_those_of_a_dense_program(dance, monkeypatch):
    """The eliminated program, solved again by another solver: the same torques at random states."""
    controller, q, v = standing(dance)
    rng, seen = np.random.default_rng(2), {}
    from humanoid_control.performing import whole_body_controller as module

    solve = module.solve_box_qp_from

    def remember(program, rows, rho, x, multipliers, guess):
        used = solve(program, rows, rho, x, multipliers, guess)
        seen["program"], seen["rows"], seen["x"] = program, rows, x.copy()
        return used

    monkeypatch.setattr(module, "solve_box_qp_from", remember)
    for _ in range(10):
        state = pin.integrate(controller.robot.model, q, 0.01 * rng.normal(size=len(v)))
        controller.offset[:] = 0.0
        tau = controller._solve(controller._now(), state, v + 0.05 * rng.normal(size=len(v)))
        p, x = seen["program"], seen["x"]
        H = np.tril(p.H) + np.tril(p.H, -1).T
        bound = np.concatenate([p.high, np.full(seen["rows"], 1e30)])
        low = np.concatenate([p.low, p.b[: seen["rows"]]])
        other, _, flag, _ = daqp.solve(H, p.g, np.ascontiguousarray(p.A[: seen["rows"]]), bound, low)
        assert flag == 1 and tau is not None
        cost = [0.5 * y @ H @ y + p.g @ y for y in (x, other)]
        assert cost[0] <= cost[1] + 1e-6 * abs(cost[1])
        assert (x >= p.low - 1e-9).all() and (x <= p.high + 1e-9).all()
        assert (p.A[: seen["rows"]] @ x >= p.b[: seen["rows"]] - 1e-4).all()


def test_forces_and_torques_fulfil_the_equations_of_the_base(dance, monkeypatch):
    """At the plan's own state, the accelerations that torques and forces give are those that were asked for."""
    controller, q, v = standing(dance)
    robot, seen = controller.robot, {}
    from humanoid_control.performing import whole_body_controller as module

    solve = module.solve_box_qp_from

    def remember(program, rows, rho, x, multipliers, guess):
        used = solve(program, rows, rho, x, multipliers, guess)
        seen["x"] = x.copy()
        return used

    monkeypatch.setattr(module, "solve_box_qp_from", remember)
    tau = controller._solve(controller._now(), q, v)
    n, cone = robot.n, friction_cone(ControllerSettings().friction)
    shares = 100.0 * seen["x"][n:].reshape(-1, 4)
    assert len(shares) == 8 and (shares >= 0).all()
    forces = shares @ cone.T
    pin.forwardKinematics(robot.model, robot.data, q)
    pin.computeJointJacobians(robot.model, robot.data, q)
    outside = np.zeros(robot.nv)
    for i in range(8):
        joint = controller.soles.joints[i // 4]
        X = robot.data.oMi[joint] * controller.soles.X_joint_sole[i // 4]
        arm = X.act(controller.soles.corners[i // 4, i % 4]) - robot.data.oMi[joint].translation
        J = pin.getJointJacobian(robot.model, robot.data, joint, pin.LOCAL_WORLD_ALIGNED)
        outside += J[:3].T @ forces[i] + J[3:].T @ np.cross(arm, forces[i])
    M = pin.crba(robot.model, robot.data, q) + np.diag(np.concatenate([np.zeros(6), controller.rotor]))
    h = pin.nonLinearEffects(robot.model, robot.data, q, v)
    a = np.linalg.solve(M, np.concatenate([np.zeros(6), tau]) + outside - h)
    assert np.abs(a[6:] - seen["x"][:n]).max() < 1e-6
    assert forces[:, 2].sum() == pytest.approx(robot.mass * 9.81, rel=0.2)


def swing(dance, f=None):
    """A controller, the first swing (foot, lift-off, landing) and a function that walks it through loads (T, 2)."""
    robot, motion = dance
    found = sorted((int(np.flatnonzero(~motion.stands[:, f])[0]), f) for f in (0, 1))
    begin, foot = found[0]
    end = begin + int(np.argmax(motion.stands[begin:, foot]))
    controller = WholeBodyController(robot, motion)

    def feel(load, until):
        """States of the foot, tick by tick, for its load as a function of the time."""
        states = []
        for t in np.arange(begin / motion.rate - 0.1, until, controller.settings.dt):
            controller.clock = t
            loads = np.full(2, 0.5)
            loads[foot] = load(t)
            controller._contacts(controller._now(), loads)
            states.append((t, controller.feet[foot].state))
        return states

    return controller, motion, foot, begin / motion.rate, end / motion.rate, feel


def test_a_foot_that_lands_early_stands_from_then_on(dance):
    controller, _, _, begin, end, feel = swing(dance)
    states = feel(lambda t: 0.3 if t < begin or t > end - 0.05 else 0.0, end + 0.1)
    first = next(t for t, state in states if t > begin + 0.05 and state == STAND)
    assert first == pytest.approx(end - 0.05, abs=0.006) and controller.early == 1 and controller.late == 0
    assert all(state == STAND for t, state in states if t > first)


def test_a_foot_that_lands_late_reaches_down_until_it_is_felt(dance):
    controller, _, foot, begin, end, feel = swing(dance)
    states = feel(lambda t: 0.3 if t < begin or t > end + 0.05 else 0.0, end + 0.04)
    assert states[-1][1] == LATE and controller.late == 1
    assert controller.feet[foot].down == pytest.approx(0.3 * 0.04, abs=0.004)
    controller._contacts(controller._now(), np.full(2, 0.4))
    assert controller.feet[foot].state == STAND and controller.feet[foot].down == 0.0


def test_what_is_felt_right_after_the_lift_off_is_no_landing(dance):
    controller, _, _, begin, end, feel = swing(dance)
    middle = begin + 0.4 * (end - begin)
    states = feel(lambda t: 0.2 if t < middle else 0.0, end - 0.02)
    assert all(state == SWING for t, state in states if begin + 0.02 < t < end - 0.03) and controller.early == 0


def test_a_motion_of_another_robot_is_refused(dance):
    with pytest.raises(ClipError, match="does not belong to lola"):
        WholeBodyController(load_robot("lola", "floating"), dance[1])
