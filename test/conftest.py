"""Shared fixtures: where the real clips and models are, and how a test says that it lacks them."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from test import durations, places, quick, robot_files, workers
from test.ending import leave
from test.kinds import retry_reason
from test.warm_process import WarmProcess

# The suite tries the same examples everywhere; `pytest --hypothesis-profile=explore` looks for new ones.
# Neither is judged by the clock: on a busy machine drawing a few examples takes a second now and then.
settings.register_profile("suite", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None)
settings.load_profile("suite")
REPOSITORY = Path(__file__).resolve().parent.parent
if threading.current_thread() is threading.main_thread():
    # A shell starts what runs in its background deaf to interrupts, nohup what it starts to hang-ups, and the commands
    # under test would inherit that: they take it for the wish that they go on without who started them.
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
DATA = Path(os.environ.get("HUMANOID_TEST_DATA", REPOSITORY.parent / "shared" / "data"))


@pytest.fixture(autouse=True)
def ordinary_priority():
    """A node that a test makes in its own process takes real-time priority for it: not for the tests that follow."""
    yield
    if hasattr(os, "sched_getscheduler") and os.sched_getscheduler(0) != os.SCHED_OTHER:
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError):  # one that has just ended
                os.sched_setscheduler(int(thread), os.SCHED_OTHER, os.sched_param(0))


@pytest.fixture(scope="session", autouse=True)
def parsed_once():
    """Parse each file of this package once for all tests of a process."""
    with pytest.MonkeyPatch.context() as patch:
        robot_files.remember(patch)
        yield


def pytest_addoption(pluginmanager):
    """Options of what a change reaches."""
    pluginmanager.register(quick, "quick")


def pytest_configure(config):
    """Tests are shared between workers; the process that shares them keeps their durations."""
    assert places.CLAIMED in os.environ, "workers find the number of their run there"
    config.pluginmanager.register(workers, "workers")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(durations.Recorder(), "durations")


def pytest_collection_modifyitems(items):
    """A test that starts nodes or a browser, and gives a reason, is tried once more."""
    for item in items:
        if retry_reason(item):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_sessionfinish(session, exitstatus):
    """A thread that never ends must not keep the process."""
    leave(int(exitstatus))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Nothing that is collected is garbage: looking for some among ten thousand tests again and again takes a while."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session):
    """Tests and modules stay to the end: garbage is looked for beside them, and a tenth as often as by default."""
    gc.freeze()
    gc.set_threshold(7_000, 20, 20)


@pytest.fixture(scope="session")
def warm_process():
    """A process that commands and nodes are forked from."""
    process = WarmProcess()
    yield process
    process.close()


@pytest.fixture(scope="session")
def mocap():
    """Return a function that gives the path of a real motion clip, or skips the test where it is absent."""

    def find(relative: str) -> Path:
        path = DATA / "mocap" / relative
        if not path.is_file():
            pytest.skip(
                f"needs the motion clip mocap/{relative}: set HUMANOID_TEST_DATA to the folder that holds mocap/"
            )
        return path

    return find


@pytest.fixture(scope="session")
def model_file():
    """Return a function that gives the path of a public robot or muscle model, or skips where it is absent."""

    def find(relative: str) -> Path:
        path = DATA / relative
        if not path.is_file():
            pytest.skip(f"needs the model file {relative}: set HUMANOID_TEST_DATA to the folder that holds it")
        return path

    return find
