"""Time from the death of a driver to the first frame of its guardian."""

from __future__ import annotations

import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evidence.benchmarks import Row, row
from evidence.benchmarks.drivers.scheduling import scheduled
from humanoid_control.hardware.guardian import GuardedBus, Guardian
from humanoid_control.hardware.transport import HardwareError

FACTORY = "humanoid_control.hardware.guardian:DatagramGuard"
PERIOD, PATIENCE = 0.002, 20.0  # [s]
MODULE = "evidence.benchmarks.drivers.guardian"


def death_to_frame(trials: int = 100) -> list[Row]:
    """Row guardian_ms: from kill -9 of a process that beats at 500 Hz to the damping frame [ms].

    The frame carries the time at which it was sent. As `p99` the longest of all trials.
    """
    times = []
    with tempfile.TemporaryDirectory() as folder, scheduled():
        for trial in range(trials):
            path = str(Path(folder) / f"bus{trial}")
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bus:
                bus.bind(path)
                times.append(_trial(bus, path))
    ordered = sorted(times)
    median, most = ordered[len(ordered) // 2], ordered[-1]
    return [row("guardian_ms", "ms", median, most, trials, aim="max <= 12 ms", beside=f"max {most:.2f} ms")]


def _trial(bus: socket.socket, path: str) -> float:
    """Start a driver, kill it, and wait for the frame [ms].

    Raises:
        HardwareError: none came.
    """
    driver = subprocess.Popen([sys.executable, "-m", MODULE, path], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    try:
        if driver.stdout.readline() != "powered\n":
            raise HardwareError("the driver to be killed did not start")
        time.sleep(random.uniform(0.02, 0.03))  # anywhere in its cycle
        killed = time.monotonic_ns()
        os.kill(driver.pid, signal.SIGKILL)
        if not select.select([bus], [], [], PATIENCE)[0]:
            raise HardwareError(f"the guardian sent no frame in {PATIENCE:g} s")
        data = bus.recv(4096)
    finally:
        driver.kill()
        driver.wait()
        driver.stdout.close()
    return 1e-6 * (int.from_bytes(data[1:9], "little") - killed)


def beat(path: str) -> None:
    """Be a driver with power until somebody kills this process."""
    guardian = Guardian([GuardedBus("bus", FACTORY, (path,), (), 64)])
    with scheduled():
        guardian.beat(True, [b"damp"])
        print("powered", flush=True)
        due = time.monotonic()
        while True:
            due += PERIOD
            time.sleep(max(0.0, due - time.monotonic()))
            guardian.beat(True, [b"damp"])


if __name__ == "__main__":
    beat(sys.argv[1])
