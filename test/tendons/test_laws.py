"""Laws of the tendon controller in closed loop with the simulated winches, and what each refuses."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, NotANumberError, SizeError, UnknownNameError
from humanoid_control.tendons.control.commands import HYBRID, LENGTH, OFF, TENSION
from humanoid_control.tendons.control.holdable import drawn_postures, scaled_range
from humanoid_control.tendons.control.laws import TendonController, reference_at
from humanoid_control.tendons.control.settings import LAWS, TendonControllerSettings
from test.tendons.closed_loop import Loop

# hold (rms over joints), worst joint of all [deg]
GOOD = {"hybrid": (0.12, 0.7), "stiffness": (0.3, 1.2), "torque": (0.7, 2.5), "length": (0.05, 0.2)}
KINDS = {"hybrid": HYBRID, "stiffness": TENSION, "torque": TENSION, "length": LENGTH}


def goal_of(loop, seed=5, share=0.4):
    g = loop.geometry
    return drawn_postures(scaled_range(g.limits, g.theta(loop.robot.q("neutral")), share), 1, seed)[0]


@pytest.mark.parametrize("law", LAWS)
def test_a_law_moves_the_joints_by_the_tendons_alone_and_holds_them(law):
    loop = Loop(law)
    start = loop.rest(0.1)
    assert np.abs(start).max() < 1.0
    goal = goal_of(loop)
    loop.move(goal)
    held = loop.rest(0.8, goal)[100:]
    hold, worst = GOOD[law]
    assert np.sqrt(np.mean(held**2)) < hold and np.abs(held).max() < worst
    assert np.degrees(np.abs(goal - loop.geometry.theta(loop.robot.q("neutral"))).max()) > 15
    assert set(loop.control.command.kind) == {KINDS[law]}
    assert loop.world.winches.record.tension.max() <= 1.1 * loop.control.most.max()


@pytest.mark.nightly
def test_hybrid_on_estimated_angles_holds_as_well():
    loop = Loop("hybrid", estimated=True)
    goal = goal_of(loop, seed=6)
    moving = loop.move(goal)
    held = loop.rest(0.5, goal)[100:]
    assert np.sqrt(np.mean(held**2)) < 0.15 and np.abs(held).max() < 0.8
    assert np.sqrt(np.mean(moving**2)) < 0.5
    assert np.ptp(held, axis=0).max() < 0.7, "it does not swing"


def test_a_law_at_rest_stays_where_it_is():
    """With exact numbers and no motion, the tensions of the distribution are those that are there."""
    loop = Loop("stiffness")
    states = loop.world.winch_states()
    command = loop.control.step(reference_at(loop.theta), None, states, 0.004)
    assert command.tension == pytest.approx(states.tension, abs=0.5)
    loop.control.with_law("hybrid")
    loop.control.reset(loop.theta, states)
    command = loop.control.step(reference_at(loop.theta), loop.theta, states, 0.004)
    assert np.abs(command.speed).max() < 1e-9
    assert command.tension == pytest.approx(states.tension, abs=0.5)


@pytest.mark.nightly
def test_a_payload_that_the_model_does_not_know_is_carried_because_the_tensions_tell_it():
    """1 kg at the left wrist; with the load filter off the admittance pays out what carries it."""
    errors = {}
    for cutoff in (5.0, 0.0):
        loop = Loop(settings=TendonControllerSettings("hybrid", load_cutoff=cutoff))
        loop.rest(0.2)
        loop.world.push("l_forearm", np.array([0.0, 0.0, -9.81, 0.0, 0.0, 0.0]), 5.0, np.array([0.0, 0.0, -0.25]))
        errors[cutoff] = np.abs(loop.rest(1.6)[300:]).max()
    assert errors[5.0] < 0.1 and errors[0.0] > 4 * errors[5.0], errors


def test_a_spare_tendon_that_snaps_is_left_out_and_the_arm_stays():
    loop = Loop()
    loop.rest(0.2)
    k = loop.geometry.tendon_names.index("l_brachialis")
    loop.world.set_tendon_fault("l_brachialis", "snapped")
    loop.rest(0.1)
    loop.control.dead[k] = True
    held = loop.rest(0.8)[120:]
    assert np.abs(held).max() < 1.5
    assert loop.control.command.kind[k] == OFF and loop.control.command.tension[k] == 0.0
    assert (loop.control.command.kind == HYBRID).sum() == 45


@pytest.mark.nightly
def test_a_soft_stiffness_buckles_where_it_is_predicted_to():
    """Much co-contraction, which makes joints soft and not stiff, and a short push of the head."""
    left, least = {}, {}
    for K in (1e3, 24e3):
        loop = Loop(settings=TendonControllerSettings("stiffness", stiffness=K, co_contraction=200.0))
        loop.rest(0.3)
        neutral = loop.geometry.theta(loop.robot.q("neutral"))
        least[K] = loop.control.joint_stiffness(neutral, loop.world.winch_states().tension, K)[0]
        loop.world.push("head", np.array([20.0, 20.0, 0.0, 0.0, 0.0, 0.0]), 0.2)
        left[K] = np.abs(loop.rest(1.5)[-50:]).max()
    assert least[1e3] < 0 < least[24e3], least
    assert left[1e3] > 5.0 and left[24e3] < 2.0, left


def test_the_stiffness_of_the_joints_is_the_derivative_of_their_torque():
    loop = Loop()
    g, control = loop.geometry, loop.control
    theta, K = goal_of(loop), 2e4
    tensions = 20 + 30 * np.random.default_rng(3).uniform(size=46)
    base = g.raw(theta[None])[0][0]

    def torque(x):
        lengths, G = g.raw(x[None])
        return G[0].T @ (tensions + K * (lengths[0] - base)) + control.governor.holdable.gravity(x)

    H = np.array([(torque(theta + e) - torque(theta - e)) / 2e-6 for e in 1e-6 * np.eye(20)])
    assert np.linalg.eigvalsh(0.5 * (H + H.T))[0] == pytest.approx(
        control.joint_stiffness(theta, tensions, K)[0], abs=0.01
    )


def test_references_beyond_what_tendons_hold_are_held_and_named():
    loop = Loop()
    g = loop.geometry
    most = loop.control.most
    most[:] = np.minimum(most, 60.0)
    loop.control.governor.holdable.distribution.most[:] = most
    goal = drawn_postures(g.limits, 1, seed=3)[0]
    loop.move(goal)
    assert loop.control.held.split(":")[0] in g.joint_names and "cannot hold it" in loop.control.held
    assert np.abs(loop.control.reference - goal).max() > 0.1
    assert np.abs(np.degrees(loop.theta - loop.control.reference)).max() < 3.0, "it stands where it is held"


def test_the_slowest_winch_slows_all_of_the_reference():
    loop = Loop()
    goal = goal_of(loop, seed=8, share=0.9)
    before = loop.theta
    states = loop.measure()
    fast = reference_at(goal)._replace(velocity=20 * np.sign(goal - before))
    command = loop.control.step(fast, loop.angles, states, 0.004)
    assert np.abs(command.speed).max() == pytest.approx(0.9 * 0.45, rel=1e-6)
    assert loop.control.slowed < 0.9
    was = loop.control.reference.copy()
    loop.control.step(fast, loop.angles, states, 0.004)
    assert np.abs(goal - loop.control.reference).max() <= np.abs(goal - was).max()


def test_a_joint_whose_angle_is_doubted_is_led_nowhere():
    loop = Loop()
    k = loop.geometry.joint_names.index("l_elbow_pitch")
    loop.control.trusted[k] = False
    states, angles = loop.measure(), loop.angles.copy()
    angles[k] += 0.5
    command = loop.control.step(reference_at(loop.control.reference + 0.01), angles, states, 0.004)
    mine = loop.control.packed.record
    assert loop.control.reference[k] == pytest.approx(loop.theta[k], abs=0.01)
    assert mine.error[k] < -0.4 and np.abs(command.speed).max() < 0.05


BAD = [
    ("angles", np.zeros(19), SizeError, "expected 20 angles"),
    ("angles", np.full(20, np.nan), NotANumberError, "angles of 'l_sc_roll' is not a number"),
    ("angles", None, ConfigError, "law hybrid needs angles"),
    ("tension", np.zeros(45), SizeError, "expected 46 tensions, got"),
    ("tension", np.r_[np.zeros(45), np.inf], NotANumberError, "tensions of 'r_brachialis' is not a number"),
]


@pytest.mark.parametrize("what,value,error,words", BAD, ids=[f"{w} {e.__name__}" for w, _, e, _ in BAD])
def test_bad_input_is_one_line_and_commands_nothing(what, value, error, words):
    loop = Loop()
    states, angles = loop.measure(), loop.angles
    if what == "angles":
        angles = value
    else:
        states = states._replace(tension=value)
    before = loop.control.reference.copy()
    with pytest.raises(error, match=words) as caught:
        loop.control.step(reference_at(before + 0.1), angles, states, 0.004)
    assert "\n" not in str(caught.value) and (loop.control.reference == before).all()


def test_settings_out_of_range_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean hybrid"):
        TendonControllerSettings("hybrd")
    with pytest.raises(ConfigError, match="kappa must be 0 to 40, got 50"):
        TendonControllerSettings(kappa=50.0)
    with pytest.raises(ConfigError, match=r"admittance must be 0\.0002 to 0\.004"):
        TendonControllerSettings(admittance=float("nan"))
    loop = Loop()
    with pytest.raises(ConfigError, match="above its maximum, 300 N"):
        loop.control.change(TendonControllerSettings(least=295.0))
    with pytest.raises(SizeError, match="46 tendons, 2 units"):
        TendonController(loop.robot.model, loop.geometry, loop.control.units[:2])
