"""Which worker takes which tests, and which of them give way to the others.

Tests with nodes, pages and emulated drives are mostly waited for, but where their processes do not get the processor in
time they see lost messages, late commands and robots that are held. All other tests compute. Two workers take the tests
that wait, as long as there are any; those that compute get what the others leave of the processor. Markers say which
tests wait (`test/kinds.py`); what takes longest begins first (`test/durations.py`).
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from test.durations import estimate
from test.kinds import scope
from test.warm_process import give_way

REPOSITORY = Path(__file__).resolve().parent.parent
WAIT = 2  # workers for tests that wait, where there are more than that
NICE = 10  # of the others: a tenth of the share of a process that does not give way


def _number(config) -> int | None:
    """Of this worker; None in the process that gives them their tests."""
    given = getattr(config, "workerinput", None)
    return None if given is None else int(given["workerid"].removeprefix("gw"))


def _scopes_of(run: str) -> Path:
    """File by which the first worker tells the scope of each test: only workers have collected them."""
    return Path(tempfile.gettempdir()) / f"humanoid_scopes_{run}.json"


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


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """In the first worker, tell the scopes."""
    if _number(config) == 0:
        path = _scopes_of(config.workerinput["testrunuid"])
        path.write_text(json.dumps({item.nodeid: scope(item) for item in items}))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """`--dist loadfile`, the longest scope first; what waits goes to the workers that do not give way."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def schedule(self) -> None:
            if self.collection is None:
                path = _scopes_of(next(iter(self.nodes)).workerinput["testrunuid"])
                self._scope_of = json.loads(path.read_text())
                path.unlink()
                self._seconds = Counter[str]()
                for test, seconds in estimate(self._scope_of).items():
                    self._seconds[self._scope_of[test]] += seconds
            super().schedule()

        def _split_scope(self, nodeid: str) -> str:
            return self._scope_of[nodeid]

        def _assign_work_unit(self, node) -> None:
            kind = "waits" if int(node.gateway.id.removeprefix("gw")) < WAIT else "computes"

            def later(scope: str) -> tuple[bool, float]:
                return not scope.startswith(kind), -self._seconds[scope]

            self.workqueue.move_to_end(min(self.workqueue, key=later), last=False)
            super()._assign_work_unit(node)

    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return Scheduling(config, log)
