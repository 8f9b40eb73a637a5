"""Which worker takes which tests, and which of them give way to the others.

Tests with nodes, pages and emulated drives are mostly waited for, but where their processes do not get the processor in
time they see lost messages, late commands and robots that are held. All other tests compute. Two workers take the tests
that wait, as long as there are any; those that compute get what the others leave of the processor.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from pathlib import Path

import pytest

from test.warm_process import give_way

REPOSITORY = Path(__file__).resolve().parent.parent
WAIT = 2  # workers for tests that wait, where there are more than that
NICE = 10  # of the others: a tenth of the share of a process that does not give way

# What one worker takes as if it were one file, the first of these that fits.
TOGETHER = {
    "stacks": (
        "test/nodes/base/",
        "test/nodes/session/",
        "test/cli/test_stack.py",
        "test/hosts/",
    ),
    "nodes": ("test/nodes/",),
    "pages": ("test/viewer/", "test/clip_library/test_gallery.py"),
}
ALONE = ("test/nodes/walking/",)  # whole walks without DDS, which compute
# What starts nodes, pages or drives with watchdogs, and what begins first of these.
WAITED_FOR = (
    "stacks",
    "nodes",
    "test/studies/faults/",
    "test/launch/",
    "test/studies/soak/",
    "test/hardware/",
    "test/cli/test_stack_faults.py",
    "test/cli/test_demo_walk.py",
    "test/examples/test_your_own_node.py",
    "test/benchmarks/test_driver.py",
    "pages",
)
# They begin first, or a worker would be left with one of them while the others have nothing to do.
LONG = (
    "test/nodes/",
    "test/viewer/",
    "test/studies/",
    "test/walking/",
    "test/ik/limits/",
    "test/retargeting/",
    "test/examples/",
    "test/cli/",
    "test/benchmarks/",
    "test/warm_up/",
    "test/simulation/",
    "test/robots/",
    "test/ik/",
    "test/package/test_jit.py",
)


def _number(config) -> int | None:
    """Of this worker; None in the process that gives them their tests."""
    given = getattr(config, "workerinput", None)
    return None if given is None else int(given["workerid"].removeprefix("gw"))


def _scope(nodeid: str) -> str:
    """What the worker of a test takes with it."""
    if not nodeid.startswith(ALONE):
        for scope, folders in TOGETHER.items():
            if nodeid.startswith(folders):
                return scope
    return nodeid.rsplit("::", 1)[0]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    """In a worker: a session of its own, its place among the others, and a share of the tests imported.

    What pytest makes of a test file is kept on disk: so each worker makes a part of it, and reads the rest.
    """
    config = session.config
    number = _number(config)
    if number is None:
        return
    count = config.workerinput["workercount"]
    with contextlib.suppress(PermissionError):  # it has one
        os.setsid()
    if number >= WAIT:
        give_way(NICE)
    if sys.dont_write_bytecode or config.args != config.getini("testpaths"):
        return
    for path in sorted((REPOSITORY / "test").rglob("test_*.py"))[number::count]:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # collecting it will say so
            importlib.import_module(".".join(path.relative_to(REPOSITORY).with_suffix("").parts))


def pytest_collection_modifyitems(config, items):
    """In a worker, what takes long comes first."""
    if _number(config) is not None:
        items.sort(key=lambda item: next((k for k, f in enumerate(LONG) if item.nodeid.startswith(f)), len(LONG)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """`--dist loadfile`, in the order of the tests; what waits goes to the workers that do not give way."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _scope(nodeid)

        def _assign_work_unit(self, node) -> None:
            waits = int(node.gateway.id.removeprefix("gw")) < WAIT

            def wrong(scope: str) -> tuple[bool, int]:
                place = next((k for k, f in enumerate(WAITED_FOR) if scope.startswith(f)), None)
                return (place is not None) != waits, place or 0

            self.workqueue.move_to_end(min(self.workqueue, key=wrong), last=False)
            super()._assign_work_unit(node)

    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return Scheduling(config, log)
