"""How tests that run at the same time keep out of each other's way: domains of DDS and ports for each worker."""

from __future__ import annotations

import os

WORKERS = 4  # that have a set of their own
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % WORKERS
RUN = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()  # the same for all workers of a run
USERS = {"nodes": 0, "commands": 1, "examples": 2, "launch": 3}
FIRST_DOMAIN, DOMAINS = 10, 80  # those above 101 may lie among the ports that the system gives away
FIRST_PORT, PORTS, PORTS_EACH = 9200, 1000, 20


def domain(user: str) -> str:
    """ROS_DOMAIN_ID of the tests of a sort; sorts have their own, since a node may outlive its test for a moment."""
    return str(FIRST_DOMAIN + (len(USERS) * (WORKERS * RUN + WORKER) + USERS[user]) % DOMAINS)


def port(k: int) -> int:
    """The k-th port of this worker, k < PORTS_EACH."""
    return FIRST_PORT + (PORTS_EACH * (WORKERS * RUN + WORKER) + k) % PORTS
