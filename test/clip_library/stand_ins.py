"""What worker processes of the tests do: found by its own name, since `test` there is Python's own package."""

import os
import signal
import time
from pathlib import Path

from humanoid_control.clip_library import ClipOutcome, Job


def play(job: Job) -> ClipOutcome:
    """Do what the clip's name says, and leave a mark for each try."""
    folder, name = Path(job.clip.path), f"{job.clip.name}_{job.robot.name}"
    tries = len(list(folder.glob(f"{name}.*")))
    (folder / f"{name}.{tries}.{os.getpid()}").touch()
    if "deadly" in name or ("fragile" in name and tries == 0):
        os.kill(os.getpid(), signal.SIGKILL)
    if "slow" in name:
        time.sleep(60.0)
    big = 10**12 if "big" in name else 0
    return ClipOutcome({"clip": job.clip.name, "robot": job.robot.name, "key": job.key, "failed": ""}, b"x", big)


def refuse(job: Job) -> ClipOutcome:
    raise AssertionError("is never called")


def hungry(job: Job) -> ClipOutcome:
    """Take memory until there is no more, 50 MB at a time; four times as much as a worker may have at the most."""
    taken = []
    try:
        for _ in range(80):
            taken.append(bytearray(50_000_000))
        ended = "never"
    except MemoryError:
        ended = "refused"
    return ClipOutcome(
        {"clip": job.clip.name, "key": job.key, "failed": ended, "taken": 50_000_000 * len(taken)}, None, 1
    )


def fall_over(*_) -> None:
    os._exit(7)
