"""Row `messages`: random messages on every topic that a node hears: it must continue, and end as it should.

Run as `python -m evidence.studies.faults.messages NODE NAMESPACE` it is the process that sends them: a line on
standard input is how many for each topic, and a seed; the answer is JSON.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evidence.studies.companion import READY, Companion
from evidence.studies.faults.figures import FaultRow, MeasuredFault, Plan, Try
from evidence.studies.faults.stack import ask
from evidence.studies.fuzz import FAULTS, Fuzz, fuzzed_nodes, message_type, topics_of, words_of
from humanoid_control.nodes import NODES
from humanoid_control.session import StackFailure
from humanoid_control.session.supervisor import Supervisor

CHUNK = 10_000  # messages of each topic in a case
DIFFERENT = 500  # of each type in a case
RATE = 2000.0  # [1/s] of all together
PAUSE = 0.005  # [s] after those that are due
VIEWER_PORT = 8485
ENDS, TICKS = 20.0, 20.0  # [s] in which a node must end, and be heard
LISTENED = 20.0  # [s] in which the node's topics must be found


def cases(plan: Plan) -> list[list[Any]]:
    """Each node, in each of its modes, so often that all messages are sent."""
    sizes = [min(CHUNK, plan.messages - k) for k in range(0, plan.messages, CHUNK)]
    nodes = fuzzed_nodes(plan.robot, VIEWER_PORT)
    return [[node[0], k, part, size] for part, size in enumerate(sizes) for k, node in enumerate(nodes)]


@contextlib.contextmanager
def start(plan: Plan) -> Iterator[Try]:
    """Nothing runs but the node of a case."""
    with tempfile.TemporaryDirectory() as folder:
        yield lambda job: random_messages(Path(folder), plan, *job)


def random_messages(folder: Path, plan: Plan, name: str, number: int, part: int, count: int) -> dict[str, Any]:
    """A node under random messages: its exit code, whether it ticked to the end, and lines that nobody thought of."""
    node, *parameters = fuzzed_nodes(plan.robot, VIEWER_PORT)[number]
    child, namespace = f"{node}_{number}_{part}", f"/of_{node}_{number}"
    words = [word for p in ("missed_warn:=100.0", *parameters) for word in ("-p", p)]
    command = [sys.executable, "-u", "-m", NODES[node].module, "--ros-args", *words, "-r", f"__ns:={namespace}"]
    supervisor = Supervisor(folder, lambda *_: None)
    try:
        supervisor.start(child, command, restarts=0)
        supervisor.wait_ready()
        with Companion("faults.messages", node, namespace, plan.robot) as sender:
            if sender.heard() != READY:
                raise StackFailure(f"the sender of messages to {node} did not start")
            sent = ask(sender, count=count, seed=int(plan.rng(name, number, part).integers(1 << 31)))
        process = supervisor.children[child].process
        assert process is not None
        died = process.poll()
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(Exception):
            process.wait(ENDS)
        code = process.poll()
    finally:
        supervisor.stop()
    log = supervisor.children[child].log.read_text(errors="replace")
    lines = [line[:200] for line in log.splitlines() if any(word in line for word in FAULTS)]
    return {**sent, "died": died is not None, "code": -signal.SIGKILL if code is None else code, "lines": lines[:5]}


def judge(outcomes: Sequence[dict[str, Any]]) -> list[MeasuredFault]:
    """Nodes that ended, fell silent, or raised."""
    found = [
        MeasuredFault("messages sent", sum(o["sent"] for o in outcomes)),
        MeasuredFault("most topics of a node", max(len(o["topics"]) for o in outcomes)),
        MeasuredFault("nodes that ended", sum(o["died"] for o in outcomes), 0),
        MeasuredFault("nodes without ticks", sum(not o["ticks"] for o in outcomes), 0),
        MeasuredFault("exit codes other than 0", sum(o["code"] != 0 for o in outcomes), 0),
        MeasuredFault("nodes with an exception in a callback or tick", sum(bool(o["lines"]) for o in outcomes), 0),
    ]
    bad = [o for o in outcomes if o["died"] or not o["ticks"] or o["code"] or o["lines"]]
    reasons = [[*o["lines"], f"exit code {o['code']}"][0][:90] for o in bad]
    texts = [f"  {o['case'][0]}, node {o['case'][1]}: {reason}" for o, reason in zip(bad, reasons, strict=True)]
    return found + [MeasuredFault(text, texts.count(text)) for text in dict.fromkeys(texts)]


MESSAGES_ROW = FaultRow(
    "messages",
    "random messages on every topic of every node (NaN, huge values, wrong lengths and names): no node ends or raises",
    cases,
    start,
    judge,
)


# -------- The process that sends them


class Sender:
    """Publishers for all that a node hears."""

    def __init__(self, name: str, namespace: str, robot: str) -> None:
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.signals import SignalHandlerOptions

        from humanoid_control.nodes.base.messages import EVENTS
        from humanoid_control.nodes.base.runner import make_executor

        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self.node, self._executor = rclpy.create_node("sender"), make_executor()
        self._executor.add_node(self.node)
        self._own, self._words, self._ticked = f"{namespace}/{name}", words_of(robot), 0.0
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, EVENTS)
        self._publishers = self._connect(name, namespace)

    def _connect(self, name: str, namespace: str) -> list[tuple[str, Any]]:
        from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

        anyone = QoSProfile(
            depth=5, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
        )
        end, known, since = time.monotonic() + LISTENED, dict[str, str](), time.monotonic()
        while time.monotonic() < end and (not known or time.monotonic() - since < 1.0):
            self._executor.spin_once(timeout_sec=0.05)
            with contextlib.suppress(Exception):  # not discovered yet
                found = topics_of(self.node, name, namespace)
                if found.keys() != known.keys():
                    known, since = found, time.monotonic()
        return [(kind, self.node.create_publisher(message_type(kind), topic, anyone)) for topic, kind in known.items()]

    def _on_diagnostics(self, message: Any) -> None:
        if any(s.name == self._own for s in message.status):
            self._ticked = time.monotonic()

    def send(self, count: int, seed: int) -> dict[str, Any]:
        """Send so many on each topic, in turn."""
        from rclpy.serialization import serialize_message

        fuzz, rng = Fuzz(seed, self._words), np.random.default_rng(seed)
        made = {
            kind: [serialize_message(fuzz.message(message_type(kind))) for _ in range(min(DIFFERENT, count))]
            for kind in {kind for kind, _ in self._publishers}
        }
        listened = [(kind, p) for kind, p in self._publishers if p.get_subscription_count() > 0]
        begin, sent = time.monotonic(), 0
        for _ in range(count):
            for kind, publisher in listened:
                publisher.publish(made[kind][rng.integers(len(made[kind]))])
                sent += 1
            while sent > RATE * (time.monotonic() - begin):
                self._executor.spin_once(timeout_sec=PAUSE)
        done = time.monotonic()
        while self._ticked <= done and time.monotonic() < done + TICKS:
            self._executor.spin_once(timeout_sec=0.05)
        return {
            "sent": sent,
            "seconds": done - begin,
            "topics": [p.topic for _, p in listened],
            "unheard": [p.topic for _, p in self._publishers if p.get_subscription_count() == 0],
            "ticks": self._ticked > done,
        }


def main(name: str, namespace: str, robot: str) -> None:
    """Send when asked for, until the input ends."""
    import rclpy

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C of the terminal: the end of the input ends it
    sender = Sender(name, namespace, robot)
    print(READY, flush=True)
    for line in sys.stdin:
        print(json.dumps(sender.send(**json.loads(line))), flush=True)
    sender.node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:4])
