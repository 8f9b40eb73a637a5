"""How tests that run at the same time keep out of each other's way: domains of DDS and ports for each worker."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path
from typing import IO

WORKERS = 4  # that have a set of their own
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % WORKERS
USERS = {"nodes": 0, "commands": 1, "examples": 2, "launch": 3}
FIRST_DOMAIN, DOMAINS = 10, 80  # those above 101 may lie among the ports that the system gives away
FIRST_PORT, PORTS, PORTS_EACH = 9200, 1000, 20
RUNS = DOMAINS // (WORKERS * len(USERS))  # at the same time on this machine, each with its domains
CLAIMED = "HUMANOID_TEST_RUN"  # tells the workers of a run its number
_held: list[IO[str]] = []  # the lock lasts as long as this process


def claim_run(folder: Path) -> int:
    """Return a number below `RUNS` that no other run on this machine has, or any where all are taken."""
    for number in range(RUNS):
        try:
            lock = (folder / f"humanoid_test_run_{number}.lock").open("a")
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # taken, or the file is another user's
            continue
        _held.append(lock)
        return number
    return os.getpid() % RUNS


if CLAIMED not in os.environ or "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ[CLAIMED] = str(claim_run(Path(tempfile.gettempdir())))
RUN = int(os.environ[CLAIMED])


def domain(user: str) -> str:
    """ROS_DOMAIN_ID of the tests of a sort; sorts have their own, since a node may outlive its test for a moment."""
    return str(FIRST_DOMAIN + (len(USERS) * (WORKERS * RUN + WORKER) + USERS[user]) % DOMAINS)


def port(k: int) -> int:
    """The k-th port of this worker, k < PORTS_EACH."""
    return FIRST_PORT + (PORTS_EACH * (WORKERS * RUN + WORKER) + k) % PORTS
