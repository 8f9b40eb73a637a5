"""Node `target_source`: random hand goals, reachable and unreachable, as targets."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import MarkerArray

from humanoid_control.nodes.base.messages import KEPT, STREAM_OUT, JointPositions, stamp_of, target_markers
from humanoid_control.nodes.base.parameters import WorldParameters, param
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.serialized_markers import SerializedMarkers
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.reaching import HANDS, REACHABLE, GoalSampler, ReachLeg, ReachScript, ScriptSettings
from humanoid_control.robots import load_robot

GREEN, RED = ColorRGBA(r=0.2, g=0.7, b=0.3, a=0.5), ColorRGBA(r=0.85, g=0.2, b=0.2, a=0.5)
PATIENCE = 5.0  # [s] before a warning names the missing input
GOAL_RADIUS = 0.035  # [m]


@dataclass(frozen=True)
class TargetSourceParameters(WorldParameters):
    """Parameters of the target source."""

    rate: float = param(60.0, "target rate", "Hz", 1.0, 200.0)
    seed: int = param(1, "seed of the random goals", "", 0, 2**31 - 1)
    speed: float = param(0.5, "maximum speed of a moving target", "m/s", 0.01, 5.0)
    stay: float = param(1.2, "dwell time at a goal after the targets arrive", "s", 0.2, 60.0)
    unreachable: float = param(0.4, "share of goals that are too far away or inside the body", "", 0.0, 1.0)
    jump: float = param(0.25, "share of goals to which the targets jump", "", 0.0, 1.0)
    faults: float = param(0.02, "share of non-finite samples during the dwell time", "", 0.0, 0.5)


class TargetSource(TickNode):
    """Node that plays a script of goals from the first hand positions."""

    Parameters = TargetSourceParameters
    params: TargetSourceParameters
    node_name = "target_source"
    published: int  # number of the last published goal

    def configure(self) -> float:
        p = self.params
        self.robot = load_robot(p.robot, "fixed")
        self.sampler = GoalSampler(self.robot)
        self.settings = ScriptSettings(p.speed, p.stay, unreachable=p.unreachable, jump=p.jump, faults=p.faults)
        self.markers = SerializedMarkers(target_markers(HANDS, self.params.world))
        self.targets = self.create_publisher(MarkerArray, "targets", STREAM_OUT)
        self.goals = self.create_publisher(MarkerArray, "goals", KEPT)
        self.estimate = JointPositions(self.robot)
        self.script: ReachScript | None = None
        self.listen(JointState, "estimated_joint_states", self.on_joint_states)
        return p.rate

    def activate(self) -> None:
        self.script = None
        self.published = -1
        self.estimate.reset()
        self.started_at, self.since = 0, time.monotonic()

    def on_joint_states(self, m: JointState) -> None:
        if self.script is None:
            self.estimate.take(m)
            text = self.estimate.problem
            self.health.check("joints", bool(text), Level.WARN, f"estimated_joint_states: {text}")

    def tick(self, now: float) -> None:
        present = self.present()
        if self.script is None and not self.begin(now, present):
            return
        # Targets are evaluated at their stamp; otherwise their speed would be noisy.
        seconds, stamp = max(0.0, 1e-9 * (present - self.started_at)), stamp_of(present)
        assert self.script is not None
        self.markers.set_stamp(stamp)
        self.markers.set_positions(self.script.at(seconds))
        self.targets.publish(self.markers.bytes())
        leg = self.script.leg
        if leg.number != self.published and seconds >= leg.arrive:
            self.published = leg.number
            self.goals.publish(goal_markers(leg, stamp))

    def begin(self, now: float, nanoseconds: int) -> bool:
        """Start once the posture is known and the joints are commanded."""
        known = self.estimate.known
        followed = self.count_publishers("joint_commands") > 0
        late = now - self.since > PATIENCE
        text = "no joint states yet" if not known else "no joint commands yet"
        self.health.check("start", late and not (known and followed), Level.WARN, f"{text}: no targets")
        if not (known and followed):
            return False
        hands = self.robot.point_positions(self.robot.q(self.estimate.values), HANDS)
        self.script, self.started_at = ReachScript(self.sampler, hands, self.params.seed, self.settings), nanoseconds
        return True

    def values(self) -> dict[str, Any]:
        leg = self.script.leg if self.script is not None else None
        return {"goal": leg.number if leg else 0, "kind": leg.goal.kind if leg else ""}


def goal_markers(leg: ReachLeg, stamp: Any) -> MarkerArray:
    """Return markers of a reached goal: id is its number, text its kind."""
    array = target_markers(HANDS, radius=GOAL_RADIUS)
    stays = leg.end - leg.arrive
    for m, (x, y, z) in zip(array.markers, leg.goal.points.tolist(), strict=True):
        m.id, m.text = leg.number, leg.goal.kind
        m.header.stamp, m.color = stamp, GREEN if leg.goal.kind == REACHABLE else RED
        m.pose.position = Point(x=x, y=y, z=z)
        m.lifetime = Duration(sec=int(stays), nanosec=int(1e9 * (stays % 1.0)))
    return array


def main() -> int:
    return main_of(TargetSource)


if __name__ == "__main__":
    sys.exit(main())
