"""A function called in a forked process: its result, its errors, and what it leaves behind."""

import os
import pickle
import signal
import subprocess
import sys
import time

import pytest

from humanoid_control.errors import ConfigError, EnvironmentProblem, UnknownNameError
from humanoid_control.in_child import in_child


def described(name, *, loud=False):
    if loud:
        print("said by the child")
    return {"name": name, "process": os.getpid()}


def test_the_result_comes_from_another_process():
    told = in_child(described, "hrp2")
    assert told["name"] == "hrp2" and told["process"] != os.getpid()


def test_what_the_child_prints_is_printed_once(capfd):
    print("before", flush=False)
    in_child(described, "hrp2", loud=True)
    assert capfd.readouterr().out.count("said by the child") == 1


def unknown():
    raise UnknownNameError("robot", "hrp22", ["hrp2", "lola"])


def wrong():
    raise ConfigError("--seconds must be above 0, got -1")


def test_an_error_of_the_child_is_raised_here_as_it_was():
    with pytest.raises(UnknownNameError, match="unknown robot 'hrp22'") as raised:
        in_child(unknown)
    assert raised.value.name == "hrp22" and raised.value.nearest == ["hrp2"]
    with pytest.raises(ConfigError, match="got -1"):
        in_child(wrong)


def test_a_child_that_is_killed_is_told_of():
    with pytest.raises(EnvironmentProblem, match="ended early"):
        in_child(lambda: os.kill(os.getpid(), signal.SIGKILL))


def test_what_cannot_be_handed_over_leads_the_child_nowhere(capfd):
    """Neither a result nor an error: it would go on with what the parent does."""

    def raises():
        error = ConfigError("wrong")
        error.cause = lambda: None
        raise error

    with pytest.raises((AttributeError, pickle.PicklingError), match=r"pickle|local object"):
        in_child(lambda: lambda: None)
    with pytest.raises(EnvironmentProblem, match="ended early"):
        in_child(raises)
    print("once")
    out, err = capfd.readouterr()
    assert out.count("once") == 1 and "pickle" in err


def test_nothing_of_it_stays():
    """Neither the module that it loads, nor the process, nor a descriptor."""
    code = (
        "import os, sys\nfrom humanoid_control.in_child import in_child\n"
        "def load():\n    import pinocchio\n    return 'pinocchio' in sys.modules\n"
        "before = os.listdir('/proc/self/fd')\nprint(in_child(load), 'pinocchio' in sys.modules)\n"
        "print(os.listdir('/proc/self/fd') == before)\n"
        "try:\n    os.waitpid(-1, os.WNOHANG)\nexcept ChildProcessError:\n    print('none is left')"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == ["True False", "True", "none is left"]


def test_an_interrupt_ends_the_child_too():
    code = (
        "import time\nfrom humanoid_control.in_child import in_child\n"
        "def wait():\n    print('waiting', flush=True)\n    time.sleep(600)\nin_child(wait)"
    )
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, **quiet)
    assert process.stdout.readline() == "waiting\n"
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)  # to the parent alone
    assert process.wait(60) != 0
    with pytest.raises(ProcessLookupError):  # once init has taken leave of the child, too
        while time.monotonic() - begin < 120:
            os.killpg(process.pid, 0)
            time.sleep(0.02)
    process.stdout.close()
