"""Two hosts for tests: each a network namespace, joined by a link that can be slow, lossy or cut."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
ADDRESSES = ("10.77.0.1", "10.77.0.2")


def why_not() -> str:
    """Why two hosts cannot be made here; empty where they can."""
    if os.geteuid():
        return "two hosts need network namespaces, which only root can make"
    if not Path("/dev/net/tun").exists():
        return "two hosts need /dev/net/tun"
    if shutil.which("ip") is None:
        return "two hosts need the command ip (Debian: iproute2)"
    probe = subprocess.run(["ip", "netns", "add", f"hp{os.getpid()}"], capture_output=True, text=True)
    if probe.returncode:
        return f"network namespaces cannot be made: {probe.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", f"hp{os.getpid()}"], check=False)
    return ""


class TwoHosts:
    """Use as a context manager: hosts 0 and 1 exist inside it, and all that runs on them ends with it."""

    def __init__(self, domain: str) -> None:
        """Prepare; `domain`: ROS_DOMAIN_ID of both hosts."""
        self.names = [f"h{side}{os.getpid()}" for side in "ab"]
        self._domain = domain
        self._children: list[subprocess.Popen] = []

    def __enter__(self) -> TwoHosts:
        command = [sys.executable, "-u", str(HERE / "relay.py"), *self.names, *ADDRESSES]
        self._relay = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._expect("READY")
        return self

    def _expect(self, word: str) -> None:
        assert self._relay.stdout is not None
        line = self._relay.stdout.readline().strip()
        if line != word:
            raise RuntimeError(f"the link said {line!r} in place of {word}")

    def faults(self, **values: float | bool) -> None:
        """Change what the link does to frames from now on; names of `relay.Faults`."""
        assert self._relay.stdin is not None
        self._relay.stdin.write(json.dumps(values) + "\n")
        self._relay.stdin.flush()
        self._expect("changed")

    def start(self, host: int, command: Sequence[str], **more: object) -> subprocess.Popen:
        """Run a command on a host, heard by the other one; keywords as of subprocess.Popen."""
        environment = {
            **os.environ,
            "ROS_DOMAIN_ID": self._domain,
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET",
            "FASTDDS_BUILTIN_TRANSPORTS": "UDPv4",  # both hosts have one /dev/shm, which real ones do not
        }
        words = ["ip", "netns", "exec", self.names[host], *command]
        child = subprocess.Popen(words, env=environment, start_new_session=True, **more)  # type: ignore[call-overload]
        self._children.append(child)
        return child

    def __exit__(self, *_: object) -> None:
        for child in reversed(self._children):
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGINT)
                try:
                    child.wait(5.0)
                except subprocess.TimeoutExpired:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait(2.0)
        assert self._relay.stdin is not None
        self._relay.stdin.close()
        self._relay.wait(5.0)
