"""One owner of a topic that moves a robot: who may publish its commands, and whose commands a robot takes.

Two nodes that command the same joints pull them to two postures in turn. So a node commands nothing while another one
does or could (`CommandOwner`), and a robot follows the first one that it hears (`CommandArbiter`). Of requests that
take a while the first is carried out to its end (`RequestOwner`).
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

# Deeper than other streams: with room for one message, those of one publisher push out those of another.
COMMANDS_IN = QoSProfile(depth=10, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT)
# Of streams whose messages are large: each of two publishers keeps one.
TARGETS_IN = QoSProfile(depth=2, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT)
TARGETS_TIMEOUT = 0.5  # [s] of silence after which another publisher of targets or markers is followed
EVENTS_TIMEOUT = 1.0  # [s] of silence after which events of another publisher are taken: seeks, poses, pushes
DISCOVERY = 0.3  # [s] before the first command: a node that finds this one later would jump into its midst
LOOK_PERIOD = 0.05  # [s] between looks at the graph
HEARD = 0.5  # [s] for which somebody counts as commanding after a message
TWINS_SILENCE = 1.0  # [s] after which a node of the same name that commands nothing is taken for one that ended
YIELDS = 0.1  # [s] in which another node has to stop commanding; one that does not is no node of this package
SHOWN = 1.0  # [s] for which a robot reports commands that it did not take


def gid_of(info: Mapping[str, Any]) -> bytes:
    """Identity of the publisher of a message, from what rclpy says about the message; empty where it does not tell."""
    gid = info.get("publisher_gid")
    return bytes(gid["data"]) if gid else b""


def publishers_of(node: Any, topic: str) -> dict[bytes, str]:
    """Identity of each publisher of a topic on the graph, with the full name of its node."""
    return {
        bytes(e.endpoint_gid): f"{e.node_namespace.rstrip('/')}/{e.node_name}"
        for e in node.get_publishers_info_by_topic(topic)
    }


class CommandOwner:
    """Publisher of commands, and the question whether its node may use it.

    A node that does not command yet begins where no other publisher is on the graph. Among nodes of the same name,
    which are the same one started twice, the one with the lowest identity begins, or, after a second in which the
    other commands nothing, this one: the other is the rest of a process that crashed. A node that commands and hears
    another one stops, unless its own identity is the lower one; then the other has to stop at once, or both do. One
    that stops by itself, as until it is known anew where the robot is, owns the topic until another one commands: it
    goes on also beside a node of another name that waits, where otherwise neither would ever begin. Of the nodes of one
    machine the first that begins also has the `Claim`, as long as it owns the topic.

    Attributes:
        topic: its name on the graph. commanding: the node may publish.
    """

    def __init__(self, node: TickNode, topic: str) -> None:
        self._node, self._health = node, node.health
        before = publishers_of(node, topic)
        self._publisher = node.create_publisher(JointState, topic, STREAM_OUT)
        while len(new := publishers_of(node, topic).keys() - before.keys()) > 1:  # another came at the same moment
            before = publishers_of(node, topic)
            node.destroy_publisher(self._publisher)
            self._publisher = node.create_publisher(JointState, topic, STREAM_OUT)
        self._own, self.topic = next(iter(new), b""), self._publisher.topic_name
        self._words = self.topic.rsplit("/", 1)[-1]
        self._others: dict[bytes, tuple[str, float]] = {}  # name, and since when it is seen
        self._heard: dict[bytes, float] = {}
        self._looked = -LOOK_PERIOD
        self._claim, self._refused = Claim(self.topic, node.context.get_domain_id()), False
        node.when_stopped.append(self.restart)
        self.restart()
        node.create_subscription(JointState, topic, self._on_command, COMMANDS_IN, raw=True, takes_info=True)

    def restart(self) -> None:
        """Command nothing until `look` allows it anew, as to a node that never commanded."""
        self._owns = self._refused = False
        self._claim.release()
        self.pause()

    def pause(self) -> None:
        """Command nothing for a moment, and then go on; a robot takes what comes after a break for no step."""
        self.commanding = False
        self._ready_since, self._contested = float("inf"), float("inf")

    def publish(self, message: JointState) -> None:
        """Publish a command, where the node may."""
        if self.commanding:
            self._publisher.publish(message)

    def look(self, now: float, ready: bool = True) -> bool:
        """Test whether the node may command, and report others who do or could. Called in each tick.

        Args:
            now: on the monotonic clock [s].
            ready: the node would command now; False: it waits for something else.
        """
        if now - self._looked >= LOOK_PERIOD:
            self._looked = now
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
            self._heard[gid] = now
            self._owns = self._owns and self.commanding  # in a pause of this one the other took over
            self._contested = min(self._contested, now)

    def _find_others(self, now: float) -> None:
        if self._node.count_publishers(self.topic) < 2:
            self._others.clear()
            return
        found = publishers_of(self._node, self.topic)
        found.pop(self._own, None)
        self._others = {gid: (name, self._others.get(gid, ("", now))[1]) for gid, name in found.items()}

    def _commanding_others(self, now: float) -> dict[bytes, float]:
        """Who was heard lately, and when."""
        self._heard = {gid: at for gid, at in self._heard.items() if now - at < HEARD}
        return self._heard

    def _must_yield(self) -> bool:
        """Test whether a node that commands has to stop, because another one does, too."""
        now = time.monotonic()  # messages may have come since the tick began
        heard = self._commanding_others(now)
        if not heard:
            self._contested = float("inf")
            return False
        return min(heard) < self._own or max(heard.values()) - self._contested > YIELDS

    def _may_begin(self, now: float) -> bool:
        if now - self._ready_since < DISCOVERY or self._commanding_others(now):
            return False
        if self._owns or not self._others:
            return True
        if any(name != self._node.get_fully_qualified_name() for name, _ in self._others.values()):
            return False
        known = now - max(self._ready_since, *(since for _, since in self._others.values()))
        return known > (DISCOVERY if self._own < min(self._others) else TWINS_SILENCE)

    def _report(self, now: float) -> None:
        names = {name for name, _ in self._others.values()}
        names |= {"a node that is not on the graph" for gid in self._commanding_others(now) if gid not in self._others}
        if self._refused and not names:
            names = {"a node of this machine that the graph does not show yet"}
        text = f"{self._words} has another publisher, {', '.join(sorted(names))}: one must go"
        if not self.commanding:
            text += "; nothing is commanded"
        self._health.check("owner", bool(names), Level.ERROR, text)


class CommandArbiter:
    """Choice of one among all who command a robot: the first that is heard, until it is silent.

    Attributes:
        owner: identity of the publisher whose commands are taken; empty: of nobody yet. changes: how often it changed.
    """

    def __init__(self, node: TickNode, topic: str, key: str = "owner") -> None:
        """Prepare.

        Args:
            node: that follows the commands. topic: of the commands.
            key: of the reports in the node's health.
        """
        self._node, self._topic, self._key = node, topic, key
        self.owner, self.changes, self._last = b"", 0, 0.0
        self._refused: dict[bytes, float] = {}
        self._reported = 0.0

    def accepts(self, info: Mapping[str, Any], timeout: float) -> bool:
        """Test whether a command is taken.

        Args:
            info: what rclpy says about the message.
            timeout: silence of the owner after which another one may follow [s].
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
        """Test whether the owner was heard within the last `timeout` before `now` [s]."""
        return bool(self.owner) and now - self._last <= timeout

    def release(self) -> None:
        """Let any publisher follow the present owner."""
        self.owner = b""

    @property
    def owner_name(self) -> str:
        """Full name of the owner's node."""
        return publishers_of(self._node, self._topic).get(self.owner, "a node that is gone")

    def report(self, now: float) -> None:
        """Report commands that were not taken, and of whom. Called in each tick, at `now` [s]."""
        if now - self._reported < LOOK_PERIOD:
            return
        self._reported = now
        refused = [gid for gid, at in self._refused.items() if now - at < SHOWN]
        text = ""
        if refused:
            names = publishers_of(self._node, self._topic)
            owner, *others = (names.get(gid, "a node that is gone") for gid in (self.owner, *refused))
            text = f"{self._topic} from several publishers: {owner} is followed, {', '.join(others)} is not"
        self._node.health.check(self._key, bool(refused), Level.ERROR, text)


class RequestOwner:
    """Choice of one node among those who ask for motions that take a while, on one topic or several.

    The node whose request is carried out may replace it; others wait until it is done, unless that node is gone.
    """

    def __init__(self, node: TickNode) -> None:
        self._node, self._topic, self._owner = node, "", b""

    def check(self, topic: str, info: Mapping[str, Any], busy: bool) -> None:
        """Make sure that a request may be taken.

        Args:
            topic: of the request. info: what rclpy says about it.
            busy: the request that was taken last is still carried out.

        Raises:
            ConfigError: it may not, naming both nodes.
        """
        gid = gid_of(info)
        if not busy or not self._owner or gid == self._owner:
            return
        owner = publishers_of(self._node, self._topic).get(self._owner)
        other = publishers_of(self._node, topic).get(gid, "a node that is gone")
        if owner not in (None, other):
            raise ConfigError(
                f"{topic} of {other} is refused: {self._topic} of {owner} is carried out, until it is done or stopped"
            )

    def take(self, topic: str, info: Mapping[str, Any]) -> None:
        """Take note of whose request is carried out from now on."""
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
    """Subscribe to a stream that moves a robot: one publisher is followed at a time, the others are named.

    Args:
        node: that follows the stream. message, topic, callback, qos: of the subscription.
        timeout: silence of one publisher after which another one is followed [s].
        more: of `TickNode.listen`.
    """
    arbiter = CommandArbiter(node, topic, f"owner {topic}")

    def take(m: Any, info: Mapping[str, Any]) -> None:
        if arbiter.accepts(info, timeout):
            callback(m)

    node.listen(message, topic, take, qos, takes_info=True, **more)
    node.reports.append(arbiter.report)
    return arbiter
