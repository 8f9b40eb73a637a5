"""Random messages of any type, for nodes that must live through all of them: finite nonsense, NaN, wrong lengths.

Also the nodes, in each mode in which they hear other topics.
"""

from __future__ import annotations

import importlib
import math
import re
import time
from typing import Any

import numpy as np

from humanoid_control.robots import load_robot
from humanoid_control.robots.tendons import tendon_geometry

NUMBERS = (0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 1e155, 5e-324, 1e9)
LENGTHS = (0, 1, 2, 3, 7, 12, 40)
WITH_TENDONS = "kengoro_upper"
EVERYBODYS = ("/parameter_events", "/clock")
CALM = 0.4  # share of messages in which all numbers are small and all stamps are of now


class Fuzz:
    """Source of random messages with a fixed seed.

    Attributes:
        words: names that mean something to the node, among those that do not.
    """

    def __init__(self, seed: int, words: tuple[str, ...] = ()) -> None:
        self.rng, self.words = np.random.default_rng(seed), words
        self._calm, self._length = False, 0

    def message(self, kind: type) -> Any:
        """A message of a type; its sequences are of one length more often than not."""
        self._calm = bool(self.rng.random() < CALM)
        self._length = int(self.rng.choice(LENGTHS))
        return self._filled(kind)

    def _filled(self, kind: type) -> Any:
        fields = kind.get_fields_and_field_types()  # type: ignore[attr-defined]
        if kind.__name__ == "Time" and (self._calm or self.rng.random() < 0.3):
            now = time.time_ns()
            return kind(sec=now // 10**9, nanosec=now % 10**9)
        return kind(**{name: self._value(of) for name, of in fields.items()})

    def _value(self, kind: str) -> Any:
        """A value of a field's type, as `get_fields_and_field_types` calls it."""
        if array := re.fullmatch(r"(.+)\[(\d+)\]", kind):
            return [self._value(array[1]) for _ in range(int(array[2]))]
        if sequence := re.fullmatch(r"sequence<(.+?)(?:, \d+)?>", kind):
            n = self._length if self._calm or self.rng.random() < 0.7 else int(self.rng.choice(LENGTHS))
            if sequence[1] == "string" and self._calm and 0 < n <= len(self.words):
                return [str(w) for w in self.rng.permutation(self.words)[:n]]
            if "/" in sequence[1]:
                n = min(n, 7)
            return [self._value(sequence[1]) for _ in range(n)]
        if kind in ("float", "double"):
            wild = not self._calm and self.rng.random() < 0.4
            x = NUMBERS[self.rng.integers(len(NUMBERS))] if wild else 0.3 * self.rng.normal()
            return float(np.clip(x, -3e38, 3e38)) if kind == "float" and math.isfinite(x) else float(x)
        if kind == "boolean":
            return bool(self.rng.random() < 0.5)
        if kind.startswith("string"):
            return self._text()
        if integer := re.fullmatch(r"(u?)int(\d+)", kind):
            bits, low = int(integer[2]), 0 if integer[1] else -(2 ** (int(integer[2]) - 1))
            ends = (0, 0, 0, 1, 2, low, low + 2**bits - 1)
            return int(ends[self.rng.integers(len(ends))])
        if kind in ("octet", "byte"):
            return bytes([int(self.rng.integers(4))])
        return self._filled(message_type(kind))

    def _text(self) -> str:
        """A name that is known, none, or one that is not, short or long."""
        pick = self.rng.random()
        if self.words and (pick < 0.6 or self._calm):
            return str(self.words[self.rng.integers(len(self.words))])
        if pick < 0.7:
            return ""
        return "".join(chr(int(c)) for c in self.rng.integers(32, 1000, int(self.rng.choice([3, 30, 300]))))


def message_type(name: str) -> type:
    """The class of a message, from its name as `package/Name` or `package/msg/Name`."""
    package, *_, kind = name.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), kind)


def numbers_in(message: Any) -> list[float]:
    """All floating-point numbers in a message."""
    if isinstance(message, float):
        return [message]
    if hasattr(message, "get_fields_and_field_types"):
        return [x for name in message.get_fields_and_field_types() for x in numbers_in(getattr(message, name))]
    if isinstance(message, str | bytes | int) or not hasattr(message, "__iter__"):
        return []
    return [x for part in message for x in numbers_in(part)]


# -------- Who gets them

FAULTS = ("Warning:", "Traceback", "tick failed", "failed, ignored", "failed: ")
"""Words of a node's log where something happened that nobody thought of."""


def fuzzed_nodes(robot: str, port: int) -> tuple[tuple[str, ...], ...]:
    """Nodes and their parameters; some twice, since they hear other topics in another mode. Slowly: many run at once.

    Args:
        robot: of the catalogue, or path of a URDF. port: of the viewer.
    """
    its = f"robot:={robot}"
    return (
        ("simulator", "base:=floating", "rate:=100.0", its),
        ("simulator", "drives:=winches", "tendons:=true", "rate:=50.0", f"robot:={WITH_TENDONS}"),
        ("state_estimator", "rate:=50.0", its),
        ("state_estimator", "rate:=50.0", "source:=tendons", f"robot:={WITH_TENDONS}"),
        ("whole_body_ik", "rate:=50.0", "start_blind:=true", its),
        ("trajectory_streamer", its),
        ("trajectory_streamer", "source:=live", "solve:=true", its),
        ("whole_body_streamer", its),
        ("target_source", its),
        ("walker", "upper:=imitate", its),
        ("robot_driver", "hardware:=loopback", its),
        ("controller_bridge", its),
        ("tendon_controller", "rate:=50.0", f"robot:={WITH_TENDONS}"),
        ("whole_body_controller", its),
        ("human_motion", "plates:=2", "plate_frames:=plate1=0,0,0; plate2=1,0,0"),
        ("viewer", f"port:={port}", "rate:=5.0", its),
    )


def words_of(robot: str) -> tuple[str, ...]:
    """Names that mean something to some of these nodes."""
    one = load_robot(robot)
    tendons = tuple(tendon_geometry(load_robot(WITH_TENDONS)).tendon_names[:6])
    return (*one.joint_names, *one.points, "world", one.root_link, "l_foot", "r_foot", *tendons)


def topics_of(node: Any, name: str, namespace: str) -> dict[str, str]:
    """What a node hears, topic -> type, as another one sees it on the graph."""
    found = node.get_subscriber_names_and_types_by_node(name, namespace)
    return {topic: kinds[0] for topic, kinds in found if topic not in EVERYBODYS}
