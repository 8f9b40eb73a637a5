"""Walking in the simulated world, by noisy sensors, without the truth."""

import numpy as np
import pinocchio as pin
import pytest

from evidence.studies.walking.trial import NOISE, NoisySensors, TrialPush, WalkConditions, steady, walk
from humanoid_control.errors import ConfigError
from humanoid_control.robots import load_robot
from humanoid_control.robots.guess.robot_file import guess_robot_file
from humanoid_control.simulation import SimulationConfig
from humanoid_control.walking import StepTimes, Walker, WalkSettings, WalkState
from humanoid_control.walking.replanner import Commanded
from test.robots_under_test import nightly

SPEED = (0.4, 0.0, 0.0)


def lola():
    return SimulationConfig("lola", "floating").build()


@pytest.fixture(scope="module")
def walked():
    """Lola walks four steps and stops; what was seen, and every command."""
    engine, walker = lola(), Walker(load_robot("lola", "floating"))
    rows = []

    def watch(engine, walker, report):
        rows.append((walker.t, walker.joints.copy(), walker.joint_velocity.copy()))

    outcome = walk(engine, walker, WalkConditions(steady(SPEED), 2, noise=NOISE, seed=2), watch)
    return outcome, rows, walker.robot


def test_a_robot_walks_by_its_sensors_and_stands_again(walked):
    o, _, _ = walked
    assert o.fell == "" and o.steps >= 4
    assert o.distance > 0.8
    assert o.tilt < np.radians(2.5)
    assert (o.dcm_error < [0.025, 0.02]).all()
    assert o.odometry < 0.02


def test_every_sole_comes_down_where_it_was_planned(walked):
    assert walked[0].sole_error < 0.015
    assert walked[0].foot_error < 0.003


def test_commands_keep_range_and_speed_and_are_smooth(walked):
    _, rows, robot = walked
    q, v = np.array([r[1] for r in rows]), np.array([r[2] for r in rows])
    assert (q >= robot.lower - 1e-9).all() and (q <= robot.upper + 1e-9).all()
    assert (np.abs(v) <= robot.velocity * (1 + 1e-9)).all()
    np.testing.assert_allclose(np.diff(q, axis=0), 0.004 * v[1:], atol=1e-9)


@pytest.mark.nightly
def test_without_the_dynamics_filter_it_falls_or_is_far_worse(walked):
    """The angular momentum of the legs decides."""
    walker = Walker(load_robot("lola", "floating"), WalkSettings(horizon=0.0))
    o = walk(lola(), walker, WalkConditions(steady((0.5, 0.0, 0.0)), 5, noise=NOISE, seed=2))
    assert o.fell or o.dcm_error[0] > 2 * walked[0].dcm_error[0]


@pytest.mark.parametrize("phase", [pytest.param(0.3, marks=pytest.mark.thorough), 0.9])
def test_an_emergency_stop_ends_on_both_feet_within_two_steps(phase):
    engine, walker = lola(), Walker(load_robot("lola", "floating"))
    engine.step(300)
    sensors, called, begin = NoisySensors(engine, NOISE, 1), None, 0
    while walker.t < 12.0:
        engine.step(2)
        sensors.read()
        engine.step(2)
        measured = sensors.read()
        if measured is None:
            continue
        if walker.t > 0.5 and called is None:
            walker.command(SPEED)
        report = walker.step(measured)
        engine.command(walker.joints, walker.joint_velocity)
        assert report.state != WalkState.FALLEN, report.why
        if called is None and report.steps >= 2 and walker.t >= walker.plan.phases[0].lift + phase * 0.8:
            walker.emergency_stop()
            called, begin = walker.t, report.steps
        if called is not None and report.state == WalkState.STAND:
            break
    assert called is not None and report.state == WalkState.STAND
    assert report.steps - begin <= 2
    assert walker.t - called < 3.0


@pytest.mark.nightly
def test_it_walks_the_same_a_kilometre_from_the_origin_and_turned():
    """In a curve, with the world and with the robot's own estimate of it far away: joints and way are the same."""

    def go(X_world=None, X_estimate=None):
        engine, walker, rows = lola(), Walker(load_robot("lola", "floating")), []
        X_world = pin.SE3.Identity() if X_world is None else X_world
        engine.set_state(X_world_root=X_world * pin.XYZQUATToSE3(engine.q[:7]))
        if X_estimate is not None:
            r, data = walker.robot, walker.robot.model.createData()
            pin.framesForwardKinematics(r.model, data, engine.q)
            pivots = zip(walker.feet.frames, walker.estimator.pivots, strict=True)
            walker.estimator.reset([X_estimate.act(data.oMf[f].act(p)) for f, p in pivots])

        def watch(engine, walker, report):
            X = X_world.inverse() * pin.XYZQUATToSE3(engine.q[:7])
            rows.append(np.concatenate([walker.joints, X.translation, X.rotation.ravel()]))

        walk(engine, walker, WalkConditions(steady((0.4, 0.05, 0.1), after=1.6), 2, noise=None), watch)
        return np.array(rows)

    far = np.array([1000.0, -700.0, 0.0])
    near = go()
    assert near[-1, -12] > 0.3, "it has walked"
    turned = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, 2.5), far)
    np.testing.assert_allclose(go(turned, pin.SE3(np.eye(3), -far)), near, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("phase", [0.1, nightly(0.6)])
def test_a_new_command_is_walked_within_a_step_and_a_tenth_of_a_second(phase):
    """Sideways on the way: the time from the command to the lift-off of the first step that goes there."""
    engine, walker = lola(), Walker(load_robot("lola", "floating"))
    lifts, times, called = [], [], 0.5 + 1.0 + (2 + phase) * 0.8

    def watch(engine, walker, report):
        swinging = report.references.swinging
        if swinging is not None and (not lifts or lifts[-1][0] != swinging):
            step, other = walker.plan.phases[0].step, report.references.soles[1 - swinging]
            width = abs(float(other.actInv(step.X).translation[1]))
            lifts.append((swinging, width, walker.t))

    def program(t):
        return (0.3, 0.1 if t >= called else 0.0, 0.0) if t >= 0.5 else (0.0, 0.0, 0.0)

    walk(engine, walker, WalkConditions(program, 4, noise=None), watch)
    usual = lifts[1][1]
    times = [t - called for _, width, t in lifts if t > called and abs(width - usual) > 0.02]
    assert times and times[0] <= 0.8 + 0.1
    assert all(abs(width - usual) < 0.005 for _, width, t in lifts[1:] if t < called)


@pytest.mark.nightly
def test_it_walks_again_after_it_has_stopped():
    """Eight simulated seconds, two of time. It once went from standing to walking and back at every tick."""
    engine, walker, stops, states = lola(), Walker(load_robot("lola", "floating")), 0, []
    engine.step(300)
    while walker.t < 12.0 and stops < 2:
        walker.command(SPEED if walker.steps < 1 + 3 * stops else np.zeros(3))
        report = walker.step(engine.read())
        engine.command(walker.joints, walker.joint_velocity)
        engine.step(4)
        if not states or states[-1] != report.state:
            states.append(report.state)
            stops += report.state == WalkState.STAND and len(states) > 1
    S = WalkState
    assert states == [S.STAND, S.WALK, S.STOP, S.STAND, S.WALK, S.STOP, S.STAND], states
    assert walker.steps >= 4


def test_soles_that_have_crept_a_long_way_change_nothing():
    """Two walkers see the same; for one both soles have crept by 0.5 m. Without dropping that way the dynamics filter
    begins with a leap, and a robot falls that has slipped so far in a hundred quick steps."""
    engine, walker, crept = lola(), *(Walker(load_robot("lola", "floating")) for _ in range(2))
    while walker.t < 1.9:  # the first steps are planned, and the first foot is in the air
        measured = engine.read()
        for w in (walker, crept):
            w.command(np.array(SPEED))
            w.step(measured)
        if walker.t == pytest.approx(0.5):
            crept.q[:2] += [-0.4, 0.3]
            crept.stabilizer.offsets[:, :2] += [-0.4, 0.3]
        engine.command(walker.joints, walker.joint_velocity)
        engine.step(4)
    assert walker.plan.at(walker.t).swinging is not None
    np.testing.assert_allclose(crept.plan.momentum.shift, walker.plan.momentum.shift, atol=1e-9)
    np.testing.assert_allclose(crept.joints, walker.joints, atol=1e-8)


def test_a_foot_that_bounced_reaches_down_until_it_stands():
    """On both feet, one of which left the ground again after it had touched it."""
    engine, walker = lola(), Walker(load_robot("lola", "floating"))
    landed = None
    while landed is None:
        walker.command(np.array(SPEED))
        report = walker.step(engine.read())
        engine.command(walker.joints, walker.joint_velocity)
        engine.step(4)
        if report.steps == 2 and report.references.swinging is None and report.estimate.touches.all():
            landed = walker.plan.phases[0]
    foot, other = landed.step.foot, 1 - landed.step.foot
    before, seen = walker.stabilizer.offsets.copy(), report.estimate
    seen.touches[foot] = False
    walker.t = landed.land + 0.03
    now = Commanded(walker.t, walker.q, walker.v, walker.center)
    for _ in range(10):
        walker._reach_ground(now, seen, landed)
    moved = walker.stabilizer.offsets - before
    assert moved[foot][2] == pytest.approx(-10 * 0.06 * 0.004, abs=1e-9) and not moved[other].any()
    seen.touches[foot] = True
    for _ in range(10):
        walker._reach_ground(now, seen, landed)
    np.testing.assert_array_equal(walker.stabilizer.offsets - before, moved)


@pytest.mark.nightly
def test_a_robot_whose_legs_give_way_walks_backward_and_on_soft_ground():
    """HRP-2's knees are at their torque limit backward; on ground of a fifth of the stiffness feet land late."""
    cases = (("hrp2", (-0.2, 0.0, 0.0), 1e5), ("lola", (0.5, 0.0, 0.0), 2e4))
    for robot, speed, stiffness in cases:
        engine = SimulationConfig(robot, "floating", contact_stiffness=stiffness).build()
        times = StepTimes(nominal=0.8, shortest=0.4, comfortable=10.0)
        walker = Walker(load_robot(robot, "floating"), WalkSettings(times=times))
        o = walk(engine, walker, WalkConditions(steady(speed), 20, noise=NOISE, seed=0))
        assert not o.fell and np.degrees(o.tilt) < 4.0, robot
        assert o.dcm_error.max() < 0.025 and o.sole_error < 0.025, robot
        if stiffness == 1e5:  # feet that come down before their time do not lift the estimate
            assert abs(o.height_drift) < 0.003, robot


@pytest.mark.nightly
def test_it_goes_sideways_back_and_round_and_lower_and_higher_on_the_way():
    """Fourteen simulated seconds: where the root went, in truth, in its own heading, in the last two steps of each."""
    ways, ends = ((0.0, 0.12, 0.0), (-0.25, 0.0, 0.0), (0.0, 0.0, 0.3), (0.3, 0.0, 0.3)), (4.8, 8.0, 11.2, 14.4)
    rows, heights = [[] for _ in ways], [[] for _ in ways]

    def program(t):
        return ways[min(np.searchsorted(ends, t), 3)]

    def watch(engine, walker, report):
        k = int(np.searchsorted(ends, walker.t))
        if k < len(ways) and walker.t > ends[k] - 1.6:
            R = pin.Quaternion(engine.q[3:7]).toRotationMatrix() @ engine.robot.X_world_root.rotation.T
            rows[k].append((walker.t, *engine.q[:2], np.arctan2(R[1, 0], R[0, 0])))
            heights[k].append(report.estimate.center[2])
        if k in (1, 3):
            walker.raise_center(-0.08 if k == 1 else 0.02)

    walker = Walker(load_robot("lola", "floating"))
    o = walk(lola(), walker, WalkConditions(program, 100, longest=ends[-1], noise=NOISE, seed=3), watch)
    assert o.fell == "" and o.tilt < np.radians(3.0) and o.sole_error < 0.02
    for way, seen in zip(ways, rows, strict=True):
        t, x, y, heading = np.array(seen).T
        heading = np.unwrap(heading)
        T, (c, s) = t[-1] - t[0], (np.cos(heading.mean()), np.sin(heading.mean()))
        dx, dy = x[-1] - x[0], y[-1] - y[0]
        v = np.array([c * dx + s * dy, c * dy - s * dx, heading[-1] - heading[0]]) / T
        np.testing.assert_allclose(v, way, atol=0.06)
    own, low, turning, high = map(np.mean, heights)
    assert low - own == pytest.approx(-0.08, abs=0.01), "the height that was asked for"
    assert turning - own > -0.02, "turning it is as high as of itself: low it would fall"
    assert high - own > 0.0


@pytest.mark.nightly
def test_it_walks_in_a_world_of_other_makers_as_well():
    """The same walker, by the same noisy sensors, with MuJoCo's dynamics and contacts under it: about 3 s."""
    pytest.importorskip("mujoco", reason="needs MuJoCo: pip install mujoco")
    engine = SimulationConfig("lola", "floating", engine="mujoco").build()
    o = walk(engine, Walker(load_robot("lola", "floating")), WalkConditions(steady(SPEED), 3, noise=NOISE, seed=2))
    assert o.fell == "" and o.steps >= 3 and o.distance > 0.5
    assert o.tilt < np.radians(3.0) and o.sole_error < 0.02 and o.odometry < 0.03


@pytest.mark.parametrize("height", [0.11, -0.2, np.nan])
def test_a_height_that_legs_cannot_have_is_refused(height):
    walker = Walker(load_robot("hrp2", "floating"))
    with pytest.raises(ConfigError, match="can be raised by"):
        walker.raise_center(height)


@pytest.mark.parametrize("bad", [[np.nan, 0, 0], [np.inf, 0, 0], [1.0, 2.0], "fast"])
def test_a_velocity_that_is_none_is_refused_and_the_old_one_stays(bad):
    walker = Walker(load_robot("hrp2", "floating"))
    walker.command([0.1, 0.0, 0.0])
    with pytest.raises(ConfigError, match="three finite numbers"):
        walker.command(bad)
    assert walker.planner.command.tolist() == [0.1, 0.0, 0.0]


def test_it_begins_anew_after_a_fall():
    engine, walker = lola(), Walker(load_robot("lola", "floating"))
    engine.step(300)
    for _ in range(3):
        walker.step(engine.read())
    engine.push(engine.robot.root_link, np.array([900.0, 0, 0, 0, 0, 0]), 0.3)
    while walker.state != WalkState.FALLEN and walker.t < 3.0:
        engine.step(4)
        report = walker.step(engine.read())
    assert walker.state == WalkState.FALLEN and report.why
    engine.reset()
    engine.step(300)
    walker.reset()
    for _ in range(100):
        report = walker.step(engine.read())
        engine.command(walker.joints, walker.joint_velocity)
        engine.step(4)
    assert report.state == WalkState.STAND and report.why == ""
    assert np.abs(report.balance.error).max() < 0.03


@pytest.mark.nightly
def test_a_push_over_the_foot_that_stands_is_caught_by_the_steps_after_it():
    """20 N s to the left while the left foot stands: the right one must come down soon, the left one far away."""
    settings = WalkSettings(times=StepTimes(nominal=0.5, shortest=0.4, comfortable=10.0))
    pushed = WalkConditions(steady(SPEED), 5, noise=NOISE, pushes=(TrialPush(1.0, (0.0, 200.0, 0.0)),))
    o = walk(lola(), Walker(load_robot("lola", "floating"), settings), pushed)
    assert o.fell == ""
    assert o.tilt < np.radians(8.0)


def test_the_push_that_adjusted_steps_catch_throws_a_robot_whose_steps_stay_as_planned():
    """The same 20 N s: the zero-moment point alone, which a sole bounds, does not hold it."""
    settings = WalkSettings(times=StepTimes(nominal=0.5, shortest=0.4, comfortable=10.0), adjustment=None)
    pushed = WalkConditions(steady(SPEED), 5, noise=NOISE, pushes=(TrialPush(1.0, (0.0, 200.0, 0.0)),))
    assert walk(lola(), Walker(load_robot("lola", "floating"), settings), pushed).fell


@pytest.mark.nightly
def test_a_robot_walks_whose_urdf_is_all_that_is_known(tmp_path):
    """Soles, points and step limits are guessed; its posture is that of zero angles, with stretched knees."""
    path = tmp_path / "stranger.urdf"
    path.write_text(load_robot("wabian2").urdf)
    guess_robot_file(path)
    o = walk(
        SimulationConfig(str(path), "floating").build(),
        Walker(load_robot(path, "floating")),
        WalkConditions(steady((0.15, 0.0, 0.0)), 4, noise=NOISE),
    )
    assert o.fell == "" and o.steps >= 4
    assert o.tilt < np.radians(8.0) and o.sole_error < 0.015
