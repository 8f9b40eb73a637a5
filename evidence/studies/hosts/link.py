"""Two hosts on one machine: each a network namespace, joined by a link that can be slow, lossy or cut."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from humanoid_control.paths import share_dir

ADDRESSES = ("10.77.0.1", "10.77.0.2")
FAKETIME = "/usr/lib/*/faketime/libfaketime.so.1"
SECONDS_TO_STOP = 10.0


def clock_library() -> str:
    """Path of libfaketime, by which a process has a clock of its own; empty where it is not installed."""
    return next(iter(sorted(str(p) for p in Path("/").glob(FAKETIME.lstrip("/")))), "")


def why_not() -> str:
    """Why two hosts cannot be made here; empty where they can."""
    if os.geteuid():
        return "two hosts need network namespaces, which only root can make"
    if not Path("/dev/net/tun").exists():
        return "two hosts need /dev/net/tun"
    if shutil.which("ip") is None:
        return "two hosts need the command ip (Debian: iproute2)"
    name = f"hp{os.getpid()}"
    probe = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if probe.returncode:
        return f"network namespaces cannot be made: {probe.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=False)
    return ""


class TwoHosts:
    """Use as a context manager: hosts 0 and 1 exist inside it, and all that runs on them ends with it."""

    def __init__(self, domain: str) -> None:
        """Create the two hosts; `domain`: ROS_DOMAIN_ID of both hosts."""
        self.names = [f"h{side}{os.getpid()}" for side in "ab"]
        self._domain = domain
        self._children: list[subprocess.Popen] = []
        self._folder = tempfile.TemporaryDirectory()

    def __enter__(self) -> TwoHosts:
        command = [sys.executable, "-u", "-m", "evidence.studies.hosts.relay", *self.names, *ADDRESSES]
        self._relay = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._expect("READY")
        for host in (0, 1):
            self.set_clock(host, 0.0)
        return self

    def _expect(self, word: str) -> None:
        assert self._relay.stdout is not None
        line = self._relay.stdout.readline().strip()
        if line != word:
            raise RuntimeError(f"the link printed {line!r} instead of {word}")

    def faults(self, **values: float | bool) -> None:
        """Change what the link does to frames from now on; names of `relay.Faults`."""
        assert self._relay.stdin is not None
        self._relay.stdin.write(json.dumps(values) + "\n")
        self._relay.stdin.flush()
        self._expect("changed")

    def set_clock(self, host: int, ahead: float) -> None:
        """Set the clock of the processes that were started on a host with `clock`, ahead of this machine's [s]."""
        path = Path(self._folder.name) / f"clock{host}"
        new = path.with_suffix(".new")
        new.write_text(f"{ahead:+.6f}\n")
        new.rename(path)

    def start(self, host: int, command: Sequence[str], clock: bool = False, **more: Any) -> subprocess.Popen:
        """Run a command on a host, heard by the other one.

        Args:
            host: 0 or 1. command: its words. clock: it has the host's own clock, see `set_clock`.
            more: of subprocess.Popen.
        """
        environment = {
            **os.environ,
            "ROS_DOMAIN_ID": self._domain,
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET",
            "FASTDDS_BUILTIN_TRANSPORTS": "UDPv4",  # both hosts have one /dev/shm, which real ones do not
            "FASTDDS_DEFAULT_PROFILES_FILE": str(share_dir() / "config" / "two_hosts.xml"),
        }
        if clock:
            environment |= {
                "LD_PRELOAD": clock_library(),
                "FAKETIME_TIMESTAMP_FILE": str(Path(self._folder.name) / f"clock{host}"),
                "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_XRESET": "1",
            }
        words = ["ip", "netns", "exec", self.names[host], *command]
        child = subprocess.Popen(words, env=environment, start_new_session=True, **more)
        self._children.append(child)
        return child

    def __exit__(self, *_: object) -> None:
        for child in reversed(self._children):
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGINT)
                try:
                    child.wait(SECONDS_TO_STOP)
                except subprocess.TimeoutExpired:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait(2.0)
        assert self._relay.stdin is not None
        self._relay.stdin.close()
        self._relay.wait(SECONDS_TO_STOP)
        self._folder.cleanup()
