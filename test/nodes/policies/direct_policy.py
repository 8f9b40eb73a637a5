"""The stack `policy` in one process, on a clock of the test's own; see `test.nodes.walking.direct`."""

import time

from humanoid_control.nodes.policy import PolicyNode
from test.nodes.walking.direct import Direct

GAINS = "joint_gains"


class DirectPolicy(Direct):
    """Simulator and node `policy` in this process.

    Attributes:
        thinking: time that each inference takes [s].
    """

    def __init__(self, monkeypatch, urdf, policy, *parameters, simulated=(), **more):
        self.thinking, self.perf = 0.0, 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.perf)
        own = [f"policy:{p}" for p in ("standing:=true", "start:=true", *parameters, f"policy:={policy}")]
        super().__init__(
            monkeypatch,
            *own,
            robot=urdf,
            kind=PolicyNode,
            simulated=("rotors:=quasi_direct", "touching:=soles", *simulated),
            **more,
        )
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
