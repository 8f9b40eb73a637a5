"""The stack `policy` in one process, on a clock of the test's own; see `test.nodes.walking.direct`."""

import time

from humanoid_control.nodes.policy import PolicyNode
from humanoid_control.nodes.whole_body_streamer import WholeBodyStreamer
from test.nodes.walking.direct import Direct

GAINS = "joint_gains"


class DirectPolicy(Direct):
    """Simulator and node `policy` in this process.

    Attributes:
        thinking: time that each inference takes [s]. streamer: node whole_body_streamer; None: not asked for.
    """

    def __init__(self, monkeypatch, urdf, policy, *parameters, simulated=(), streamer=(), **more):
        self.thinking, self.perf = 0.0, 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.perf)
        own = [f"policy:{p}" for p in ("standing:=true", "start:=true", f"policy:={policy}", *parameters)]
        own += [f"whole_body_streamer:{p}" for p in streamer]
        super().__init__(
            monkeypatch,
            *own,
            robot=urdf,
            kind=PolicyNode,
            simulated=("rotors:=quasi_direct", "touching:=soles", *simulated),
            **more,
        )
        self.streamer = self._node(WholeBodyStreamer) if streamer else None
        self._due = [self.now] * len(self.nodes)
        for one in self.policy.policies:
            self._slow_down(one)

    def _slow_down(self, policy):
        step = policy.step

        def slow(*given):
            self.perf += self.thinking
            return step(*given)

        policy.step = slow

    @property
    def policy(self):
        """The node."""
        return self.walker

    def until(self, state, seconds=8.0, meanwhile=None):
        """Let time pass until the node says a state."""
        assert self.run(seconds, lambda: self.states and self.state == state, meanwhile), (self.states, self.said_of())

    def said_of(self):
        """What the node complains about, by its key."""
        return dict(self.policy.health.open)
