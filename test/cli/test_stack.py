"""Whole stacks under supervision: they dance, survive a killed node, stop quickly, and leave nothing behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from humanoid_control.evaluation.bag import BagReader
from humanoid_control.robots import load_robot
from test.ending import end
from test.places import port
from test.robots_under_test import nightly

pytestmark = [pytest.mark.ros, pytest.mark.stack, pytest.mark.slow]
NODES = ("viewer", "simulator", "state_estimator", "whole_body_ik", "trajectory_streamer")


def wait_for(condition, what, timeout=120.0):
    end = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.05)
    return value


def nodes_of(home) -> dict[str, int]:
    """Process ids of the node processes whose parameters lie below a home, by node."""
    found = {}
    for proc in Path("/proc").iterdir():
        if proc.name.isdigit():
            try:
                words = (proc / "cmdline").read_text().replace("\0", " ").split()  # a fork's are one
            except OSError:
                continue
            if any(str(home) in w for w in words):
                found.update({n: int(proc.name) for n in NODES if f"humanoid_control.nodes.{n}" in words})
                if "record" in words:
                    found["record"] = int(proc.name)
    return found


class Ear:
    """Hears the joint commands of a stack while it runs."""

    def __init__(self, humanoid) -> None:
        from sensor_msgs.msg import JointState

        self.context = rclpy.Context()
        rclpy.init(
            context=self.context,
            domain_id=int(humanoid.env["ROS_DOMAIN_ID"]),
            signal_handler_options=SignalHandlerOptions.NO,
        )
        self.node = rclpy.create_node("ear", context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.times: list[int] = []
        self.node.create_subscription(JointState, "joint_commands", self._take, 50)

    def _take(self, m) -> None:
        self.times.append(m.header.stamp.sec * 10**9 + m.header.stamp.nanosec)

    def wait_for(self, seconds: float, after: int = 0, timeout: float = 60.0) -> None:
        """Until commands were heard for some time [s], of those later than a moment [ns]."""
        end = time.monotonic() + timeout
        while not (late := [ns for ns in self.times if ns > after]) or late[-1] - late[0] < 1e9 * seconds:
            assert time.monotonic() < end, f"{seconds} s of commands: only {len(late)} came"
            self.executor.spin_once(timeout_sec=0.05)

    def close(self) -> None:
        end(self.executor.shutdown, self.node.destroy_node, self.context.shutdown)


@pytest.fixture
def ear(humanoid, monkeypatch):
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    monkeypatch.setenv("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")  # no shared memory that a later test could find
    ear = Ear(humanoid)
    yield ear
    ear.close()


def check_report(report, robot):
    assert report["good"] and report["limits"]["kept"]
    assert report["limits"]["not_a_number"] == 0
    assert report["self_collision"]["frames_in_collision"] == 0
    assert set(report["nodes"]) >= set(NODES) - {"viewer"}
    assert 0 < report["error_of_command"]["mean"]["mean"] < 0.3
    # 250, commands with one more for new targets, where nothing else runs; how much of it a busy machine manages is
    # for `humanoid bench stack` to say.
    assert 50 < report["topics_hz"]["/joint_states"] < 270
    assert 50 < report["topics_hz"]["/joint_commands"] < 400
    assert report["robot"] == robot


# Half of the usual rates: on two slow cores nodes with real-time priority leave the recorder no time.
SLOWER = [w for n in ("simulator", "state_estimator", "whole_body_ik") for w in ("--set", f"{n}.rate=250")]

# A third of them, where it is not the motion that is looked at.
SLOW = [w.replace("=250", "=100") for w in SLOWER]


def calm(*nodes):
    """Settings without which nodes at real-time priority would leave nothing to the tests that run beside this one."""
    return [w for n in nodes for w in ("--set", f"{n}.priority=0")]


@pytest.mark.nightly
@pytest.mark.parametrize("robot", ["lola"])
def test_the_demo_dances_and_reports(humanoid, robot):
    with humanoid.shared_memory() as memory:
        result = humanoid.fresh("demo", "--robot", robot, "--seconds", 8, "--port", port(1), "--json", *SLOWER)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr
    check_report(json.loads(result.stdout), robot)
    assert not nodes_of(humanoid.home), "no process may stay"
    assert not memory.left(), "no shared memory may stay"


def test_a_real_dance_with_progress_and_tables(humanoid, mocap):
    clip = mocap("dance_markers/dance1.trc")
    result = humanoid.fresh("demo", "--robot", "wabian2", "--motion", clip, "--seconds", 8, "--port", port(2), *SLOWER)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr
    page = result.stdout.find(f"viewer: http://localhost:{port(2)}/?token=")
    assert 0 < page < result.stdout.find("dance: 20 %"), "the address comes once the page answers"
    assert result.stdout.find("moving after") > 0
    assert result.stdout.find("reading the recording") < result.stdout.find("solving the clip again without each limit")
    for words in ("dance: 100 %", "error of each link", "limits: kept", "self-collision: 0 of", "humanoid replay"):
        assert words in result.stdout
    run = humanoid.home / "runs" / "latest"
    assert {f"{n}.log" for n in NODES} <= {p.name for p in run.iterdir()}

    bag = BagReader(run / "recording")
    robot = load_robot("wabian2", "fixed")
    commands = [m for _, _, m in bag.messages({"/joint_commands"})]
    assert list(commands[0].name) == list(robot.joint_names)
    p = np.array([m.position for m in commands])
    assert (p >= robot.lower - 1e-9).all() and (p <= robot.upper + 1e-9).all()
    assert np.ptp(p, axis=0).max() > 0.2, "it must have danced"
    assert {"/targets", "/dancer", "/joint_states", "/robot_description", "/diagnostics"} <= set(bag.topics)
    assert bag.latched("/robot_description") and not bag.latched("/targets")
    bag.close()

    recorder = humanoid.start("record", "-o", "copy", "--topics", "joint_commands")
    wait_for(lambda: "READY" in Path(recorder.log_path).read_text(), "the recorder")
    played = humanoid.fresh("replay", run / "recording", "--speed", 4, "--topics", "joint_commands")
    assert played.returncode == 0
    time.sleep(0.5)
    recorder.send_signal(signal.SIGINT)
    assert recorder.wait(60) == 0
    copy = BagReader(humanoid.folder / "copy")
    copied = [data for _, _, data in copy.raw()]
    original = [data for _, _, data in BagReader(run / "recording").raw({"/joint_commands"})]
    assert set(copied) <= set(original), "replay publishes the recorded bytes"
    assert len(copied) > 0.5 * len(original)


@pytest.mark.nightly
@pytest.mark.patient
def test_a_killed_node_is_restarted_and_the_robot_does_not_jump(humanoid, ear):
    settings = ("--set", f"viewer.port={port(3)}", *SLOW, *calm(*NODES[1:]))
    up = humanoid.start("up", "imitation", "--robot", "wabian2", "--record", *settings)
    wait_for(lambda: "running;" in Path(up.log_path).read_text(), "the stack")
    ear.wait_for(1.5)
    pid = nodes_of(humanoid.home)["whole_body_ik"]
    os.kill(pid, signal.SIGKILL)
    killed = time.time_ns()
    wait_for(lambda: nodes_of(humanoid.home).get("whole_body_ik") not in (None, pid), "a new process")
    assert "whole_body_ik: ended with code -9: restarted (1 of 3)" in Path(up.log_path).read_text()
    ear.wait_for(1.5, after=killed)
    up.send_signal(signal.SIGINT)
    assert up.wait(60) == 0
    robot = load_robot("wabian2", "fixed")
    bag = BagReader(humanoid.home / "runs" / "latest" / "recording")
    heard = {"/joint_commands": [], "/joint_states": []}
    for topic, _, m in bag.messages(set(heard)):
        heard[topic].append((m.header.stamp.sec * 10**9 + m.header.stamp.nanosec, np.array(m.position)))
    ns, p = (np.array(c) for c in zip(*heard["/joint_commands"], strict=True))
    t = 1e-9 * (ns - ns[0])
    gap = int(np.searchsorted(ns, killed)) - 1
    assert t[gap + 1] - t[gap] > 0.2, "the node was away for a while"
    state = min(heard["/joint_states"], key=lambda row: abs(row[0] - ns[gap + 1]))[1]
    assert np.abs(p[gap + 1] - state).max() < 0.08, "the first command after the restart is where the robot is"
    assert t[-1] - t[gap + 1] > 0.4, "commands go on after the restart"
    fast = np.abs(np.diff(p, axis=0)) > robot.velocity * np.diff(t)[:, None] + 1e-6
    assert not np.delete(fast, gap, axis=0).any()


@pytest.mark.nightly
@pytest.mark.patient
def test_the_direct_stack_moves_the_robot_without_the_inverse_kinematics(humanoid, ear):
    settings = ("--set", f"viewer.port={port(7)}", "--set", "trajectory_streamer.lead_in=0.5")
    settings += (*calm("simulator", "state_estimator", "trajectory_streamer"), *SLOW[:4])
    up = humanoid.start("up", "direct", "--robot", "wabian2", "--record", *settings)
    wait_for(lambda: "running;" in Path(up.log_path).read_text(), "the stack")
    ear.wait_for(3.5)
    up.send_signal(signal.SIGTERM)
    assert up.wait(60) == 0
    robot = load_robot("wabian2", "fixed")
    bag = BagReader(humanoid.home / "runs" / "latest" / "recording")
    commands = [m for _, _, m in bag.messages({"/joint_commands"})]
    states = [m for _, _, m in bag.messages({"/joint_states"})]
    p, v = np.array([m.position for m in commands]), np.array([m.velocity for m in commands])
    assert len(p) > 100 and np.ptp(p, axis=0).max() > 0.2
    assert (p >= robot.lower - 1e-9).all() and (p <= robot.upper + 1e-9).all()
    assert (np.abs(v) <= robot.velocity + 1e-6).all()
    assert np.ptp([m.position for m in states], axis=0).max() > 0.15, "the simulated robot moves"


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGHUP, marks=pytest.mark.thorough)])
def test_a_signal_stops_everything_within_three_seconds(humanoid, number):
    with humanoid.shared_memory() as memory:
        up = humanoid.start("up", "targets", "--robot", "lola", "--set", f"viewer.port={port(4)}")
        wait_for(lambda: "running;" in Path(up.log_path).read_text(), "the stack")
        assert len(nodes_of(humanoid.home)) == 4
        memory.look()
        begin = time.monotonic()
        up.send_signal(number)
        assert up.wait(60) == 0
        assert time.monotonic() - begin < 3.0
    assert not nodes_of(humanoid.home) and not memory.left()
    assert "Traceback" not in Path(up.log_path).read_text()


@pytest.mark.patient
@pytest.mark.parametrize("profile", [nightly(""), "<dds/>"], ids=["udp", "a profile of the user's, with shared memory"])
def test_a_killed_supervisor_takes_its_nodes_with_it(humanoid, profile):
    (own := humanoid.folder / "own.xml").write_text(profile)
    env = {"FASTDDS_DEFAULT_PROFILES_FILE": str(own)} if profile else {}
    args = ("up", "simulation", "--set", f"viewer.port={port(5)}", *calm("simulator", "state_estimator"))
    with humanoid.shared_memory() as memory:
        up = humanoid.start(*args, **env)
        wait_for(lambda: "running;" in Path(up.log_path).read_text(), "the stack")
        assert memory.look() or not profile, "they talk through shared memory"
        os.kill(up.pid, signal.SIGKILL)
        up.wait()
    wait_for(lambda: not nodes_of(humanoid.home), "no orphans", timeout=30)
    assert not nodes_of(humanoid.home), "and none comes back"
    wait_for(lambda: not memory.left(), "no shared memory may stay", timeout=30)


@pytest.mark.nightly
@pytest.mark.patient
def test_a_stack_does_not_outlive_the_process_that_started_it(humanoid):
    """A script that is killed takes what it started with it, but for what it started to stay."""
    command = humanoid.argv("up", "simulation", "--set", f"viewer.port={port(10)}", *calm("simulator"))
    script = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    log = humanoid.folder / "script.log"
    with log.open("w") as out:
        parent = subprocess.Popen(
            [sys.executable, "-c", script, *command], env=humanoid.env, stdout=out, stderr=out, start_new_session=True
        )
    wait_for(lambda: "running;" in log.read_text(), "the stack")
    parent.kill()
    parent.wait()
    wait_for(lambda: not nodes_of(humanoid.home), "no orphans", timeout=5)
    wait_for(lambda: "stopped in" in log.read_text(), "an orderly end", timeout=5)
    assert "the parent process has ended" in log.read_text()


@pytest.mark.nightly
@pytest.mark.patient
def test_two_parts_of_a_stack_are_the_whole_of_it(humanoid, ear):
    """As on two hosts: each starts its own nodes, and the robot dances."""
    here = ("--robot", "wabian2", "--only", "simulator,state_estimator", *SLOW[:4], *calm(*NODES[1:3]))
    there = ("--robot", "wabian2", "--except", "viewer,simulator,state_estimator", *SLOW[4:], *calm(*NODES[3:]))
    ups = [humanoid.start("up", "imitation", *words) for words in (here, there)]
    for up, names in zip(ups, (NODES[1:3], NODES[3:]), strict=True):
        wait_for(lambda up=up: "running;" in Path(up.log_path).read_text(), "a part")
        ready = [line.split(":")[0].strip() for line in Path(up.log_path).read_text().splitlines() if ": ready" in line]
        assert ready == list(names)
    ear.wait_for(0.5)
    for up in ups:
        up.send_signal(signal.SIGINT)
        assert up.wait(60) == 0


@pytest.mark.nightly
@pytest.mark.patient
def test_a_domain_without_discovery_is_said(humanoid):
    settings = (*SLOW, *calm(*NODES[1:]))
    result = humanoid(
        "demo", "--no-viewer", "--seconds", 5, *settings, ROS_AUTOMATIC_DISCOVERY_RANGE="OFF", timeout=180
    )
    assert result.returncode == 2
    last = result.stderr.strip().splitlines()[-1]
    assert "discovery does not work" in last and "humanoid doctor" in last
    assert "Traceback" not in result.stderr
    assert not nodes_of(humanoid.home)


@pytest.mark.patient
def test_a_stack_with_a_bad_clip_stops_with_one_line(humanoid):
    settings = ("--set", "trajectory_streamer.clip=nowhere.trc", "--set", f"viewer.port={port(6)}")
    result = humanoid("up", "direct", *settings, *calm("simulator", "state_estimator"))
    assert result.returncode == 2
    assert "nowhere.trc" in result.stderr.strip().splitlines()[-1]
    assert not nodes_of(humanoid.home)
