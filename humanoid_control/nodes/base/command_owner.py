"""Ownership of topics that move a robot.

Two nodes commanding the same joints would alternate between two postures. `CommandOwner` silences a node while another
commands. `CommandArbiter` follows the first publisher received. `RequestOwner` completes the first request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from humanoid_control.errors import ConfigError
from humanoid_control.nodes.base.graph_watch import Claim as Claim
from humanoid_control.nodes.base.messages import STREAM_OUT
from humanoid_control.nodes.base.tick_node import Level, TickNode

# Deeper than other streams: in a queue of one, messages of one publisher would replace those of another.
COMMANDS_IN = QoSProfile(depth=10, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT)
# Large messages: one for each of two publishers.
TARGETS_IN = QoSProfile(depth=2, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT)
TARGETS_TIMEOUT = 0.5  # [s] silence after which another publisher of targets or markers is followed
EVENTS_TIMEOUT = 1.0  # [s] silence after which events of another publisher are accepted: seeks, poses, pushes
DISCOVERY = 0.3  # [s] discovery time before the first command, so that other nodes see this one first
LOOK_PERIOD = 0.05  # [s] period of graph checks
HEARD = 0.5  # [s] time after a message during which its publisher counts as commanding
TWINS_SILENCE = 1.0  # [s] silence after which a node of equal name counts as crashed
YIELDS = 0.1  # [s] in which another node must stop; if it does not, it is not part of this package
SHOWN = 1.0  # [s] for which rejected commands stay reported


def gid_of(info: Mapping[str, Any]) -> bytes:
    """Return the publisher identity of a message; empty if unavailable."""
    gid = info.get("publisher_gid")
    return bytes(gid["data"]) if gid else b""


def publishers_of(node: Any, topic: str) -> dict[bytes, str]:
    """Return identity and full node name of each publisher of a topic."""
    return {
        bytes(e.endpoint_gid): f"{e.node_namespace.rstrip('/')}/{e.node_name}"
        for e in node.get_publishers_info_by_topic(topic)
    }


class CommandOwner:
    """Publisher of commands with exclusive use of its topic.

    An idle node starts only without other publishers. Of nodes with equal names, the lowest identity starts, others
    after `TWINS_SILENCE`. If two nodes command, the higher identity stops; if it does not, both stop. A paused node
    keeps the topic until another one commands. On one machine, the owner holds a `Claim`.

    Attributes:
        commanding: whether the node may publish.
    """

    def __init__(self, node: TickNode, topic: str) -> None:
        self._node, self._health = node, node.health
        before = publishers_of(node, topic)
        self._publisher = node.create_publisher(JointState, topic, STREAM_OUT)
        # another node started at the same moment
        while len(new := publishers_of(node, topic).keys() - before.keys()) > 1:
            before = publishers_of(node, topic)
            node.destroy_publisher(self._publisher)
            self._publisher = node.create_publisher(JointState, topic, STREAM_OUT)
        self._own, self.topic = next(iter(new), b""), self._publisher.topic_name
        self._words = self.topic.rsplit("/", 1)[-1]
        self._others: dict[bytes, tuple[str, float]] = {}  # name, and time of discovery
        self._last_seen: dict[bytes, float] = {}
        self._checked_at = -LOOK_PERIOD
        self._claim, self._refused = Claim(self.topic, node.context.get_domain_id()), False
        node.when_stopped.append(self.restart)
        self.restart()
        node.create_subscription(JointState, topic, self._on_command, COMMANDS_IN, raw=True, takes_info=True)

    def restart(self) -> None:
        """Give up ownership until `may_command` allows it."""
        self._owns = self._refused = False
        self._claim.release()
        self.pause()

    def pause(self) -> None:
        """Stop commanding but keep ownership."""
        self.commanding = False
        self._ready_since, self._contested = float("inf"), float("inf")

    def publish(self, message: JointState) -> None:
        """Publish if allowed."""
        if self.commanding:
            self._publisher.publish(message)

    def may_command(self, now: float, ready: bool = True) -> bool:
        """Test in each tick whether the node may command, and report competitors.

        Args:
            now: monotonic time [s].
            ready: the node would command now.
        """
        if now - self._checked_at >= LOOK_PERIOD:
            self._checked_at = now
            self._find_others(now)
        if self.commanding:
            self._owns = self._owns and not self._must_yield()
            self.commanding = ready and self._owns
            if not self.commanding:
                self._ready_since = float("inf")
        elif not ready:
            self._ready_since = float("inf")
        else:
            self._ready_since = min(self._ready_since, now)
            may = self._may_begin(now)
            self._refused = may and not self._claim.take()
            self.commanding = may and not self._refused
            self._owns = self._owns or self.commanding
            self._contested = float("inf")
        if not self._owns:
            self._claim.release()
        self._report(now)
        return self.commanding

    def _on_command(self, _: bytes, info: Mapping[str, Any]) -> None:
        gid, now = gid_of(info), time.monotonic()
        if gid and gid != self._own:
            self._last_seen[gid] = now
            self._owns = self._owns and self.commanding  # another node took over during a pause
            self._contested = min(self._contested, now)

    def _find_others(self, now: float) -> None:
        if self._node.count_publishers(self.topic) < 2:
            self._others.clear()
            return
        found = publishers_of(self._node, self.topic)
        found.pop(self._own, None)
        self._others = {gid: (name, self._others.get(gid, ("", now))[1]) for gid, name in found.items()}

    def _commanding_others(self, now: float) -> dict[bytes, float]:
        self._last_seen = {gid: at for gid, at in self._last_seen.items() if now - at < HEARD}
        return self._last_seen

    def _must_yield(self) -> bool:
        now = time.monotonic()  # messages may have arrived since the tick began
        heard = self._commanding_others(now)
        if not heard:
            self._contested = float("inf")
            return False
        # Yield to a lower identity, or to any publisher that does not stop in time.
        return min(heard) < self._own or max(heard.values()) - self._contested > YIELDS

    def _may_begin(self, now: float) -> bool:
        if now - self._ready_since < DISCOVERY or self._commanding_others(now):
            return False
        if self._owns or not self._others:
            return True
        # A node of another name may command at any time.
        if any(name != self._node.get_fully_qualified_name() for name, _ in self._others.values()):
            return False
        # Of equal names, the lowest identity starts first; after a longer silence the other process has crashed.
        known = now - max(self._ready_since, *(since for _, since in self._others.values()))
        return known > (DISCOVERY if self._own < min(self._others) else TWINS_SILENCE)

    def _report(self, now: float) -> None:
        names = {name for name, _ in self._others.values()}
        names |= {"a node outside the graph" for gid in self._commanding_others(now) if gid not in self._others}
        if self._refused and not names:
            names = {"a node of this machine that is not on the graph yet"}
        text = f"{self._words} has another publisher, {', '.join(sorted(names))}: stop one of them"
        if not self.commanding:
            text += "; nothing is commanded"
        self._health.check("owner", bool(names), Level.ERROR, text)


class CommandArbiter:
    """Choice of one commanding publisher: the first one, until it is silent.

    Attributes:
        owner: identity of the followed publisher; empty: none yet.
        changes: number of changes of the owner.
    """

    def __init__(self, node: TickNode, topic: str, key: str = "owner") -> None:
        """Create an arbiter without an owner.

        Args:
            key: key of its health reports.
        """
        self._node, self._topic, self._key = node, topic, key
        self.owner, self.changes, self._last = b"", 0, 0.0
        self._refused: dict[bytes, float] = {}
        self._reported = 0.0

    def accepts(self, info: Mapping[str, Any], timeout: float) -> bool:
        """Test whether a command is accepted.

        Args:
            timeout: silence of the owner after which another publisher is followed [s].
        """
        gid, now = gid_of(info), time.monotonic()
        if gid != self.owner and self.owner and now - self._last <= timeout:
            self._refused[gid] = now
            return False
        if gid != self.owner:
            self.changes += bool(self.owner)
            self.owner = gid
        self._last = now
        self._refused.pop(gid, None)
        return True

    def active(self, now: float, timeout: float) -> bool:
        """Test whether the owner published within `timeout` before `now` [s]."""
        return bool(self.owner) and now - self._last <= timeout

    def release(self) -> None:
        """Allow any publisher to replace the owner."""
        self.owner = b""

    @property
    def owner_name(self) -> str:
        return publishers_of(self._node, self._topic).get(self.owner, "a node that has ended")

    def report(self, now: float) -> None:
        """Report rejected publishers, in each tick."""
        if now - self._reported < LOOK_PERIOD:
            return
        self._reported = now
        refused = [gid for gid, at in self._refused.items() if now - at < SHOWN]
        text = ""
        if refused:
            names = publishers_of(self._node, self._topic)
            owner, *others = (names.get(gid, "a node that has ended") for gid in (self.owner, *refused))
            text = f"{self._topic} from several publishers: {owner} is followed, {', '.join(others)} is ignored"
        self._node.health.check(self._key, bool(refused), Level.ERROR, text)


class RequestOwner:
    """Choice of one node among requests for long motions.

    Its node may replace the current request; others wait until it is done or its node is gone.
    """

    def __init__(self, node: TickNode) -> None:
        self._node, self._topic, self._owner = node, "", b""

    def check(self, topic: str, info: Mapping[str, Any], busy: bool) -> None:
        """Check that a request is allowed.

        Args:
            busy: the previous request is still active.

        Raises:
            ConfigError: if another node's request is active.
        """
        gid = gid_of(info)
        if not busy or not self._owner or gid == self._owner:
            return
        owner = publishers_of(self._node, self._topic).get(self._owner)
        other = publishers_of(self._node, topic).get(gid, "a node that has ended")
        if owner not in (None, other):
            raise ConfigError(
                f"{topic} of {other} is rejected: {self._topic} of {owner} is active until it is done or stopped"
            )

    def take(self, topic: str, info: Mapping[str, Any]) -> None:
        self._topic, self._owner = topic, gid_of(info)


def listen_to_one(
    node: TickNode,
    message: type,
    topic: str,
    callback: Callable[[Any], None],
    timeout: float,
    qos: QoSProfile = COMMANDS_IN,
    **more: Any,
) -> CommandArbiter:
    """Subscribe to a stream that moves a robot, following one publisher at a time.

    Args:
        timeout: silence after which another publisher is followed [s].
        **more: passed to `TickNode.listen`.
    """
    arbiter = CommandArbiter(node, topic, f"owner {topic}")

    def take(m: Any, info: Mapping[str, Any]) -> None:
        if arbiter.accepts(info, timeout):
            callback(m)

    node.listen(message, topic, take, qos, takes_info=True, **more)
    node.reports.append(arbiter.report)
    return arbiter
