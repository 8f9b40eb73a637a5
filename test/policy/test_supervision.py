"""Supervision of policies: ramps, catches, handover by torque, descents; each by its threshold, and in closed loop."""

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("onnxruntime", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")
pytest.importorskip("onnx")

from humanoid_control.policy import (
    Command,
    Policy,
    PolicyPlayer,
    PolicySupervisor,
    PolicyTargets,
    RobotState,
    TorqueGate,
    blend_by_torque,
    load_policy,
    play,
    policy_engine,
)
from humanoid_control.policy.gate import pd_torque
from humanoid_control.policy.player import quasi_direct_armature
from humanoid_control.policy.supervision import CATCH, DAMP, RUN, SIT, STAND_IN, UP, damping_gains, tilt_of


@pytest.fixture(scope="module")
def policies(model_file, g1):
    """Two walkers: of holosoma, and AGILE, which drives no arms."""
    ppo = load_policy(model_file("policies/holosoma/ppo_g1_29dof.onnx"), g1)
    return ppo, load_policy(model_file("policies/agile_leapp/unitree_g1_velocity_e2e.yaml"), g1)


def supervisor(policy, catcher=None):
    n = policy.robot.n
    return PolicySupervisor(policy, (np.full(n, 30.0), np.full(n, 2.0)), catcher)


def standing(policy, roll=0.0, pitch=0.0, rate=(0.0, 0.0, 0.0)):
    """The rest posture, tilted."""
    orientation = pin.Quaternion(pin.rpy.rpyToMatrix(roll, pitch, 0.4)).coeffs()
    zero = np.zeros(policy.robot.n)
    return RobotState(policy.rest.copy(), zero, orientation, np.array(rate), np.array([0, 0, 0.79]), np.zeros(3))


def test_tilt_and_its_rate_are_those_of_the_upward_axis():
    rng = np.random.default_rng(1)
    for _ in range(20):
        R, w = pin.exp3(0.8 * rng.normal(size=3)), rng.normal(size=3)
        state = RobotState(np.zeros(1), np.zeros(1), pin.Quaternion(R).coeffs(), w)
        angle = [np.arccos((R @ pin.exp3(t * w))[2, 2]) for t in (-1e-6, 0.0, 1e-6)]
        tilt, rate = tilt_of(state)
        assert tilt == pytest.approx(angle[1]) and rate == pytest.approx((angle[2] - angle[0]) / 2e-6, abs=1e-4)
    upright = RobotState(np.zeros(1), np.zeros(1), np.array([0, 0, 0, 1.0]), np.array([0.3, 0.4, 9.0]))
    assert tilt_of(upright) == (0.0, pytest.approx(0.5))


def test_tilt_begins_beyond_the_lean_of_the_motion_and_its_rate_is_its_derivative():
    """Compared with the nearest of 20,001 postures between upright and the lean."""
    rng, passed = np.random.default_rng(4), 0
    share = np.linspace(0.0, 1.0, 20_001)[:, None]

    def least(R, axis, most):
        return np.linalg.norm(R[2] - np.sin(most * share) * axis - np.cos(most * share) * UP, axis=1).min()

    for _ in range(60):
        R, w, way, lean = (
            pin.exp3(0.6 * rng.normal(size=3)),
            rng.normal(size=3),
            rng.uniform(0, 6.3),
            rng.uniform(0, 1.4),
        )
        axis = np.array([np.cos(way), np.sin(way), 0.0])
        state = RobotState(np.zeros(1), np.zeros(1), pin.Quaternion(R).coeffs(), w)
        for most in (np.inf, 0.4):
            tilt, rate = tilt_of(state, np.sin(lean) * axis + np.cos(lean) * UP, most)
            chords = [least(R @ pin.exp3(t * w), axis, min(lean, most)) for t in (-1e-4, 0.0, 1e-4)]
            angles = 2 * np.arcsin(0.5 * np.array(chords))
            assert tilt == pytest.approx(angles[1], abs=1e-6)
            assert rate == pytest.approx((angles[2] - angles[0]) / 2e-4, abs=2e-3)
            passed += tilt < tilt_of(state)[0] - 0.1
    assert passed > 20


def test_a_blend_has_the_mean_torque_wherever_the_joints_are():
    rng, limit = np.random.default_rng(2), np.full(5, 1e9)
    a, b = (PolicyTargets(*rng.normal(size=(3, 5)), *rng.uniform(1, 90, size=(2, 5))) for _ in range(2))
    for share in (0.0, 0.3, 1.0):
        q, v = rng.normal(size=(2, 5))
        expected = (1 - share) * pd_torque(a, q, v, limit) + share * pd_torque(b, q, v, limit)
        assert np.allclose(pd_torque(blend_by_torque(a, b, share), q, v, limit), expected)


@pytest.mark.parametrize(("turn", "stops"), [(0.3, False), (0.4, True)])
def test_an_imu_that_does_not_fit_the_soles_is_named_at_the_first_step(policies, turn, stops):
    """A robot that begins stands on its soles: where they are not level by the IMU, it is the IMU that is wrong."""
    s = supervisor(policies[0])
    s.step(standing(policies[0], roll=turn))
    assert (s.state == SIT) == stops
    if stops:
        assert "no sole is level according to the IMU, l_foot is tilted by 0.39" in s.events[0].why
    s = supervisor(policies[0])
    s.step(standing(policies[0]))
    s.step(standing(policies[0], roll=turn))  # a robot that runs may stand on an edge
    assert s.state == RUN


def test_a_leg_whose_joint_has_another_sign_is_named_at_the_first_step(policies, g1):
    s, state = supervisor(policies[0]), standing(policies[0])
    state.q[g1.index["right_knee_joint"]] *= -1.0
    s.step(state)
    assert s.state == SIT and "the sole r_foot is tilted by 1.3" in s.events[0].why
    state = standing(policies[0])
    state.q[g1.index["left_elbow_joint"]] *= -1.0  # no sole shows it
    s = supervisor(policies[0])
    s.step(state)
    assert s.state == RUN


def test_a_start_ramps_posture_and_gains_from_nothing(policies):
    s = supervisor(policies[0])
    s.start()
    state = standing(policies[0])
    state.q[:] = 0.3
    first = s.step(state)
    assert s.state == STAND_IN and np.abs(pd_torque(first, state.q, state.v, policies[0].robot.effort)).max() < 0.1
    torques, posture = [], state.q.copy()
    for _ in range(99):
        t = s.step(state)
        torques.append(t.kp.copy())
    assert (np.diff(torques, axis=0) >= 0).all() and s.state == RUN
    assert np.allclose(t.q, policies[0].start_posture, atol=1e-3) and not np.allclose(t.q, posture, atol=0.1)
    assert [e.state for e in s.events] == [STAND_IN, RUN]


@pytest.mark.parametrize(
    ("pitch", "rate", "expected"),
    [
        (0.0, 0.0, RUN),
        (0.3, 1.4, RUN),
        (0.3, 1.6, CATCH),
        (0.49, 0.0, RUN),
        (0.51, 0.0, SIT),
        (0.0, 2.9, RUN),
        (0.1, 2.6, CATCH),
    ],
)
def test_it_is_caught_and_let_down_at_the_thresholds(policies, pitch, rate, expected):
    s = supervisor(policies[0])
    s.step(standing(policies[0]))
    s.step(standing(policies[0], pitch=pitch, rate=(0.0, rate, 0.0)), Command((0.5, 0, 0)))
    assert s.state == expected


@pytest.mark.parametrize(
    ("lean", "pitch", "rate", "expected"),
    [
        (-0.6, -0.6, 0.0, RUN),
        (-0.6, -0.5, -1.5, RUN),  # on its way into the bow
        (-0.6, 0.0, 0.0, RUN),  # upright is safe, though it does not follow
        (-0.6, -1.05, 0.0, RUN),
        (-0.6, -1.11, 0.0, SIT),
        (-0.6, -0.9, -1.6, CATCH),
        (-0.6, 0.51, 0.0, SIT),  # to the other side
        (-1.4, -1.49, 0.0, RUN),
        (-1.4, -1.51, 0.0, SIT),  # a motion that lies down
        (np.nan, -0.51, 0.0, SIT),
    ],
)
def test_the_lean_of_a_motion_is_no_tilt(policies, monkeypatch, lean, pitch, rate, expected):
    monkeypatch.setattr(Policy, "leaning", property(lambda _: np.array([-np.sin(lean), 0.0, np.cos(lean)])))
    s = supervisor(policies[0])
    s.step(standing(policies[0]))
    s.step(standing(policies[0], pitch=pitch, rate=(0.0, rate, 0.0)))
    assert s.state == expected


def test_targets_far_beyond_the_ranges_catch_a_robot_that_tilts_only(policies):
    for pitch, expected in ((0.2, RUN), (0.3, CATCH)):
        s = supervisor(policies[0])
        for _ in range(30):
            s.step(standing(policies[0], pitch=pitch))
            policies[0].out_of_range[3] = 0.25
        assert s.state == expected


def test_a_caught_robot_walks_again_once_it_is_calm(policies, monkeypatch):
    s, seen = supervisor(policies[0]), []
    step = policies[0].step
    monkeypatch.setattr(
        policies[0], "step", lambda state, command: seen.append(tuple(command.velocity)) or step(state, command)
    )
    walk = Command((0.5, 0.0, 0.0))
    s.step(standing(policies[0], pitch=0.3, rate=(0, 1.6, 0)), walk)
    for _ in range(51):
        s.step(standing(policies[0]), walk)
    assert s.state == RUN and seen[0] == seen[40] == (0.0, 0.0, 0.0) and seen[-1] == (0.5, 0.0, 0.0)


def test_another_policy_catches_with_a_torque_that_does_not_jump(policies, monkeypatch):
    """Handover by torques: first that of the policy that ran, then 0.3 s of a straight way to that of the other one."""
    ppo, agile = policies
    rng, n, limit = np.random.default_rng(3), ppo.robot.n, np.full(ppo.robot.n, 1e9)
    a, b = (PolicyTargets(*rng.normal(size=(3, n)), *rng.uniform(1, 90, size=(2, n))) for _ in range(2))
    monkeypatch.setattr(ppo, "step", lambda state, command: a)
    monkeypatch.setattr(agile, "step", lambda state, command: b)
    s, state = supervisor(ppo, agile), standing(ppo, pitch=0.3, rate=(0.0, 1.6, 0.0))
    ends = [pd_torque(t, state.q, state.v, limit) for t in (a, b)]
    for k in range(25):
        torque, share = pd_torque(s.step(state), state.q, state.v, limit), min(0.02 * k / 0.3, 1.0)
        assert s.state == CATCH and np.allclose(torque, (1 - share) * ends[0] + share * ends[1])


@pytest.mark.parametrize("field", ["q", "v", "orientation", "angular_velocity"])
def test_a_state_that_is_no_number_ends_in_damping_without_an_error(policies, field):
    s, state = supervisor(policies[0]), standing(policies[0])
    s.step(state)
    values = getattr(state, field).copy()
    values[0] = np.nan
    for k in range(60):
        t = s.step(state._replace(**{field: values}))
        assert all(np.isfinite(a).all() for a in t)
        assert s.state in ((SIT, DAMP) if k < 45 else (DAMP,))
    assert (
        "not a number" in s.events[0].why and not t.kp.any() and np.array_equal(t.kd, damping_gains(policies[0].robot))
    )


def test_a_late_inference_is_named_and_lets_the_robot_down(policies):
    s = supervisor(policies[0])
    s.step(standing(policies[0]), late=0.009)
    assert s.state == RUN
    s.step(standing(policies[0]), late=0.011)
    assert s.state == SIT and "11 ms late" in s.events[-1].why


def test_a_descent_begins_with_the_torque_of_the_policy_and_ends_with_damping(policies):
    s, state = supervisor(policies[0]), standing(policies[0])
    before = s.step(state)
    before = PolicyTargets(*(a.copy() for a in before))
    s.stop()
    stiffness = [s.step(state).kp.copy() for _ in range(45)]
    assert np.allclose(stiffness[0], before.kp * (1 - 0.02 / 0.8)) and not stiffness[-1].any() and s.state == DAMP
    assert (np.diff(stiffness, axis=0) <= 1e-9).all()


def test_ankles_arms_and_wrists_are_damped_less(g1):
    kd = dict(zip(g1.joint_names, damping_gains(g1), strict=True))
    assert kd["left_knee_joint"] == 5.0 and kd["waist_yaw_joint"] == 5.0
    assert kd["right_ankle_roll_joint"] == kd["left_ankle_pitch_joint"] == kd["left_elbow_joint"] == 2.0
    assert kd["left_wrist_yaw_joint"] == 0.5


# -------- Closed loop


def test_a_walk_under_supervision_is_left_alone(policies, g1):
    reports = []
    for supervised in (False, True):
        player = PolicyPlayer(policies[0], policy_engine(g1, "multibody"), None, supervised)

        def each(p):
            p.command = Command((0.5 if p.engine.time >= 1.0 else 0.0, 0.0, 0.0))

        reports.append(play(player, 5.0, each))
    assert reports[1].events == [] and reports[0].distance == reports[1].distance


def test_a_robot_whose_policy_has_lost_its_mind_is_let_down_within_its_limits(model_file, g1):
    """The IMU turned by 90 degrees: let down before it lies, ended in damping, and no joint beyond its range."""
    policy = load_policy(model_file("policies/holosoma/ppo_g1_29dof.onnx"), g1)
    player = PolicyPlayer(policy, policy_engine(g1, "multibody"), TorqueGate(g1, quasi_direct_armature(g1)), True)
    player.command = Command((0.5, 0.0, 0.0))
    quarter, state = pin.rpy.rpyToMatrix(0.0, 0.0, np.pi / 2), player.state
    step = policy.step

    def turned(s, command=None):
        R = pin.Quaternion(s.orientation).toRotationMatrix() @ quarter
        return step(
            s._replace(orientation=pin.Quaternion(R).coeffs(), angular_velocity=quarter.T @ s.angular_velocity), command
        )

    policy.step = turned
    assert state().q.shape == (29,)
    for _ in range(300):
        player.step()
    report = player.finish()
    assert report.fell is not None and report.events[-1].state == DAMP
    assert report.events[0].time < report.fell and report.range_excess.max() <= 0.02
    assert np.abs(player.engine.joint_velocity).max() < 0.5
    assert 0.03 < player.engine.base_state()[0][2] < 0.4  # it lies on the floor, not below it
