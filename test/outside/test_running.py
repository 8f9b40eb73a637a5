"""Faults that show only in nodes that run, or in a robot that walks."""

import re

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

import pinocchio as pin
from geometry_msgs.msg import Twist, WrenchStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu
from std_msgs.msg import String

from evidence.studies.walking.trial import WalkConditions, walk
from humanoid_control.nodes.base.messages import LATCHED
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.walking import Walker

pytestmark = [pytest.mark.ros, pytest.mark.patient]
SIMULATOR = ("robot:=lola", "base:=floating", "rate:=250.0", "sensor_every:=1", "publish_tf:=false", "stamp:=sim",
             "real_time_factor:=0.5")  # fmt: skip
# A busy machine stops a process for some time now and then: that is not the subject here.
WALKER = ("robot:=lola", "sensor_late:=0.3", "sensor_lost:=0.8", "sensor_off:=2.0")


def fault(name, right):
    return pytest.mark.fault(name, right)


@fault("B10", "the robot walks, or /diagnostics says that cmd_vel has a publisher of TwistStamped")
def test_publishers_of_another_type_are_named(graph, script, result):
    states = graph.listen(String, "walking/state", LATCHED)
    graph.start("simulator", *SIMULATOR)
    graph.start("walker", *WALKER)
    graph.until(lambda: states and states[-1].data == "STAND", "the robot to stand")
    stamped, plain = script("twist_pub.py", "stamped", "12"), script("twist_pub.py", "plain", "12")
    moved = [float(re.search(r"moved (\S+)", out)[1]) for out in (stamped, plain)]
    named = "geometry_msgs/msg/TwistStamped" in stamped
    result(f"stamped: {moved[0]:.2f} m, {'named in' if named else 'not in'} /diagnostics; plain: {moved[1]:.2f} m")
    assert moved[0] > 0.5 or named
    assert moved[1] > 0.5, "the control walks"


def stands(graph, node, words, rounds=3):
    """Ask for 0.3 m/s while a sensor is spoilt: (what diagnostics say, greatest tilt [deg], fallen or not)."""
    truth = graph.listen(Odometry, "ground_truth/odometry")
    states = graph.listen(String, "walking/state", LATCHED)
    publisher = graph.publisher(Twist, "cmd_vel")
    command = Twist()
    command.linear.x = 0.3
    send = lambda: publisher.publish(command)  # noqa: E731
    said = graph.until_said(node, words, meanwhile=send)
    for _ in range(rounds):  # a second of wall time each, as long as nine steps
        graph.until(lambda: len(truth) > 0, "the simulator", meanwhile=send)
        count = len(truth) + 250
        graph.until(lambda count=count: len(truth) >= count, "the simulator", meanwhile=send)
    return said["message"], max(map(tilt, truth)), any(m.data == "FALLEN" for m in states)


def tilt(m):
    """Angle [deg] of the root from upright."""
    o = m.pose.pose.orientation
    up = pin.Quaternion(o.w, o.x, o.y, o.z).normalized().matrix()[2, 2]
    return float(np.degrees(np.arccos(np.clip(up, -1, 1))))


@fault("B36a", "an orientation with covariance -1 is refused with that reason; nothing falls")
def test_an_imu_without_orientation(graph, script, result):
    out = script("sensors.py")
    refused = out.count("taken: False")
    pass_on = graph.node.create_publisher(Imu, "imu", 5)

    def spoil(m):
        m.orientation.x = m.orientation.y = m.orientation.z = 0.0
        m.orientation.w = 1.0
        m.orientation_covariance[0] = -1.0
        pass_on.publish(m)

    graph.node.create_subscription(Imu, "imu_true", spoil, 5)
    graph.start("simulator", *SIMULATOR, args=("-r", "imu:=imu_true"))
    graph.start("walker", *WALKER)
    message, most, fell = stands(graph, "walker", "covariance")
    result(
        f"{refused} of 4 messages refused; node: {message[:120]}; tilt {most:.1f} deg, {'falls' if fell else 'stands'}"
    )
    assert refused == 4 and "reversed names -> taken: True right order: True" in out
    assert not fell and most < 5.0


@fault("B36c", "a wrench in another frame is transformed or refused by that frame; nothing falls")
def test_a_wrench_in_another_frame(graph, script, result):
    taken = dict(re.findall(r"^'(\w*)' -> (True|False)", script("ftframe.py"), re.MULTILINE))
    pass_on = {s: graph.node.create_publisher(WrenchStamped, f"wrench/{s}_foot", 5) for s in "lr"}

    def spoil(m, side):
        m.header.frame_id = "sensor_turned"
        f, t = m.wrench.force, m.wrench.torque
        f.x, f.y, t.x, t.y = -f.x, -f.y, -t.x, -t.y
        pass_on[side].publish(m)

    for s in "lr":
        graph.node.create_subscription(WrenchStamped, f"wrench/{s}_true", lambda m, s=s: spoil(m, s), 5)
    renamed = [a for s in "lr" for a in ("-r", f"wrench/{s}_foot:=wrench/{s}_true")]
    graph.start("simulator", *SIMULATOR, args=tuple(renamed))
    graph.start("walker", *WALKER)
    message, most, fell = stands(graph, "walker", "sensor_turned")
    foreign = [taken[f] for f in ("l_ft_sensor_upside_down", "odom", "r_foot")]
    result(
        f"foreign frames taken: {foreign}; node: {message[:120]}; tilt {most:.1f} deg, {'falls' if fell else 'stands'}"
    )
    assert foreign == ["False"] * 3 and taken["l_foot"] == taken[""] == "True"
    assert not fell and most < 5.0


@fault("B44", "1.0 rad/s throughout, never above its limit of 10 rad/s")
def test_an_encoder_that_wraps(graph, folder, script, result):
    found = {}
    for mode in ("straight", "wrap"):  # each begins at zero, so each gets an estimator of its own
        node = graph.start("state_estimator", f"robot:={folder / 'turntable.urdf'}", "base:=fixed")
        out = script("wrap_node.py", mode)
        graph.stop(node)
        found[mode] = [float(x) for x in re.search(r"velocity (\S+) \.\. (\S+)", out).groups()]
    result(*[f"{mode}: {low:.1f} to {high:.1f} rad/s;" for mode, (low, high) in found.items()])
    assert all(low > -2.0 and 0.5 < high < 2.0 for low, high in found.values())


@pytest.mark.retry("a starved estimator sees gaps between samples, and in a gap joints may move")
@fault("B45", "one sample of 0 m, or 0.3 m more, in all tendons: at most 1.6 rad/s and 11 deg, as the control; said")
def test_all_tendons_say_nought_once(graph, script, result):
    graph.start("state_estimator", "robot:=kengoro_upper", "source:=tendons", "mode:=absolute", "tendon_rate:=100.0")
    found = {}
    for kind in ("control", "nought", "zero", "plus30cm"):
        out = script("tendon_node.py", kind, "path")
        speed, step = re.search(r"\|velocity\| (\S+)", out)[1], re.search(r"between estimates (\S+)", out)[1]
        found[kind] = float(speed), float(step)
    result(*[f"{k}: {speed:.1f} rad/s, {step:.1f} deg;" for k, (speed, step) in found.items()])
    assert all(speed < 2.0 and step < 15.0 for speed, step in found.values())


W1 = {  # velocity [m/s, m/s, rad/s] at a time [s], and steps
    "reverses": (lambda t: (0.3 if int(t / 0.9) % 2 == 0 else -0.3, 0.0, 0.0), 30),
    "to the sides": (lambda t: (0.0, 0.25 if int(t / 0.8) % 2 == 0 else -0.25, 0.0), 30),
    "all at once": (lambda t: (0.4, 0.3, 1.5), 30),
    "100 m/s": (lambda t: (100.0, 0.0, 0.0), 15),
    "1e-4 m/s": (lambda t: (1e-4, 0.0, 0.0), 10),
}


@fault("W1", "no fall, speeds within limits: reversals, sideways, all axes at once, 100 m/s, 1e-4 m/s")
def test_sudden_changes_of_the_commanded_velocity(folder, result):
    """The programs of the folder's script."""
    found = {}
    for name, (program, steps) in W1.items():
        walker = Walker(load_robot("lola", "floating"))
        found[name] = walk(SimulationConfig("lola", "floating").build(), walker, WalkConditions(program, steps, 25.0))
    result(*[f"{n}: {o.fell or 'stands'}, {o.steps} steps, speed {o.speed_share:.2f};" for n, o in found.items()])
    assert not any(o.fell for o in found.values())
    assert all(o.command_share <= 1.0 + 1e-6 and o.speed_share < 1.1 for o in found.values())
