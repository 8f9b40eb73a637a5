"""Ctrl+C ends every command, with the exit code of the convention, also inside a callback out of compiled code."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from humanoid_control.cli.main import COMMANDS, ENDED_BY_CTRL_C, EXIT_CODES, EXIT_INTERRUPTED, command_module, main
from humanoid_control.evaluation.bag import BagWriter, typestore
from humanoid_control.paths import share_dir
from test.cli.conftest import INTERRUPTED, ROS
from test.places import port

CUT, ENDED = INTERRUPTED, (0,)
ros, nightly = [pytest.mark.ros, pytest.mark.patient], pytest.mark.nightly
# Command lines that take long, words after which they are interrupted, and their exit codes. PORT is the worker's own.
LONG = [
    pytest.param("study imitation", "", CUT, marks=nightly),
    pytest.param("bench ik", "", CUT, marks=nightly),
    pytest.param("study safety", "", CUT, marks=nightly),
    pytest.param("dance --robot hrp2 --port PORT", "Ctrl-C stops", ENDED, marks=nightly),
    pytest.param("segments lola --port PORT", "Ctrl-C stops", ENDED),
    pytest.param("record", "READY", (1,), marks=ros),  # nothing was received
    pytest.param("replay slow", "Ctrl-C stops", CUT, marks=ros),
    pytest.param("replay slow --loop", "Ctrl-C stops", ENDED, marks=[*ros, nightly]),
    pytest.param("up simulation --set viewer.port=PORT", "viewer:", CUT, marks=ros),  # not ready yet
    pytest.param("demo --no-viewer", "Ctrl-C stops early", CUT, marks=[*ros, nightly]),  # nothing moves yet
]

SWALLOWS = """
import ctypes, sys, time
from humanoid_control.cli.main import keep_interrupts

def callback():
    raise KeyboardInterrupt  # as if the signal had come just here

{keep}
ctypes.CFUNCTYPE(None)(callback)()  # ctypes reports the exception and goes on
try:
    time.sleep(2)
    print("ran on")
except KeyboardInterrupt:
    print("ended")
"""


def said(keep: str) -> str:
    return subprocess.run([sys.executable, "-c", SWALLOWS.format(keep=keep)], capture_output=True, text=True).stdout


@pytest.mark.nightly
def test_an_interrupt_inside_a_callback_is_raised_again():
    assert said("keep_interrupts()") == "ended\n"
    assert said("") == "ran on\n", "without it the interrupt is lost, so this test can fail"


def test_other_exceptions_that_cannot_be_raised_are_still_reported():
    code = "import ctypes\nfrom humanoid_control.cli.main import keep_interrupts\nkeep_interrupts()\n"
    code += "ctypes.CFUNCTYPE(None)(lambda: 1 / 0)()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ZeroDivisionError" in result.stderr


def test_an_interrupt_that_numba_hides_in_an_error_of_its_own_is_one(monkeypatch):
    """As it is raised where the fields of a record that a kernel returns are records themselves."""
    from humanoid_control.cli import robots

    def run(_, cause=KeyboardInterrupt):
        try:
            raise cause
        except BaseException as e:
            raise SystemError("returned a result with an exception set") from e

    monkeypatch.setattr(robots, "run", run)
    assert main(["robots"]) == EXIT_INTERRUPTED
    monkeypatch.setattr(robots, "run", lambda args: run(args, ValueError))
    with pytest.raises(SystemError, match="exception set"):
        main(["robots"])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_is_cut_off_ends_with_one_code(name, monkeypatch, capsys):
    if name in ROS:
        pytest.importorskip("rclpy", reason="needs ROS 2")

    def run(args):
        raise KeyboardInterrupt

    module = command_module(name)
    monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(module, "add_arguments", lambda parser: None)
    assert main([name]) == EXIT_INTERRUPTED
    assert capsys.readouterr() == ("", "")


def test_the_convention_is_written_down():
    page = (share_dir() / "docs" / "commands.md").read_text()
    for name in ENDED_BY_CTRL_C:
        assert name.split()[0] in COMMANDS and f"`{name}`" in page and name in EXIT_CODES


@pytest.fixture
def slow(tmp_path):
    """A recording of two joint states, minutes apart."""
    types = typestore()
    make, writer = types.types, BagWriter(tmp_path / "slow")
    header = make["std_msgs/msg/Header"](stamp=make["builtin_interfaces/msg/Time"](sec=1, nanosec=0), frame_id="")
    message = make["sensor_msgs/msg/JointState"](header, ["a"], np.zeros(1), np.zeros(1), np.zeros(0))
    writer.add_topic("/joint_states", "sensor_msgs/msg/JointState")
    for nanoseconds in (1, 300 * 10**9):
        writer.write("/joint_states", nanoseconds, bytes(types.serialize_cdr(message, "sensor_msgs/msg/JointState")))
    writer.close()


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(("line", "words", "codes"), LONG)
def test_ctrl_c_ends_a_command_with_its_code_and_without_a_traceback(humanoid, line, words, codes):
    process = humanoid.start(*line.replace("PORT", str(port(11))).split())
    end, log = time.monotonic() + 120, Path(process.log_path)
    while words and words not in log.read_text():
        assert process.poll() is None and time.monotonic() < end, log.read_text()
        time.sleep(0.05)
    time.sleep(0.5 if words else 5.0)
    assert process.poll() is None, log.read_text()
    process.send_signal(signal.SIGINT)
    code = process.wait(60)
    if "running;" in log.read_text():  # on a busy machine a stack may get ready before the interrupt
        codes = ENDED
    assert code in codes, log.read_text()
    assert "Traceback" not in log.read_text()
