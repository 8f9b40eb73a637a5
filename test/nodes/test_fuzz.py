"""Every topic that a node listens to gets messages of any content: no node ends, none commands what is no number."""

import contextlib
from fnmatch import fnmatch

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import BatteryState, JointState

from evidence.studies.fuzz import FAULTS, Fuzz, fuzzed_nodes, message_type, numbers_in, topics_of, words_of
from humanoid_control.session.stacks import NODES
from test.nodes.needed_files import policy_parameters, winch_parameters
from test.places import port

pytestmark = [pytest.mark.ros, pytest.mark.patient]
WHILE_SHOWN = {"contacts", "joint_commands", "ik_markers", "tendon_markers", "human/markers", "footsteps/planned"}
NOT_HERE = {"viewer": WHILE_SHOWN, "policy": {"reference_joint_states", "reference_odometry"}}
"""Topics that the viewer hears with a page open, and a policy if it tracks a motion."""
MANY = {"FOOT": "*", "plateN": "plate*", "targets/NAME": "targets/*"}  # what stands for several topics
ANY = QoSProfile(depth=5, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
HEARD = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
MESSAGES, DIFFERENT = 300, 100  # for each topic, and for each type
PATIENCE = 240.0  # [s] for all nodes at once, beside other tests


class Target:
    """A node in a namespace of its own, publishers for all that it hears, and the last messages of all that it says."""

    def __init__(self, graph, number, name, *parameters):
        self.graph, self.name, self.namespace, self.said = graph, name, f"/of_{name}_{number}", {}
        own = ("missed_warn:=100.0", *parameters)
        self.process = graph.start(name, *own, wait=False, args=("-r", f"__ns:={self.namespace}"))

    def connect(self):
        node, own = self.graph.node, (self.name, self.namespace)
        self.publishers = {
            topic: (message_type(kind), node.create_publisher(message_type(kind), topic, ANY))
            for topic, kind in topics_of(node, *own).items()
        }
        # Where a node hears whether somebody else commands, what is sent looks like its own words: that comes last.
        own_words = {topic for topic, _ in node.get_publisher_names_and_types_by_node(*own)}
        self.echoed = [self.publishers.pop(topic) for topic in own_words & set(self.publishers)]
        if self.name == "viewer":
            return
        for topic, kinds in node.get_publisher_names_and_types_by_node(*own):
            if topic.startswith(self.namespace) and "lifecycle" not in kinds[0]:
                kind, heard = message_type(kinds[0]), []
                self.said[topic] = kind, heard
                node.create_subscription(kind, topic, heard.append, HEARD, raw=True)


@pytest.mark.nightly
def test_no_message_ends_a_node_or_makes_it_say_what_is_no_number(graph):
    started = list(fuzzed_nodes("hrp2", port(7)))
    started.append(("tendon_driver", *winch_parameters(graph.folder)))
    if parameters := policy_parameters():
        started.append(("policy", *parameters))
    names = {one[0] for one in started}
    assert names | {"policy"} == set(NODES)
    targets = [Target(graph, k, *one) for k, one in enumerate(started)]
    for t in targets:
        graph.until(
            lambda t=t: "READY" in graph.output(t.process) or t.process.poll() is not None, f"{t.name} ready", PATIENCE
        )
        assert t.process.poll() is None, graph.output(t.process)

    def pattern(topic):
        for word, any_of_them in MANY.items():
            topic = topic.replace(word, any_of_them)
        return topic

    def not_found():
        """Topics that the table of nodes says to be heard, of which no subscription is found."""
        everything = [topic for topic, _ in graph.node.get_topic_names_and_types()]
        return [
            (name, topic)
            for name, spec in NODES.items()
            if name in names
            for topic in set(spec.subscribes) - NOT_HERE.get(name, set())
            if not any(fnmatch(t, f"*/of_{name}_*/{pattern(topic)}") or t == topic for t in everything)
        ]

    with contextlib.suppress(AssertionError):
        graph.until(lambda: not not_found(), "all topics of the table of nodes", PATIENCE)
    assert not (missing := not_found()), missing
    for t in targets:
        t.connect()
    fuzz, reports = Fuzz(7, words_of("hrp2")), graph.listen(DiagnosticArray, "/diagnostics")
    rooms = [(kind, publisher) for t in targets for kind, publisher in t.publishers.values()]
    assert len(rooms) > 25
    for _, publisher in rooms:
        graph.until(lambda p=publisher: p.get_subscription_count() > 0, f"somebody listens to {publisher.topic}")
    made = {kind: [serialize_message(fuzz.message(kind)) for _ in range(DIFFERENT)] for kind in {k for k, _ in rooms}}
    for _ in range(MESSAGES):
        for kind, publisher in rooms:
            publisher.publish(made[kind][fuzz.rng.integers(DIFFERENT)])
        graph.spin(0.01)
    reports.clear()

    def active():
        """Names of the nodes that say that they are active."""
        statuses = [s for array in reports for s in array.status]
        return {s.name for s in statuses if any((v.key, v.value) == ("state", "active") for v in s.values)}

    graph.until(lambda: {f"{t.namespace}/{t.name}" for t in targets} <= active(), "all nodes, active", PATIENCE)
    wrong = []
    for t in targets:
        assert t.process.poll() is None, f"{t.name} ended:\n{graph.output(t.process)[-2000:]}"
        text = graph.output(t.process)
        lines = (line[:300] for line in text.splitlines() if any(words in line for words in FAULTS))
        wrong += [f"{t.name}: {line}" for line in lines]
        for topic, (kind, heard) in t.said.items():
            if kind is BatteryState:  # which asks for NaN where nothing is known
                continue
            last = [deserialize_message(raw, kind) for raw in heard[-100:]]
            if topic.endswith("human/joint_states"):  # moments that nothing explains are none
                last = [JointState(position=m.position, velocity=m.velocity) for m in last]
            numbers = [x for m in last for x in numbers_in(m)]
            wrong += [f"{topic}: not a number"] if not np.isfinite(numbers).all() else []
    assert not wrong, "\n".join(wrong[:40])
    solver = next(t for t in targets if t.name == "whole_body_ik")
    _, commands = solver.said[f"{solver.namespace}/joint_commands"]
    commands.clear()
    graph.until(lambda: len(commands) > 20, "commands that go on")
    for _ in range(DIFFERENT):
        for kind, publisher in (echoed for t in targets for echoed in t.echoed):
            publisher.publish(serialize_message(fuzz.message(kind)))
        graph.spin(0.01)
    assert sum(len(t.echoed) for t in targets) >= 3 and all(t.process.poll() is None for t in targets)
    assert not [w for t in targets for w in FAULTS if w in graph.output(t.process)]
