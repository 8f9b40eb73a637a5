"""Bad input and the simulator's tricks while a robot walks: simulator and walker in one process, messages lost at will.

About 45 simulated seconds in all, some 20 of time.
"""

import copy

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import PoseArray, PoseStamped, Twist
from sensor_msgs.msg import Joy
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from test.nodes.walking.direct import SENSORS, Direct, Publisher

FORWARD = 0.3  # [m/s]


@pytest.fixture
def stack(monkeypatch):
    made = []

    def make(**options):
        made.append(Direct(monkeypatch, **options))
        return made[-1]

    yield make
    for d in made:
        d.close()


def walking(d, x=FORWARD):
    m = Twist()
    m.linear.x = x
    return lambda: d.bus.publish("cmd_vel", m)


def place(d):
    return d.engine.base_state()[0][:2].copy()


def until_steps(d, n, meanwhile, longest=8.0):
    begin = d.walker.report.steps if d.walker.report else 0
    assert d.run(longest, lambda: d.walker.report is not None and d.walker.report.steps >= begin + n, meanwhile), d.open
    return begin


def goal(x, y, yaw, frame="base_footprint"):
    m = PoseStamped()
    m.header.frame_id = frame
    m.pose.position.x, m.pose.position.y = x, y
    m.pose.orientation.w, m.pose.orientation.z = float(np.cos(yaw / 2)), float(np.sin(yaw / 2))
    return m


@pytest.mark.nightly
@pytest.mark.parametrize("pace", [pytest.param(1.0, marks=pytest.mark.thorough), 0.5])
def test_five_percent_of_lost_messages_change_nothing(stack, pace):
    """Each message of each sensor, and each command: every sixth instant lacks one. At half of real time silences last
    twice as long on the clock, which once ended the walk; and instants that were lost once were lost to the plan."""
    d = stack(pace=pace)
    d.stand()
    d.bus.loss = dict.fromkeys((*SENSORS, "joint_commands"), 0.05)
    d.run(0.1)
    begin, t, ticks = place(d), d.engine.time, d.walker.ticks
    guessed = d.walker.report.estimate.q[:2].copy()
    d.run(4.4 / pace, None, walking(d))
    assert d.states == ["WAITING", "STAND", "WALK"] and "late" not in d.walker.health.seen
    assert d.walker.clock.held > 60 and d.engine.time - t == pytest.approx(4.4, abs=0.02)
    assert d.walker.ticks - ticks == pytest.approx(1100, abs=8), "every instant has its tick"
    way, guess = place(d) - begin, d.walker.report.estimate.q[:2] - guessed
    assert np.linalg.norm(guess - way) < 0.03, "odometry"
    assert place(d)[0] - begin[0] == pytest.approx(0.63, abs=0.06), "as far as without losses"


def test_a_goal_is_walked_to_and_what_is_none_is_refused(stack):
    d = stack()
    d.bus.publish("goal_pose", goal(0.3, 0.0, 0.0))
    assert "does not stand yet" in d.bus.newest["footsteps/status"].value
    d.stand()
    for bad, words in (
        (goal(np.nan, 0.0, 0.0), "not a number"),
        (goal(1.0, 0.0, 0.0, "map"), "frame 'map'"),
        (goal(1e5, 0.0, 0.0), "m away"),
    ):
        d.bus.publish("goal_pose", bad)
        said = d.bus.newest["footsteps/status"]
        assert said.key == "refused" and words in said.value
    begin = d.engine.link_pose(d.walker.robot.root_link)
    d.bus.publish("goal_pose", goal(0.35, 0.1, 0.15))
    assert d.bus.newest["footsteps/status"].key == "accepted"
    d.run(1.0)
    assert d.run(8.0, lambda: d.state == "STAND")
    d.run(0.5)
    moved = begin.actInv(d.engine.link_pose(d.walker.robot.root_link))
    # The robot first leans: its root goes some millimetres against its feet.
    np.testing.assert_allclose(moved.translation[:2], [0.35, 0.1], atol=0.03)
    assert pin.log3(moved.rotation)[2] == pytest.approx(0.15, abs=np.radians(2))
    # footsteps: the same foot twice, and a list without end
    feet = [X.translation for X in d.walker.walker.plan.soles(d.walker.walker.t)]
    for poses, words in (
        ([feet[0]] * 1001, "1 to 1000"),
        ([feet[0] + [0.1, 0, 0], feet[1] + [3.0, 0, 0]], "footstep 1"),
    ):
        m = PoseArray(poses=[goal(p[0], p[1], 0.15).pose for p in poses])
        d.walker.health.clear("footsteps")
        d.walker.on_footsteps(m, {})
        assert words in d.bus.newest["footsteps/status"].value


@pytest.mark.nightly
def test_footsteps_and_goals_of_one_node_are_carried_out_before_those_of_another(stack):
    """Each list replaces the one before: of two planners that ask in turn neither got anywhere."""
    d = stack()
    d.stand()
    planner, tool, spare = (type("Node", (), {"get_name": lambda s, n=n: n})() for n in ("planner", "tool", "spare"))
    goals, others = Publisher(d.bus, planner, "goal_pose"), Publisher(d.bus, tool, "goal_pose")
    steps_of_tool = Publisher(d.bus, tool, "footsteps")
    said = lambda: (d.bus.newest["footsteps/status"].key, d.bus.newest["footsteps/status"].value)  # noqa: E731
    goals.publish(goal(0.6, 0.0, 0.0))
    assert said()[0] == "accepted"
    d.run(1.5)
    queue = list(d.walker.walker.planner.queue)
    steps = PoseArray(poses=[goal(0.1, 0.1, 0.0).pose])
    for publisher, message in ((others, goal(-0.6, 0.0, 0.0)), (steps_of_tool, steps)):
        publisher.publish(message)
        key, why = said()
        assert key == "refused" and f"{publisher.topic} of /tool is rejected: goal_pose of /planner" in why
        assert d.walker.walker.planner.queue == queue and why in d.walker.health.worst()[1]
    goals.publish(goal(0.3, 0.0, 0.0))
    assert said()[0] == "accepted", "its own goal it may change"
    d.bus.publishers["goal_pose"] = [others]
    others.publish(goal(0.2, 0.0, 0.0))
    assert said()[0] == "accepted", "who is gone has no say"
    assert d.run(12.0, lambda: d.state == "STAND" and not d.walker.walker.planner.queue)
    Publisher(d.bus, spare, "goal_pose").publish(goal(0.2, 0.0, 0.0))
    assert said()[0] == "accepted", "what is done is nobody's"


def test_silent_sensors_end_the_walk_and_what_comes_back_goes_on(stack):
    d = stack()
    go = walking(d)
    d.stand()
    until_steps(d, 2, go)
    d.bus.silent = {"wrench/l_foot"}
    d.run(0.045, None, go)
    assert "late" in d.open and "lost" not in d.open and d.state == "WALK", "coasts on the plan"
    d.bus.silent = {"imu"}
    d.run(0.1, None, go)
    assert "lost" in d.open and d.state == "STOP"
    d.bus.silent = set()
    begin = d.walker.report.steps
    assert d.run(3.0, lambda: d.state == "STAND", go)
    assert d.walker.report.steps - begin <= 2, "an emergency stop"
    assert d.run(4.0, lambda: d.state == "WALK", go), "all sensors are heard again"
    assert d.run(4.0, lambda: d.state == "STAND")
    d.bus.silent = {"joint_states"}
    d.run(0.25, None, go)
    damped = d.bus.newest["joint_commands"]
    assert d.states[-2:] == ["OFF", "WAITING"] or d.state == "OFF", d.states
    assert len(damped.position) == 0 and not np.any(damped.velocity)
    assert "FALLEN" not in d.states


@pytest.mark.nightly
def test_a_frozen_sensor_and_a_silent_one_end_the_walk(stack):
    d = stack()
    go = walking(d)
    d.stand()
    until_steps(d, 2, go)
    # A force sensor that repeats itself, number for number, while its foot is in the air; and then the other is silent.
    assert d.run(2.0, lambda: not d.bus.newest["wrench/l_foot"].wrench.force.z, go)
    kept, begin = copy.deepcopy(d.bus.newest["wrench/l_foot"].wrench), d.walker.report.steps

    def frozen(m):
        m = copy.deepcopy(m)
        m.wrench = kept
        return m

    d.bus.change["wrench/l_foot"] = frozen
    assert d.run(1.5, lambda: {"wrench/l_foot frozen", "late"} <= d.open, go)
    d.bus.silent = {"wrench/r_foot"}
    assert d.run(3.0, lambda: d.state == "STAND", go), (d.states, d.open)
    assert d.walker.report.steps - begin <= 3 and "FALLEN" not in d.states, "an emergency stop, by the motion alone"


@pytest.mark.nightly
def test_the_simulator_is_paused_reset_and_the_robot_put_elsewhere(stack):
    d = stack()
    go = walking(d)
    d.stand()
    until_steps(d, 1, go)
    sent = []

    def record(message):
        if len(message.position):
            sent.append(np.array(message.position))

    d.bus.listeners["joint_commands"].append(record)
    t, states, n = d.engine.time, list(d.states), d.walker.ticks
    d.simulator.on_pause(SetBool.Request(data=True), SetBool.Response())
    d.run(2.0, None, go)
    assert d.engine.time == t and d.states == states and not d.open and d.walker.ticks <= n + 2, "time stands still"
    d.simulator.on_pause(SetBool.Request(data=False), SetBool.Response())
    until_steps(d, 1, go)
    assert np.abs(np.diff(sent, axis=0)).max() <= 0.05 + 1e-9, "no jump of commands"
    d.simulator.on_reset(Trigger.Request(), Trigger.Response())
    d.run(0.02)
    assert d.state == "WAITING" and "jump" in d.open
    assert d.run(4.0, lambda: d.state == "STAND")
    assert d.run(2.0, lambda: d.state == "WALK", go)
    sent.clear()
    turned = goal(0.0, 0.0, np.pi / 2, "world")
    turned.pose.position.z = float(d.engine.base_state()[0][2])
    d.bus.publish("~/set_base", turned)
    d.run(0.02)
    assert d.state == "WAITING" and "the IMU orientation jumped by 90 deg" in d.walker.health.open["jump"][1]
    assert d.run(5.0, lambda: d.state == "STAND", go)
    d.run(0.3)
    assert np.abs(np.diff(sent, axis=0)).max() <= 0.05 + 1e-9 and "FALLEN" not in d.states


def turned(axis):
    """A change of messages of an IMU: it is mounted turned."""
    R = pin.Quaternion(pin.exp3(np.array(axis)))

    def change(m):
        m = copy.deepcopy(m)
        o = m.orientation
        q = pin.Quaternion(o.w, o.x, o.y, o.z) * R
        o.x, o.y, o.z, o.w = q.x, q.y, q.z, q.w
        for v in (m.angular_velocity, m.linear_acceleration):
            v.x, v.y, v.z = (R.matrix().T @ [v.x, v.y, v.z]).tolist()
        return m

    return change


@pytest.mark.nightly
def test_an_imu_on_its_side_and_a_wrong_sign_keep_the_robot_from_standing(stack):
    d = stack()
    d.bus.change["imu"] = turned([np.pi / 2, 0.0, 0.0])
    d.run(2.5)
    assert d.states == ["WAITING"] and "against the IMU" in d.walker.health.open["start"][1]

    def negative(m):
        m = copy.deepcopy(m)
        m.wrench.force.z *= -1.0
        return m

    d.bus.change = {"wrench/l_foot": negative}
    d.run(0.5)
    assert d.states == ["WAITING"] and "l_foot carries -" in d.walker.health.open["start"][1]
    d.bus.change.clear()
    d.stand()


@pytest.mark.nightly
@pytest.mark.parametrize("what", ["swapped", "turned"])
def test_swapped_feet_and_an_imu_turned_about_the_vertical_end_the_first_shift_of_the_weight(stack, what):
    """Who stands evenly cannot see either; the first step would be a fall."""
    d = stack()
    if what == "swapped":
        listeners = d.bus.listeners
        left, right = listeners["wrench/l_foot"], listeners["wrench/r_foot"]

        def renamed(listeners, frame):  # each sensor's driver names the foot that it believes to be at
            def take(message):
                message = copy.deepcopy(message)
                message.header.frame_id = frame
                for listener in listeners:
                    listener(message)

            return [take]

        listeners["wrench/l_foot"] = renamed(right, "r_foot_sole")
        listeners["wrench/r_foot"] = renamed(left, "l_foot_sole")
    else:
        d.bus.change["imu"] = turned([0.0, 0.0, np.pi / 2])
    d.stand()
    go = walking(d)
    assert d.run(3.0, lambda: d.state == "STOP", go) and d.run(2.0, lambda: d.state == "STAND", go)
    d.run(0.2, None, go)
    assert d.states == ["WAITING", "STAND", "WALK", "STOP", "STAND"] and d.walker.report.steps == 0
    assert ("swapped" if what == "swapped" else "rotated") in d.walker.health.open["shift"][1]
    assert not d.call("stand").success and d.call("reset").success


@pytest.mark.nightly
def test_joints_have_one_owner_and_stops_may_come_at_any_time(stack):
    d = stack(walkers=2)
    later = d.bus.publishers["joint_commands"].pop()  # as if the second were not there yet
    d.stand()
    d.bus.publishers["joint_commands"].append(later)
    second = d.walkers[1]
    second.restart()
    d.run(1.5)
    assert d.walker.running and not second.running, "the second refuses, the first goes on"
    assert "another publisher" in second.health.open["owner"][1] and "owner" in d.open
    for _ in range(2):
        assert d.call("emergency_stop").success
    d.run(0.1)
    assert d.walker.health.worst()[0] and d.state != "FALLEN"


def joystick(d):
    """A function of whether the button is held, and of another one that stops, to a function that says so."""

    def joy(held, stop=0):
        axes, buttons = [0.5, 1.0, 0.0, -1.0], [0, stop, 0, 0, held]
        return lambda: d.bus.publish("joy", Joy(axes=axes, buttons=buttons))

    return joy


def test_a_gamepad_asks_for_velocities_while_its_button_is_held(stack):
    d = stack()
    d.bus.publish("joy", Joy(axes=[0.0], buttons=[0]))
    assert "joy has 1 axes" in d.walker.health.open["joy"][1]
    joy = joystick(d)
    joy(0)()
    assert not d.walker.velocity.velocity.any(), "the button is not held"
    joy(1)()
    np.testing.assert_allclose(d.walker.velocity.velocity, [0.3, 0.05, -0.3])
    joy(0)()
    assert not d.walker.velocity.velocity.any() and "joy" not in d.open, "let go"
    joy(1, stop=1)()
    assert "emergency stop" in d.walker.stopped


@pytest.mark.nightly
def test_a_gamepad_moves_the_robot_while_its_button_is_held(stack):
    d = stack()
    d.stand()
    joy = joystick(d)
    assert d.run(2.0, lambda: d.state == "WALK", joy(1))
    joy(1, stop=1)()
    assert "emergency stop" in d.walker.stopped
    d.run(1.5, lambda: d.state == "STAND", joy(1, stop=1))
    assert d.state in ("STOP", "STAND")


@pytest.mark.nightly
def test_a_joint_that_does_not_follow_ends_the_walk_until_it_is_told_to_begin_anew(stack):
    d = stack()
    d.stand()
    until_steps(d, 2, walking(d))
    assert 0 < float(d.walker.values()["following_error_rad"]) < 0.05, "a walk is far from a fault"
    slip, power = [0.0], Publisher(d.bus, d.simulator, "hardware_state")

    def slips(m):
        slip[0] = min(slip[0] + 0.004, 0.25)  # 1 rad/s: no leap
        m = copy.deepcopy(m)
        m.position[list(m.name).index("l_elbow_flexion")] += slip[0]
        return m

    power.publish(String(data="MONITOR: asked for"))
    d.bus.change["joint_states"] = slips
    assert not d.run(0.4, lambda: "joints" in d.open, walking(d)), "without power it is elsewhere by intent"
    slip[0] = 0.0
    power.publish(String(data="RUN"))
    assert d.run(0.5, lambda: "joints" in d.open, walking(d)), d.open
    assert 0.15 < slip[0] < 0.25, "as soon as it was beyond the limit for 50 ms"
    text = d.walker.health.open["joints"][1]
    assert "l_elbow_flexion: following error" in text and "(limit 0.150): stopped; ~/resync" in text
    assert d.run(4.0, lambda: d.state == "STAND", walking(d)), "it stops on its feet"
    refused = d.call("stand")
    assert not refused.success and "l_elbow_flexion: following error" in refused.message
    del d.bus.change["joint_states"]
    waits = Publisher(d.bus, d.simulator, "joint_commands")
    assert d.call("reset").success
    d.run(0.1)
    assert d.run(8.0, lambda: d.state == "STAND"), "also beside a node of another name that waits for the commands"
    d.bus.publishers["joint_commands"].remove(waits)
    until_steps(d, 2, walking(d))
    assert not d.open & {"joints", "fallen"}
