"""A robot of Unitree's in another process, on this computer only and in a domain of DDS of its own."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from humanoid_control.hardware.transport import ActuatorCommand, ActuatorSpec, ActuatorState, BusSpec, Mode
from test.places import RUN, WORKER, WORKERS

ROOT = Path(__file__).resolve().parents[3]
DOMAIN = 90 + (WORKERS * RUN + WORKER) % 10  # ROS tests take those below
PATIENCE = 20.0  # [s] for what takes milliseconds on an idle machine


def wait_for(condition, each=lambda: time.sleep(0.005)):
    """Wait until a condition holds; False where it does not come to."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()) and time.monotonic() < end:
        each()
    return found


def process(*words, **options):
    """A Python process that finds the package and the tests."""
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, *words], env=env, text=True, stdout=subprocess.PIPE, **options)


def hurry(process):
    """Let a process keep up with the clock beside other tests, where that is permitted: all of its threads."""
    with contextlib.suppress(PermissionError, FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(task.name), -10)


class RobotProcess:
    """The process and the lines to and from it."""

    def __init__(self):
        self.process = process(Path(__file__).with_name("robot.py"), "lo", str(DOMAIN), stdin=subprocess.PIPE)
        hurry(self.process)
        assert json.loads(self.process.stdout.readline()) == "ready"

    def tell(self, line=None, **settings):
        self.process.stdin.write(json.dumps(line or settings) + "\n")
        self.process.stdin.flush()

    def report(self):
        self.tell("report")
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


@pytest.fixture(scope="module")
def robot_process():
    robot = RobotProcess()
    yield robot
    robot.close()


@pytest.fixture
def robot(robot_process):
    robot_process.tell("reset")
    robot_process.report()  # by then it has
    return robot_process


def row(motors_of, mode=Mode.POSITION, **options):
    """A bus with all motors of a model."""
    from humanoid_control.hardware.unitree.models import model_of

    gains = {"kp": 30.0, "kd": 1.5} if mode == Mode.IMPEDANCE else {}
    actuators = tuple(ActuatorSpec(m.name, m.id, mode, **gains) for m in model_of(motors_of).motors)
    return BusSpec("body", actuators, 0.002, {"interface": "lo", "domain": DOMAIN, "model": motors_of, **options})


class Drive:
    """A transport, its arrays, and cycles of it."""

    def __init__(self, spec):
        from humanoid_control.hardware.unitree.link import UnitreeTransport

        self.bus, n = UnitreeTransport(spec), len(spec.actuators)
        self.state, self.command = ActuatorState(n), ActuatorCommand(n)
        self.command.mode[:] = [a.mode for a in spec.actuators]
        self.command.kp[:], self.command.kd[:] = [a.kp for a in spec.actuators], [a.kd for a in spec.actuators]

    def cycle(self):
        self.bus.read(self.state, time.monotonic() + 0.002)
        self.bus.write(self.command)

    def until(self, condition):
        return wait_for(condition, self.cycle)

    def enable(self):
        assert self.until(lambda: self.bus.power(True)), self.bus.figures()
        return self


@pytest.fixture
def drive(monkeypatch):
    """Makes an open transport from options of its bus."""
    from humanoid_control.hardware.unitree import link

    monkeypatch.setattr(link, "OPEN_TIME", PATIENCE)
    opened = []

    def make(model="g1", mode=Mode.POSITION, **options):
        opened.append(Drive(row(model, mode, **options)))
        opened[-1].bus.open()
        return opened[-1]

    yield make
    for d in opened:
        d.bus.close()


# -------- The vendor's simulator

SIMULATOR, SDK = (os.environ.get(f"HUMANOID_UNITREE_{name}", "") for name in ("MUJOCO", "SDK"))


class VendorSimulator:
    """The vendor's simulator of a G1, carried by its elastic band, in a process of its own."""

    def __init__(self, domain=DOMAIN):
        self.domain = domain
        script = Path(__file__).with_name("vendor_simulator.py")
        words = (script, SIMULATOR, SDK, str(domain), "scene_29dof.xml")
        self.process = process(*words, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        hurry(self.process)
        assert self.process.stdout.readline() == "ready\n"

    def close(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def vendor_simulator():
    if not SIMULATOR or not SDK:
        pytest.skip("needs HUMANOID_UNITREE_MUJOCO and HUMANOID_UNITREE_SDK, folders of the vendor's repositories")
    pytest.importorskip("mujoco")
    simulator = VendorSimulator()
    yield simulator
    simulator.close()
