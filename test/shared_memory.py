"""Shared-memory files of one test's processes, told from those of tests that run at the same time."""

from __future__ import annotations

import contextlib
import re
import threading
from pathlib import Path

from humanoid_control.session.shared_memory import files_in_use, leftovers, shared_memory_files

PERIOD = 0.3  # [s] between looks at the processes; they keep what they map for as long as they live
FIRST_PORT, PORTS_OF_A_DOMAIN = 7400, 250  # of DDS (RTPS 2.5, section 9.6.2)


def processes_of(home: Path) -> set[int]:
    """Process ids of all that were started with a HUMANOID_HOME, forks of them included."""
    word, found = b"HUMANOID_HOME=" + str(home).encode(), set()
    for proc in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if proc.name.isdigit() and word in (proc / "environ").read_bytes().split(b"\0"):
                found.add(int(proc.name))
    return found


class OwnSharedMemory:
    """Files below /dev/shm that the processes of a home have mapped or open, or that are ports of their ROS domain.

    Nodes of other workers come and go meanwhile, and a killed one leaves files, too: whose a file is cannot be seen
    once its process is gone. So the processes are looked at while they live.
    """

    def __init__(self, home: Path, domain: int) -> None:
        self.home, self.first_port = home, FIRST_PORT + PORTS_OF_A_DOMAIN * domain
        self.names: set[str] = set()
        # A port file that an earlier process of the domain left is used again, and stays.
        self.before = {path.name for path in shared_memory_files()}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> OwnSharedMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(PERIOD):
            self.look()

    def look(self) -> set[str]:
        """Take a look at the processes now; returns the names known so far."""
        if pids := processes_of(self.home):
            self.names |= files_in_use(pids)
        return self.names

    def left(self) -> list[Path]:
        """Files of these processes that no process uses any more."""
        new = [path for path in leftovers() if path.name not in self.before]
        return [path for path in new if path.name in self.names or self._port_of_the_domain(path.name)]

    def _port_of_the_domain(self, name: str) -> bool:
        found = re.search(r"_port(\d+)", name)
        return found is not None and 0 <= int(found[1]) - self.first_port < PORTS_OF_A_DOMAIN
