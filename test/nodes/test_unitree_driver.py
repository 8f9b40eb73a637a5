"""The driver on a robot of Unitree's: Fast DDS towards ROS and Cyclone DDS towards the robot, in one process."""

import csv
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")
pytest.importorskip("cyclonedds", reason="needs cyclonedds, the DDS binding of Unitree's robots")

from sensor_msgs.msg import Imu, JointState

from humanoid_control.hardware.unitree.models import G1
from test.hardware.unitree.conftest import DOMAIN, RobotProcess, hurry, vendor_simulator, wait_for
from test.nodes.test_robot_driver import Desk

__all__ = ["vendor_simulator"]
pytestmark = [pytest.mark.ros, pytest.mark.patient]
JOINTS = [f"{m.name}_joint" for m in G1.motors]
INERTIA = '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'
FILE = """schema: humanoid_hardware/1
robot: g1.urdf
rate: 50
command_timeout: 0.5
soft_start: 1
guardian: {guardian}
defaults: {{velocity: 1.0, acceleration: 40, effort: 1.0, following_error: 0.4}}
buses:
  body: {{transport: unitree, interface: lo, domain: {domain}, model: g1, simulated: {simulated}}}
joints:
"""


def star():
    """A robot with the joints of a G1, each with a link of its own on the base."""
    text = '<robot name="g1"><link name="pelvis"/>'
    for name in JOINTS:
        text += f"""<link name="{name}_link"><inertial><mass value="1"/>{INERTIA}</inertial></link>
<joint name="{name}" type="revolute"><parent link="pelvis"/><child link="{name}_link"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="4" effort="50"/></joint>"""
    return text + "</robot>"


def write_files(folder, urdf, guardian="never", simulated="false"):
    """URDF and hardware file of a G1; the path of each."""
    (folder / "g1.urdf").write_text(urdf)
    text = FILE.format(guardian=guardian, domain=DOMAIN, simulated=simulated)
    for name, m in zip(JOINTS, G1.motors, strict=True):
        text += f"  {name}: {{bus: body, id: {m.id}, kp: {m.kp:g}, kd: {m.kd:g}}}\n"
    (folder / "g1.hardware.yaml").write_text(text)
    return folder / "g1.urdf", folder / "g1.hardware.yaml"


@pytest.fixture
def unitree():
    robot = RobotProcess()
    yield robot
    robot.close()


def test_both_middlewares_drive_a_robot_from_one_process(graph, tmp_path, unitree):
    urdf, file = write_files(tmp_path, star())
    desk = Desk(graph, f"hardware:={file}", "rate:=50.0", robot=str(urdf))
    imu = graph.listen(Imu, "imu")
    assert desk.said[-1].data == "MONITOR" and set(desk.q) == set(JOINTS)
    assert unitree.report()["received"] == 0, "nothing is sent without power"
    desk.run(left_elbow_joint=0.5, right_knee_joint=0.3)
    send = desk.command(left_elbow_joint=0.5, right_knee_joint=0.3)
    graph.until(
        lambda: abs(desk.q["left_elbow_joint"] - 0.5) < 0.01 and abs(desk.q["right_knee_joint"] - 0.3) < 0.01,
        "both joints there",
        meanwhile=send,
    )
    report = unitree.report()
    assert report["wrong"] == 0 < report["received"] and report["seen"] == [[5, [1] * 29 + [0] * 6]]
    assert report["last"]["kp"][:29] == [m.kp for m in G1.motors]
    assert imu and imu[-1].header.frame_id == "pelvis" and abs(imu[-1].linear_acceleration.z - 9.8125) < 1e-6

    unitree.tell("rival")  # another program begins to command
    desk.until("FAULT: bus body: another program commands this robot: 1 writer on rt/lowcmd", send)
    assert wait_for(lambda: unitree.report()["last"]["kp"] == [0.0] * 35), "the motors damp"
    unitree.tell("forget")
    graph.until(lambda: desk.ask("clear_faults")[0], "cleared")
    desk.until("MONITOR")
    assert wait_for(lambda: unitree.report()["seen"][-1] == [5, [0] * 35]), "and are off"

    unitree.tell(faults={"3": 0x200})
    graph.until(lambda: "left_knee_joint drive: winding too hot" in desk.ask("enable", True)[1], "a refusal")
    assert graph.stop(desk.process)[0] == 0


@pytest.mark.nightly
def test_gains_of_commands_go_to_the_motors_as_they_are(graph, tmp_path, unitree):
    urdf, file = write_files(tmp_path, star())
    desk = Desk(graph, f"hardware:={file}", "rate:=50.0", robot=str(urdf))
    gains = graph.publisher(JointState, "joint_gains")
    q = dict.fromkeys(JOINTS, 0.0)

    def send(kp=33.0, kd=1.25):
        stamp = graph.node.get_clock().now().to_msg()
        m = JointState(name=JOINTS, position=[kp] * len(JOINTS), velocity=[kd] * len(JOINTS))
        m.header.stamp = stamp
        gains.publish(m)
        desk.command(stamp, **q)()

    assert desk.ask("enable", True) == (True, "")
    desk.until("HOLD").until("RUN", send)
    graph.until(lambda: unitree.report()["last"]["kp"][:29] == [33.0] * 29, "gains at the motors", meanwhile=send)
    assert unitree.report()["last"]["kd"][:29] == [1.25] * 29
    assert int(graph.diagnostics("robot_driver", meanwhile=send)["joints_with_gains"]) == 29
    graph.until(lambda: unitree.report()["last"]["kp"][:29] < [20.0] * 29, "stiffness to fade in the silence")


# -------- The vendor's simulator


def retargeted_dance(folder, urdf):
    """The built-in dance for a robot: names, times (n,), positions (n, joints)."""
    for words in (("robots", "map", urdf), ("retarget", "dance", "--robot", urdf, "-o", folder / "dance.csv")):
        extra = ("--acceleration", "10", "--speed", "0.25") if words[0] == "retarget" else ()
        subprocess.run([sys.executable, "-m", "humanoid_control.cli.main", *map(str, words), *extra], check=True)
    with (folder / "dance.csv").open() as stream:
        names, *rows = csv.reader(stream)
    values = np.array(rows, dtype=float)
    return names[1:], values[:, 0], values[:, 1:]


@pytest.mark.slow
def test_the_vendors_g1_dances(graph, tmp_path, vendor_simulator):
    """Enable, blend, twenty seconds of the dance at a quarter of its pace, stop: within 0.2 rad of what was
    applied, with the vendor's gains."""
    from test.hardware.unitree.conftest import SIMULATOR
    from test.hardware.unitree.mjcf import urdf_of

    model = f"{SIMULATOR}/unitree_robots/g1/g1_29dof.xml"
    urdf, file = write_files(tmp_path, urdf_of(model, "g1", "pelvis"), "auto", "true")
    names, times, positions = retargeted_dance(tmp_path, urdf)
    desk = Desk(graph, f"hardware:={file}", "rate:=250.0", robot=str(urdf))
    hurry(desk.process)
    now = {"t": 0.0}

    def send():
        row = positions[min(int(np.searchsorted(times, now["t"])), len(times) - 1)]
        desk.command(**dict(zip(names, row.tolist(), strict=True)))()

    graph.until(lambda: desk.ask("enable", True)[0], "at rest, and enabled")
    desk.until("RUN", send)
    begin, first = time.monotonic(), len(desk.states)

    def dance():
        now["t"] = time.monotonic() - begin
        send()

    graph.until(lambda: now["t"] > 20.0, "twenty seconds", timeout=40.0, meanwhile=dance)
    assert desk.said[-1].data.startswith("RUN"), desk.said[-1].data
    error = following_error(desk, first)
    print(f"following error [rad]: largest {error.max():.3f}, 99 % {np.percentile(error, 99):.3f}")
    assert error.max() < 0.2 and graph.diagnostics("robot_driver", dance)["guardian"] == "alive"
    moved = np.ptp([m.position for m in desk.states[first:]], axis=0)
    assert (moved > 0.3).sum() >= 5, "it has danced"
    assert desk.ask("enable", False) == (True, "")
    desk.until("MONITOR", send)


def following_error(desk, first):
    """Differences between what was applied last and what was measured then [rad]."""
    applied = {n: k for k, n in enumerate(desk.applied[-1].name)}
    order = [applied[n] for n in desk.states[-1].name]
    stamps = np.array([m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in desk.applied])
    q = np.array([m.position for m in desk.applied])[:, order]
    rows = desk.states[first:]
    when = np.array([m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in rows])
    k = np.clip(np.searchsorted(stamps, when) - 1, 0, None)
    return np.abs(q[k] - np.array([m.position for m in rows]))
