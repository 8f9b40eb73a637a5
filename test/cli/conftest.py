"""The `humanoid` command as a user runs it: a process, its exit code, its words."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from humanoid_control.cli.main import main
from test.places import domain
from test.shared_memory import OwnSharedMemory

ROS = ("demo", "up", "soak", "record", "replay", "docs")
# They check their input in a fork, which may crash where nodes of earlier tests have left threads of DDS.
CHECKED_IN_A_CHILD = ("demo", "up")
# To a shell both are 130. Python ends by the signal itself where it came while a library was running Python from C.
INTERRUPTED = (130, -signal.SIGINT)


class Command:
    """Runs `humanoid ...` in a home, a ROS domain and a folder of its own."""

    def __init__(self, folder, warm) -> None:
        self.folder, self.warm, self.running = folder, warm, []
        self.home = folder / "state"
        self.env = {
            **os.environ,
            "HUMANOID_HOME": str(self.home),
            "ROS_DOMAIN_ID": domain("commands"),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "OMP_NUM_THREADS": "1",
        }

    def argv(self, *args: object) -> list[str]:
        return [sys.executable, "-m", "humanoid_control.cli.main", *map(str, args)]

    def __call__(self, *args: object, timeout: float = 120, **env: str) -> subprocess.CompletedProcess:
        """Run to the end, in a fork of a process that is warm; see `WarmProcess`."""
        return self.warm.run([*map(str, args)], {**self.env, **env}, self.folder, timeout)

    def fresh(self, *args: object, timeout: float = 120, **env: str) -> subprocess.CompletedProcess:
        """Run to the end, from the interpreter's start."""
        return subprocess.run(
            self.argv(*args), env={**self.env, **env}, cwd=self.folder, capture_output=True, text=True, timeout=timeout
        )

    def start(self, *args: object, **env: str) -> subprocess.Popen:
        """Start and leave running; ended with the test."""
        log = (self.folder / f"command_{len(self.running)}.log").open("w+")
        process = subprocess.Popen(
            self.argv(*args),
            env={**self.env, **env},
            cwd=self.folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        process.log_path = log.name
        self.running.append(process)
        return process

    def shared_memory(self) -> OwnSharedMemory:
        """Look at the shared memory of what is run meanwhile (`with`)."""
        return OwnSharedMemory(self.home, int(self.env["ROS_DOMAIN_ID"]))

    def close(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


@pytest.fixture
def humanoid(tmp_path, warm_process):
    command = Command(tmp_path, warm_process)
    yield command
    command.close()


@pytest.fixture(scope="module")
def humanoid_once(tmp_path_factory, warm_process):
    """A command in a folder that all tests of a file share: for what is computed once and looked at by several."""
    command = Command(tmp_path_factory.mktemp("once"), warm_process)
    yield command
    command.close()


@pytest.fixture
def told(monkeypatch, tmp_path, capfd, warm_process):
    """What a command line is refused with."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUMANOID_HOME", str(tmp_path / "home"))

    def here(words):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
        return code, *capfd.readouterr()

    def forked(words):
        result = warm_process.run(
            [*map(str, words)], {"ROS_DOMAIN_ID": domain("commands"), **os.environ}, tmp_path, 120
        )
        return result.returncode, result.stdout, result.stderr

    def tell(line):
        words = line if isinstance(line, list) else line.split()
        if words[0] in ROS:
            pytest.importorskip("rclpy", reason="needs ROS 2")
        before = {*tmp_path.rglob("*")}
        code, out, err = forked(words) if words[0] in CHECKED_IN_A_CHILD else here(words)
        assert code == 2 and out == "", f"code {code}, {out}, {err}"
        lines = err.splitlines()
        assert len(lines) == 1 and lines[0].startswith(f"humanoid {words[0]}"), err
        assert {*tmp_path.rglob("*")} - {tmp_path / "home"} == before, "nothing is written"
        return lines[0]

    return tell


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """A recording of one joint state."""
    from humanoid_control.evaluation.bag import BagWriter, typestore

    types = typestore()
    make = types.types
    header = make["std_msgs/msg/Header"](stamp=make["builtin_interfaces/msg/Time"](sec=1, nanosec=0), frame_id="")
    message = make["sensor_msgs/msg/JointState"](header, ["a"], np.zeros(1), np.zeros(1), np.zeros(0))
    folder = tmp_path_factory.mktemp("recorded") / "bag"
    writer = BagWriter(folder)
    writer.add_topic("/joint_states", "sensor_msgs/msg/JointState")
    writer.write("/joint_states", 1, bytes(types.serialize_cdr(message, "sensor_msgs/msg/JointState")))
    writer.close()
    return folder


@pytest.fixture
def bag(tmp_path, recorded):
    """A recording of one joint state, called 'bag'."""
    shutil.copytree(recorded, tmp_path / "bag")
