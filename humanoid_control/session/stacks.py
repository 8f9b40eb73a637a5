"""Stacks of connected nodes for launch files, sessions and docs. Imports no ROS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.nodes.base.parameters import parse_value
from humanoid_control.nodes.node_specs import NODES as NODES
from humanoid_control.nodes.node_specs import NodeSpec as NodeSpec
from humanoid_control.warm_up import GROUPS, TENDONS

COMMANDS = "joint_commands"
WHOLE_BODY_PLAYER = "whole_body_streamer"
PERFORMER = "whole_body_controller"


@dataclass(frozen=True)
class Stack:
    """Set of nodes for one task, in start order.

    Attributes:
        settings: node -> parameter -> value that differs from the default.
        remaps: node -> topic -> topic.
        commands: topic that shows motion.
    """

    name: str
    task: str
    nodes: tuple[NodeSpec, ...]
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    remaps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    commands: str = COMMANDS

    @property
    def player(self) -> str:
        return next((name for name in (WHOLE_BODY_PLAYER, PERFORMER) if name in self), "trajectory_streamer")

    @property
    def executables(self) -> tuple[str, ...]:
        return tuple(n.executable for n in self.nodes)

    def __contains__(self, executable: str) -> bool:
        return executable in self.executables

    def without(self, executable: str) -> Stack:
        return replace(self, nodes=tuple(n for n in self.nodes if n.executable != executable))

    def part(self, only: Sequence[str] = (), without: Sequence[str] = ()) -> Stack:
        """Return the stack with only the nodes of this host.

        Args:
            only: nodes to keep; empty: all.
            without: nodes to remove.

        Raises:
            UnknownNameError: if the stack lacks a node.
            ConfigError: if no node is left.
        """
        for name in (*only, *without):
            if name not in self:
                raise UnknownNameError("node", name, self.executables, hint=f"(in stack {self.name})")
        kept = tuple(
            n for n in self.nodes if n.executable in (only or self.executables) and n.executable not in without
        )
        if not kept:
            raise ConfigError(f"stack {self.name} has no node left to start; its nodes: {', '.join(self.executables)}")
        return replace(self, nodes=kept)

    def kernel_groups(self, settings: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Return kernel groups to compile first, so that nodes do not compile them in parallel.

        Args:
            settings: node -> parameter -> value; overrides the settings of the stack.
        """
        needed = {self.kernels_of(spec, settings) for spec in self.nodes}
        return [group for group in GROUPS if group in needed]

    def kernels_of(self, spec: NodeSpec, settings: Mapping[str, Mapping[str, Any]]) -> str:
        """Return the kernel group of a node, or empty."""
        own = {**self.settings.get(spec.executable, {}), **settings.get(spec.executable, {})}
        return TENDONS if own.get("source") == "tendons" else spec.kernels

    def ros_parameters(self, shared: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return the contents of a ROS parameter file.

        Args:
            shared: parameters of every node.
            settings: node -> parameter -> value; overrides `shared` and the stack.
        """

        def values(node: str) -> dict[str, Any]:
            return {**shared, **self.settings.get(node, {}), **settings.get(node, {})}

        return {"/**": {node: {"ros__parameters": values(node)} for node in self.executables}}


def _stack(name: str, task: str, *nodes: str, **wiring: Any) -> Stack:
    return Stack(name, task, tuple(NODES[n] for n in nodes), **wiring)


GENTLE = {"acceleration": 20.0, "velocity_scale": 0.5}  # for real joints with unknown limits
# 80 % of GENTLE and of the joints' own acceleration limits, so that the driver never clips.
BELOW_DRIVER = {"acceleration": 16.0, "acceleration_scale": 0.8, "velocity_scale": 0.4}
ON_FEET = {"base": "floating", "rate": 250.0, "sensor_every": 1, "publish_tf": False, "stamp": "sim"}
PERFORMS = ON_FEET | {"rate": 500.0}  # torque control needs a higher rate
UNDER_POLICY = {
    "simulator": {**ON_FEET, "rotors": "quasi_direct"},
    "policy": {"start": True, "standing": True, "late": 1.5},  # simulation on the same computer delays the policy
    "viewer": {"follow": True},
}
STACKS = {
    s.name: s
    for s in (
        _stack(
            "imitation",
            "simulated robot that imitates a motion clip, shown in the browser",
            "viewer",
            "simulator",
            "state_estimator",
            "whole_body_ik",
            "trajectory_streamer",
        ),
        _stack(
            "control",
            "clip imitation for a robot with its own driver (joint_states in, joint_commands out), with gentle "
            "defaults: 20 rad/s^2 and half of the joint speed limits",
            "viewer",
            "state_estimator",
            "whole_body_ik",
            "trajectory_streamer",
            settings={"whole_body_ik": GENTLE},
        ),
        _stack(
            "hardware",
            "real robot on its buses that imitates a clip after robot_driver/enable, at 80 % of the default "
            "limits of the driver, which leaves a margin to catch up",
            "viewer",
            "robot_driver",
            "state_estimator",
            "whole_body_ik",
            "trajectory_streamer",
            settings={"whole_body_ik": BELOW_DRIVER},
        ),
        _stack(
            "simulation",
            "simulated robot that waits for joint_commands, shown in the browser",
            "viewer",
            "simulator",
            "state_estimator",
        ),
        _stack(
            "targets",
            "simulated robot that waits for targets, shown in the browser",
            "viewer",
            "simulator",
            "state_estimator",
            "whole_body_ik",
        ),
        _stack(
            "reach",
            "simulated robot that reaches for random goals, some out of reach, shown in the browser",
            "viewer",
            "simulator",
            "state_estimator",
            "whole_body_ik",
            "target_source",
            settings={"whole_body_ik": {"rate": 500.0}, "viewer": {"ik_markers": True}},
        ),
        _stack(
            "tendons",
            "simulated robot that reaches by winches, with joint angles estimated from tendon lengths and "
            "controlled by tensions only",
            "viewer",
            "simulator",
            "state_estimator",
            "tendon_controller",
            "whole_body_ik",
            "target_source",
            settings={
                "simulator": {
                    "tendons": True,
                    "drives": "winches",
                    "noise": "length=0.0001,tension=1",
                    "rate": 250.0,
                    "tendon_every": 1,
                },
                "state_estimator": {
                    "source": "tendons",
                    "mode": "absolute",
                    "compare": "joint_states",
                    "colour": "tension",
                    "tendon_stiffness": 5e4,
                    "slack_tension": 4.0,
                },
                "tendon_controller": {"rate": 250.0},
                "viewer": {"tendons": True},
                "whole_body_ik": {
                    "following_error": 0.5,
                    "velocity_scale": 0.3,
                    "acceleration": 10.0,
                    "tendon_range": True,
                },
                "target_source": {"unreachable": 0.0, "jump": 0.0, "faults": 0.0},
            },
        ),
        _stack(
            "walking",
            "simulated robot that walks on its feet and follows cmd_vel, shown in the browser",
            "viewer",
            "simulator",
            "walker",
            settings={"simulator": ON_FEET, "viewer": {"footsteps": True, "follow": True, "walking": True}},
        ),
        _stack(
            "policy",
            "simulated robot that stands on its feet under a learned policy (policy.policy=FILE) behind the "
            "torque gate and follows cmd_vel, shown in the browser",
            "viewer",
            "simulator",
            "policy",
            settings=UNDER_POLICY,
        ),
        _stack(
            "tracker",
            "live imitation: a simulated robot on its feet under a learned tracker (policy.policy=FILE) "
            "follows a clip or a person, retargeted live, shown in the browser",
            "viewer",
            "simulator",
            "policy",
            WHOLE_BODY_PLAYER,
            settings={**UNDER_POLICY, "viewer": {"follow": True, "player": WHOLE_BODY_PLAYER}},
            # World-frame targets belong to the reference; the tracker follows its postures and velocities.
            remaps={WHOLE_BODY_PLAYER: {"targets": "reference_targets", "contacts": "reference_contacts"}},
        ),
        _stack(
            "dance",
            "simulated robot on its feet: chest and arms imitate a clip, the legs balance and follow cmd_vel, "
            "shown in the browser",
            "viewer",
            "simulator",
            "walker",
            "trajectory_streamer",
            settings={
                "simulator": ON_FEET,
                "walker": {"upper": "imitate"},
                "viewer": {"footsteps": True, "follow": True, "walking": True},
                "trajectory_streamer": {"clip": "gentle_dance"},
            },
        ),
        _stack(
            "perform",
            "simulated robot that performs a clip on its feet by torque control, shown in the browser with "
            "forces and plan",
            "viewer",
            "simulator",
            PERFORMER,
            settings={
                "simulator": PERFORMS,
                PERFORMER: {"clip": "gentle_dance"},
                "viewer": {"footsteps": True, "follow": True, "player": PERFORMER},
            },
        ),
        _stack(
            "whole_body",
            "whole-body imitation: root, legs and arms of a robot follow a clip with feet held on the ground, "
            "without dynamics, shown in the browser",
            "viewer",
            "whole_body_streamer",
            settings={"viewer": {"follow": True, "player": WHOLE_BODY_PLAYER}},
            remaps={WHOLE_BODY_PLAYER: {"reference_joint_states": "joint_states", "reference_odometry": "odom"}},
            commands="joint_states",
        ),
        _stack(
            "human",
            "live person: fits a person to live markers while a simulated robot imitates the person, shown in "
            "the browser",
            "viewer",
            "simulator",
            "state_estimator",
            "whole_body_ik",
            "trajectory_streamer",
            "human_motion",
            settings={"trajectory_streamer": {"source": "live"}, "viewer": {"person": True}},
            remaps={"trajectory_streamer": {"markers": "human/points"}},
        ),
        _stack(
            "direct",
            "imitation without the inverse kinematics node: the streamer solves for the joint positions",
            "viewer",
            "simulator",
            "state_estimator",
            "trajectory_streamer",
            settings={"trajectory_streamer": {"solve": True}},
            remaps={"trajectory_streamer": {"reference_joint_states": "joint_commands"}},
        ),
    )
}


def find_stack(name: str) -> Stack:
    if name not in STACKS:
        raise UnknownNameError("stack", name, STACKS)
    return STACKS[name]


def parse_settings(stack: Stack, settings: list[str]) -> dict[str, dict[str, Any]]:
    """Parse `node.param=value` texts; return node -> parameter -> value.

    Raises:
        ConfigError: if a text is malformed or a value out of range.
        UnknownNameError: if a node or parameter is unknown.
    """
    out: dict[str, dict[str, Any]] = {}
    names = {spec.executable: spec for spec in stack.nodes}
    for text in settings:
        key, equals, value = text.partition("=")
        node, dot, parameter = key.strip().partition(".")
        if not equals or not dot:
            raise ConfigError(f"setting '{text}' must be node.parameter=value, for example whole_body_ik.rate=200")
        if node not in names:
            raise UnknownNameError("node", node, names, hint=f"(in stack {stack.name})")
        out.setdefault(node, {})[parameter] = parse_value(names[node].parameter_class(), parameter, value.strip())
    return out
