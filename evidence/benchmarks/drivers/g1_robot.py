"""A G1 in a process of its own: its states at 500 Hz over DDS, and a record of every command that arrives.

It is made of bytes, as the driver is, so that it needs little of the machine. Lines on standard input: `report` prints
what has been recorded and begins again; its end is the end of the process.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from evidence.benchmarks.drivers.scheduling import scheduled
from humanoid_control.hardware.transport import HardwareError
from humanoid_control.hardware.unitree.frames import crc32
from humanoid_control.hardware.unitree.layout import HEADER, family_of
from humanoid_control.hardware.unitree.models import G1

MODULE = "evidence.benchmarks.drivers.g1_robot"
PERIOD, QUEUE, MOST = 0.002, 64, 200_000  # [s]; commands that wait; commands that are recorded
JOINTS = tuple(f"{m.name}_joint" for m in G1.motors)
INERTIA = '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'
FILE = """schema: humanoid_hardware/1
robot: g1.urdf
rate: 500
command_timeout: 0.5
soft_start: 1
guardian: auto
defaults: {{velocity: 1.0, acceleration: 40, effort: 1.0, following_error: 0.4}}
buses:
  body: {{transport: unitree, interface: lo, domain: {domain}, model: g1}}
joints:
"""


def write_files(folder: Path, domain: int) -> tuple[Path, Path]:
    """URDF with the joints of a G1, each with a link of its own on the pelvis, and its hardware file."""
    text = '<robot name="g1"><link name="pelvis"/>'
    rows = FILE.format(domain=domain)
    for name, m in zip(JOINTS, G1.motors, strict=True):
        text += f"""<link name="{name}_link"><inertial><mass value="1"/>{INERTIA}</inertial></link>
<joint name="{name}" type="revolute"><parent link="pelvis"/><child link="{name}_link"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="4" effort="50"/></joint>"""
        rows += f"  {name}: {{bus: body, id: {m.id}, kp: {m.kp:g}, kd: {m.kd:g}}}\n"
    (folder / "g1.urdf").write_text(text + "</robot>")
    (folder / "g1.hardware.yaml").write_text(rows)
    return folder / "g1.urdf", folder / "g1.hardware.yaml"


class RobotProcess:
    """The robot as a child process: a context manager."""

    def __init__(self, domain: int) -> None:
        self._domain = domain

    def __enter__(self) -> RobotProcess:
        """Start it.

        Raises:
            HardwareError: it does not come up.
        """
        words = [sys.executable, "-m", MODULE, str(self._domain)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise HardwareError("the simulated G1 did not start")
        return self

    def report(self) -> dict[str, np.ndarray]:
        """Record of the commands since the last report, and the times of states: see `Robot.report`."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("report\n")
        self._process.stdin.flush()
        return {k: np.array(v) for k, v in json.loads(self._process.stdout.readline()).items()}

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class G1Robot:
    """Motors that are at once where they are told to be."""

    def __init__(self, domain: int) -> None:
        from cyclonedds.core import Policy, Qos, ReadCondition, WaitSet
        from cyclonedds.domain import DomainParticipant
        from cyclonedds.pub import DataWriter
        from cyclonedds.sub import DataReader
        from cyclonedds.topic import Topic

        from humanoid_control.hardware.unitree import dds

        family = family_of("hg")
        self._command, self._layout, self._dds = family.command, family.state, dds
        dds._join(domain, "lo")
        participant = DomainParticipant(domain)
        commands = Topic(participant, dds.COMMAND, dds.message_type(self._command.struct))
        states = Topic(participant, dds.STATE, dds.message_type(self._layout.struct))
        self._kept = (participant, commands, states)
        self._reader = DataReader(participant, commands, Qos(Policy.History.KeepLast(QUEUE)))
        self._writer = DataWriter(participant, states)
        self._waiting = WaitSet(participant)
        self._waiting.attach(ReadCondition(self._reader, dds.ANY))
        self._frame = np.zeros(self._layout.size, np.uint8)
        self._frame[1] = 1
        self._body = self._frame[HEADER:].view(np.uint32)
        self._number, self._tick = self._body.view(np.float32), 0
        self._frame[self._layout.offset("mode_machine")] = min(G1.machines)
        motors = range(len(G1.motors))
        self._q = np.array([self._layout.word(f"motor_state.{k}.q") for k in motors])
        self._q_told = np.array([self._command.word(f"motor_cmd.{k}.q") for k in motors])
        self._mode = [self._layout.offset(f"motor_state.{k}.mode") for k in motors]
        self._mode_told = [self._command.offset(f"motor_cmd.{k}.mode") for k in motors]
        for k in motors:
            self._number[self._layout.word(f"motor_state.{k}.vol")] = 50.0
        self._begin()

    def _begin(self) -> None:
        self._states: list[int] = []
        self._commands: list[tuple[int, float, float, int]] = []

    def publish(self) -> None:
        """Send a state."""
        self._tick += 1
        self._body[self._layout.word("tick")] = self._tick
        self._body[-1] = crc32(self._body, self._layout.crc_words)
        if len(self._states) < MOST:
            self._states.append(time.time_ns())
        self._dds.ddspy_write(self._writer._ref, self._frame.tobytes())

    def listen(self, until: float) -> None:
        """Take commands until a monotonic time [s]."""
        while (wait := until - time.monotonic()) > 0:
            self._waiting.wait(int(1e9 * wait))
            taken: Any = self._dds.ddspy_take(self._reader._ref, self._dds.ANY, QUEUE)
            now = time.time_ns()
            for frame, info in taken if not isinstance(taken, int) else ():
                if info.valid_data:
                    self._take(frame, now)

    def _take(self, frame: bytes, now: int) -> None:
        number = np.frombuffer(frame, np.float32, offset=HEADER)
        first = self._q_told[0]  # q, dq, tau, kp, kd
        mode = frame[self._mode_told[0]]
        if len(self._commands) < MOST:
            self._commands.append((now, float(number[first + 2]), float(number[first + 3]), mode))
        self._frame[self._mode] = mode
        if mode and number[first + 3] > 0:
            self._number[self._q] = number[self._q_told]

    def report(self) -> str:
        """Times of states and commands [ns]; torque and kp of the first motor in each command, and its mode."""
        times, tau, kp, mode = zip(*self._commands, strict=True) if self._commands else ((), (), (), ())
        out = {"states": self._states, "times": times, "tau": tau, "kp": kp, "mode": mode}
        self._begin()
        return json.dumps(out)

    def run(self) -> None:
        """Be the robot until standard input closes."""
        self.publish()  # loads what is compiled
        print("ready", flush=True)
        due, pending = time.monotonic(), b""
        while True:
            self.publish()
            due = max(due + PERIOD, time.monotonic())
            self.listen(due)
            if select.select([0], [], [], 0)[0]:
                data = os.read(0, 4096)
                if not data:
                    return
                *lines, pending = (pending + data).split(b"\n")
                for _ in lines:
                    print(self.report(), flush=True)


if __name__ == "__main__":
    with scheduled():
        G1Robot(int(sys.argv[1])).run()
    os._exit(0)  # the middleware may wait for its peer, which leaves as well
