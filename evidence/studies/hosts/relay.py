"""Two hosts on one machine: network namespaces joined by a link whose faults are chosen while it runs.

Run by `link.TwoHosts` as a process of its own, as root. Each namespace has a TAP device; frames are carried between
both here, since kernels without `netem` offer no other way to delay, lose or reorder them. Each line on standard input
is a JSON object with numbers of `Faults`; the end of input takes all down.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import json
import os
import random
import select
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, fields

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
FRAME = 2048  # [bytes] more than an Ethernet frame has
QUEUE = 5000  # frames under way at most, as in a switch


@dataclass
class Faults:
    """What the link does to frames, in both directions.

    Attributes:
        delay, jitter: [s]; a frame takes delay +- jitter, evenly distributed; later ones may overtake it.
        loss, duplicate: shares of the frames.
        rate: [bytes/s]; 0: as fast as can be. cut: nothing passes.
    """

    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    duplicate: float = 0.0
    rate: float = 0.0
    cut: bool = False

    def change(self, values: dict) -> None:
        """Take new values; the others stay."""
        known = {f.name for f in fields(self)}
        for name, value in values.items():
            if name not in known:
                raise ValueError(f"unknown fault {name}: one of {', '.join(sorted(known))}")
            setattr(self, name, value)


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)


def open_tap(name: str, namespace: str, address: str) -> int:
    """A TAP device in a namespace, up, with an address; frames are read from and written to what is returned."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    run("ip", "link", "set", name, "netns", namespace)
    for words in (
        ("addr", "add", f"{address}/24", "dev", name),
        ("link", "set", "lo", "up"),
        ("link", "set", name, "up", "multicast", "on"),
        ("route", "add", "224.0.0.0/4", "dev", name),
    ):
        run("ip", "-n", namespace, *words)
    return tap


def carry(taps: tuple[int, int], faults: Faults) -> None:
    """Carry frames until the input ends."""
    waiting: list[tuple[float, int, int, bytes]] = []  # when, number, to which side, frame
    number, free = 0, [0.0, 0.0]
    rng = random.Random(0)
    while True:
        now = time.monotonic()
        pause = max(0.0, waiting[0][0] - now) if waiting else 1.0
        ready, _, _ = select.select([*taps, sys.stdin], [], [], pause)
        if sys.stdin in ready:
            line = sys.stdin.readline()
            if not line:
                return
            faults.change(json.loads(line))
            print("changed", flush=True)
        now = time.monotonic()
        for side, tap in enumerate(taps):
            if tap not in ready:
                continue
            with contextlib.suppress(BlockingIOError):
                while True:
                    frame = os.read(tap, FRAME)
                    copies = 1 + (rng.random() < faults.duplicate)
                    if faults.cut or rng.random() < faults.loss or len(waiting) > QUEUE:
                        continue
                    for _ in range(copies):
                        at = now + max(0.0, faults.delay + rng.uniform(-faults.jitter, faults.jitter))
                        if faults.rate:
                            free[side] = max(free[side], now) + len(frame) / faults.rate
                            at = max(at, free[side])
                        heapq.heappush(waiting, (at, number := number + 1, 1 - side, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, side, frame = heapq.heappop(waiting)
            if not faults.cut:
                with contextlib.suppress(OSError):
                    os.write(taps[side], frame)


def main(names: list[str], addresses: list[str]) -> None:
    made: list[str] = []
    try:
        for name in names:
            run("ip", "netns", "add", name)
            made.append(name)
        a, b = (open_tap(f"{n}t", n, x) for n, x in zip(names, addresses, strict=True))
        print("READY", flush=True)
        with contextlib.suppress(PermissionError):  # a switch does not wait for other programs
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))
        carry((a, b), Faults())
    finally:
        for name in made:
            with contextlib.suppress(subprocess.CalledProcessError):
                run("ip", "netns", "del", name)


if __name__ == "__main__":
    main(sys.argv[1:3], sys.argv[3:5])
