"""Ctrl+C ends a command also where it comes inside a callback out of compiled code."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
    from humanoid_control.cli import main, robots

    def run(_, cause=KeyboardInterrupt):
        try:
            raise cause
        except BaseException as e:
            raise SystemError("returned a result with an exception set") from e

    monkeypatch.setattr(robots, "run", run)
    assert main.main(["robots"]) == main.EXIT_INTERRUPTED
    monkeypatch.setattr(robots, "run", lambda args: run(args, ValueError))
    with pytest.raises(SystemError, match="exception set"):
        main.main(["robots"])
