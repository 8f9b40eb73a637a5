"""From end to end: a robot's state to the command that answers it, a command in ROS to its frame at the robot."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from evidence.benchmarks import Row, row, row_of
from evidence.benchmarks.drivers.g1_robot import JOINTS, PERIOD, RobotProcess, write_files
from evidence.benchmarks.drivers.scheduling import scheduled
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorSpec, ActuatorState, BusSpec, HardwareError
from humanoid_control.hardware.unitree.link import UnitreeTransport
from humanoid_control.hardware.unitree.models import G1

RATE, PATIENCE = 500.0, 60.0  # [Hz], [s]
MARK, MARKS = 0.01, 1000  # [N m] by which the torque of the first motor tells one command from the next; of them
TICKS = os.sysconf("SC_CLK_TCK")


def own_domain() -> int:
    """Domain of DDS for the robot and the driver, hardly anybody else's."""
    return 60 + os.getpid() % 40


def robot_round_trip(seconds: float = 10.0) -> list[Row]:
    """Rows robot_round_trip: from a state of a robot in another process to the command that answers it there [us].

    Its processor time [us] a round is that of the driver's end: read, pack, write.
    """
    domain = own_domain()
    actuators = tuple(ActuatorSpec(m.name, m.id) for m in G1.motors)
    options = {"interface": "lo", "domain": domain, "model": "g1"}
    bus, n = UnitreeTransport(BusSpec("body", actuators, PERIOD, options)), len(actuators)
    state, command = ActuatorState(n), ActuatorCommand(n)
    with RobotProcess(domain) as robot, scheduled():
        bus.open()
        try:
            for _ in range(500):
                bus.read(state, time.monotonic() + 0.01)
                bus.power(True)
                bus.write(command)
            robot.report()
            begin, end, rounds = time.process_time(), time.monotonic() + seconds, 0
            while time.monotonic() < end:
                bus.read(state, time.monotonic() + 0.01)
                bus.write(command)
                rounds += 1
            used = time.process_time() - begin
            told = robot.report()
        finally:
            bus.close()
    after = np.searchsorted(told["times"], told["states"], side="right")
    known = after < len(told["times"])
    waits = 1e-3 * (told["times"][after[known]] - told["states"][known])
    waits = waits[waits < 1e6 * PERIOD]  # answers to this state, not to the next one
    return [
        row_of("robot_round_trip", "us", waits, aim="<= 200, 300 us"),
        row("robot_round_trip processor", "us", 1e6 * used / rounds, 1e6 * used / rounds, rounds, aim="<= 100 us"),
    ]


class Desk:
    """A robot_driver process on a G1, and this process as the one that commands it."""

    def __init__(self, folder: Path, domain: int) -> None:
        """Start the driver."""
        import rclpy
        from rclpy.executors import SingleThreadedExecutor
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Bool, String
        from std_srvs.srv import SetBool, Trigger

        from humanoid_control.nodes.base.messages import LATCHED, STREAM_OUT

        self._rclpy, self._Bool, self._SetBool, self._Trigger = rclpy, Bool, SetBool, Trigger
        urdf, file = write_files(folder, domain)
        place = f"/bench_driver_{os.getpid()}"  # no driver of a real robot must hear its emergency stop
        given = {"robot": urdf, "hardware": file, "late_tolerance": 100.0, "missed_warn": 100.0}
        words = [w for k, v in given.items() for w in ("-p", f"{k}:={v}")]
        command = [sys.executable, "-m", "humanoid_control.nodes.robot_driver", "--ros-args", "-r", f"__ns:={place}"]
        self.log = (folder / "driver.log").open("w+")
        self.process = subprocess.Popen([*command, *words], stdout=self.log, stderr=subprocess.STDOUT)
        rclpy.init()
        self.node = rclpy.create_node("desk", namespace=place)
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.said = ""
        self.node.create_subscription(String, "hardware_state", self._hear, LATCHED)
        self._commands = self.node.create_publisher(JointState, "joint_commands", STREAM_OUT)
        self._stop = self.node.create_publisher(Bool, "emergency_stop", LATCHED)
        self._clients: dict[str, Any] = {
            "enable": self.node.create_client(SetBool, "robot_driver/enable"),
            "clear_faults": self.node.create_client(Trigger, "robot_driver/clear_faults"),
        }
        self._message = JointState(name=list(JOINTS), position=[0.0] * len(JOINTS), effort=[0.0] * len(JOINTS))

    def wait(self) -> None:
        """Wait until the driver measures and hears this process."""
        self.until(lambda: self.said.startswith("MONITOR"))
        self.until(lambda: self._commands.get_subscription_count() > 0 and self._stop.get_subscription_count() > 0)

    def _hear(self, message: Any) -> None:
        self.said = message.data

    def until(self, done: Callable[[], bool], meanwhile: Callable[[], Any] = lambda: None) -> None:
        """Listen until something is the case.

        Raises:
            HardwareError: it does not come to it.
        """
        end = time.monotonic() + PATIENCE
        while not done():
            meanwhile()
            self.executor.spin_once(timeout_sec=0.005)
            if time.monotonic() > end or self.process.poll() is not None:
                self.log.seek(0)
                last = (self.log.read().strip().splitlines() or ["no output"])[-1]
                raise HardwareError(f"the driver does not continue ({self.said or 'no state'}): {last}")

    def ask(self, service: str, on: bool | None = None) -> bool:
        """Call a service until it answers; whether it was done."""
        client = self._clients[service]
        self.until(client.service_is_ready)
        request = self._Trigger.Request() if on is None else self._SetBool.Request(data=on)
        answer: Any = client.call_async(request)
        self.until(answer.done)
        return bool(answer.result().success)

    def power(self) -> None:
        """Give power and wait until the driver holds."""
        self.until(lambda: self.said.startswith("MONITOR"))
        self.until(lambda: self.ask("enable", True))
        self.until(lambda: self.said.startswith("HOLD"))

    def command(self, mark: int = 0) -> int:
        """Publish a command with a mark; its time [ns]."""
        self._message.header.stamp = self.node.get_clock().now().to_msg()
        self._message.effort[0] = MARK * mark
        now = time.time_ns()
        self._commands.publish(self._message)
        return now

    def emergency_stop(self, on: bool) -> int:
        """Publish on the topic of the emergency stop; the time [ns]."""
        message, now = self._Bool(data=on), time.time_ns()
        self._stop.publish(message)
        return now

    def close(self) -> None:
        """End the driver, and leave ROS."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.executor.shutdown()
        self.node.destroy_node()
        self._rclpy.try_shutdown()


@contextlib.contextmanager
def desk() -> Iterator[tuple[Desk, RobotProcess]]:
    """A driver at work, and the robot that it drives."""
    from humanoid_control.nodes.base.ros_env import choose_discovery

    choose_discovery(os.environ)
    domain = own_domain()
    with tempfile.TemporaryDirectory() as folder, RobotProcess(domain) as robot:
        d = Desk(Path(folder), domain)
        try:
            d.wait()
            yield d, robot
        finally:
            d.close()


def processor_time(pid: int) -> float:
    """Processor time that a process has used [s]."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS


def command_to_bus(seconds: float = 10.0) -> list[Row]:
    """Rows command_to_bus [us] and driver_cpu [%]: a G1 driven at 500 Hz, commanded some 500 times a second.

    From the publication of a command to the arrival at the robot of the first frame that it made, each a process; in
    cycle mode, so that a command waits for the cycle. All processor time of the driver's process: its threads, both
    middlewares, joint_states, diagnostics.
    """
    rng, published = np.random.default_rng(0), {}
    with desk() as (d, robot):
        d.power()
        d.until(lambda: d.said.startswith("RUN"), d.command)
        robot.report()
        with scheduled():
            begin, used = time.monotonic(), processor_time(d.process.pid)
            k = 0
            while (now := time.monotonic()) - begin < seconds:
                published[k] = d.command(k % MARKS)
                k += 1
                time.sleep(max(0.0, now + rng.uniform(0.001, 0.003) - time.monotonic()))
            used, took = processor_time(d.process.pid) - used, time.monotonic() - begin
        told = robot.report()
    waits = arrivals(published, told["times"], told["tau"])
    share, often = 100.0 * used / took, f"{k / took:.0f} commands/s"
    most = 1e6 / RATE + 300
    return [
        row_of("command_to_bus", "us", waits, aim=f"p99 <= {most:.0f} us", beside=f"cycle of {1e6 / RATE:.0f} us"),
        row("driver_cpu", "%", share, share, round(took * RATE), aim="<= 15 % of a core", beside=often),
    ]


def arrivals(published: dict[int, int], times: np.ndarray, tau: np.ndarray) -> list[float]:
    """Time from the publication of each command to its first frame [us]; commands without a frame are left out.

    Args:
        published: time of each command [ns]. times: (m,) of frames [ns]. tau: (m,) their marks [N m].
    """
    marks = np.round(tau / MARK).astype(int)
    first = np.flatnonzero(np.diff(marks, prepend=-1))
    out, k = [], 0
    for i in first.tolist():
        later = (marks[i] - k) % MARKS  # the marks begin again
        if k + later in published and times[i] >= published[k + later]:
            k += later
            out.append(1e-3 * (times[i] - published[k]))
    return out


def emergency_stop(trials: int = 10) -> list[Row]:
    """Row estop_ms: from a message on the topic of the emergency stop to the damping frame at the robot [ms]."""
    waits = []
    with desk() as (d, robot), scheduled():
        for _ in range(trials):
            d.power()
            robot.report()
            said = d.emergency_stop(True)
            d.until(lambda: d.said.startswith("ESTOP"))
            told = robot.report()
            damped = told["times"][(told["times"] > said) & (told["kp"] == 0.0) & (told["mode"] > 0)]
            if not len(damped):
                raise HardwareError("the robot received no damping frame")
            waits.append(1e-6 * (damped[0] - said))
            d.until(lambda: not d.emergency_stop(False) or d.ask("clear_faults"))
    most = 2e3 / RATE + 1
    return [row_of("estop_ms", "ms", waits, aim=f"p99 <= {most:g} ms", beside="2 cycles and 1 ms")]
