"""Simulator and walker in one process, without DDS: messages of each topic go to who listens, or are lost on purpose.

Time is the test's own: a walk of ten seconds takes two, and is the same on a machine that is busy.
"""

from __future__ import annotations

import inspect
import random
import time
from collections import defaultdict

import rclpy
from rclpy.lifecycle import LifecycleNode
from rclpy.serialization import serialize_message
from std_srvs.srv import Trigger

from humanoid_control.nodes.simulator import Simulator
from humanoid_control.nodes.walker import WalkerNode
from test.ending import end
from test.places import domain

TICK = 0.001  # [s] of the test's clock
SENSORS = ("joint_states", "imu", "wrench/l_foot", "wrench/r_foot")


class Bus:
    """Topics of this process.

    Attributes:
        loss: topic -> probability that a message is lost. silent: topics of which nothing arrives.
        change: topic -> function of a message that gives the one to hand on. newest: topic -> message.
    """

    def __init__(self):
        self.listeners, self.publishers = defaultdict(list), defaultdict(list)
        self.all_publishers = []
        self.loss, self.silent, self.change, self.newest = {}, set(), {}, {}
        self.random = random.Random(1)
        self._wanted = {}  # callback -> how many arguments it takes: the message, and what is known of it

    def listen(self, topic, callback, raw=False):
        def as_bytes(message, info):
            self._call(callback, serialize_message(message), info)

        self.listeners[topic].append(as_bytes if raw else callback)

    def publish(self, topic, message, gid=b""):
        self.newest[topic] = message
        if topic in self.silent or self.random.random() < self.loss.get(topic, 0.0):
            return
        message = self.change.get(topic, lambda m: m)(message)
        info = {"publisher_gid": {"data": gid}}
        for callback in list(self.listeners[topic]):
            self._call(callback, message, info)

    def _call(self, callback, *arguments):
        if callback not in self._wanted:
            self._wanted[callback] = len(inspect.signature(callback).parameters)
        callback(*arguments[: self._wanted[callback]])


class Publisher:
    """One of a node, on the graph until it is taken out of the topic's list.

    Attributes:
        node_namespace, node_name, endpoint_gid: as rclpy's TopicEndpointInfo.
    """

    def __init__(self, bus, node, topic):
        self.bus, self.topic, self.topic_name = bus, topic, f"/{topic}"
        self.node_namespace, self.node_name = "/", node.get_name()
        self.endpoint_gid = list(len(bus.all_publishers).to_bytes(16, "big"))
        bus.all_publishers.append(self)
        bus.publishers[topic].append(self)

    def publish(self, message):
        self.bus.publish(self.topic, message, bytes(self.endpoint_gid))

    def get_subscription_count(self):
        return len(self.bus.listeners[self.topic])


class Direct:
    """The stack `walking` in this process, or another node than the walker with the simulator.

    Attributes:
        bus: of its messages. simulator, walker: its nodes. states: that the walker said, in order.
    """

    def __init__(
        self, monkeypatch, *parameters, robot="lola", pace=1.0, simulated=(), walkers=1, kind=WalkerNode, rate=250.0
    ):
        self.now, self.bus, self.states, self.nodes = 100.0, Bus(), [], []
        bus = self.bus
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setenv("ROS_DOMAIN_ID", domain("nodes"))
        monkeypatch.setattr(LifecycleNode, "create_publisher", lambda s, kind, topic, *a, **k: Publisher(bus, s, topic))
        monkeypatch.setattr(
            LifecycleNode, "create_subscription", lambda s, kind, topic, cb, *a, **k: bus.listen(topic, cb, **k)
        )
        monkeypatch.setattr(LifecycleNode, "create_service", lambda s, kind, name, cb, *a, **k: None)
        found = lambda topic: bus.publishers[topic.lstrip("/")]  # noqa: E731
        monkeypatch.setattr(LifecycleNode, "count_publishers", lambda s, topic: len(found(topic)))
        monkeypatch.setattr(LifecycleNode, "get_publishers_info_by_topic", lambda s, topic: list(found(topic)))
        own = [f"robot:={robot}", "priority:=0", f"rate:={rate}", *parameters]
        of_simulator = ["base:=floating", "sensor_every:=1", "publish_tf:=false", "stamp:=sim", *simulated]
        own += [f"simulator:{p}" for p in (*of_simulator, f"real_time_factor:={pace}")]
        rclpy.init(args=["--ros-args", *(a for p in own for a in ("-p", p))])
        for topic in ("walking/state", "performing/state", "~/state"):
            bus.listeners[topic].append(lambda m: self.states.append(m.data))
        self.simulator = self._node(Simulator)
        self.walkers = [self._node(kind) for _ in range(walkers)]
        self.walker = self.walkers[0]
        self._due = [self.now] * len(self.nodes)

    def _node(self, kind):
        node = kind()
        self.nodes.append(node)
        node.trigger_configure()
        assert not node.refused, node.refused
        node.trigger_activate()
        return node

    @property
    def state(self):
        return self.states[-1]

    @property
    def engine(self):
        return self.simulator.engine

    @property
    def open(self):
        """Keys of what the walker complains about."""
        return set(self.walker.health.open)

    def run(self, seconds, until=None, meanwhile=None):
        """Let time pass; whether `until` came true. `meanwhile` is called 20 times a second."""
        end, called = self.now + seconds, -1.0
        while self.now < end:
            if until is not None and until():
                return True
            if meanwhile is not None and self.now - called >= 0.05:
                called = self.now
                meanwhile()
            self.now += TICK
            for k, node in enumerate(self.nodes):
                if node.wake:
                    node.wake = False
                    node.run_extra_tick()
                elif self.now >= self._due[k]:
                    self._due[k] += 1.0 / node.rate
                    node.run_tick(0)
        return until is not None and bool(until())

    def stand(self):
        assert self.run(8.0, lambda: self.states and self.state == "STAND"), self.walker.health.open

    def call(self, service):
        """Call a service of the walker."""
        return getattr(self.walker, f"on_{service}")(Trigger.Request(), Trigger.Response())

    def close(self):
        for node in self.nodes:
            node.trigger_deactivate()  # or its claim of the commands would outlive it in this process
            node.close()
            end(node.destroy_node)
        end(rclpy.try_shutdown)
