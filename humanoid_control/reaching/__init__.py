"""Reaching: random goals for two hands, that can and that cannot be reached, and a script that plays them.

The same robot and seed give the same targets; some are left out (NaN) on purpose.

    from humanoid_control.reaching import GoalSampler, ReachScript
    from humanoid_control.robots import load_robot

    robot = load_robot("hrp2", "fixed")
    sampler = GoalSampler(robot)
    hands = robot.frame_positions(robot.q("neutral"), sampler.frames)
    script = ReachScript(sampler, hands, seed=1)
    targets = script.at(2.0)
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.reaching.goals import FAR as FAR
    from humanoid_control.reaching.goals import HANDS as HANDS
    from humanoid_control.reaching.goals import INSIDE as INSIDE
    from humanoid_control.reaching.goals import KINDS as KINDS
    from humanoid_control.reaching.goals import REACHABLE as REACHABLE
    from humanoid_control.reaching.goals import Goal as Goal
    from humanoid_control.reaching.goals import GoalSampler as GoalSampler
    from humanoid_control.reaching.goals import ReachLeg as ReachLeg
    from humanoid_control.reaching.goals import ReachScript as ReachScript
    from humanoid_control.reaching.goals import ScriptSettings as ScriptSettings

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "goals": [
            "FAR",
            "Goal",
            "GoalSampler",
            "HANDS",
            "INSIDE",
            "KINDS",
            "REACHABLE",
            "ReachLeg",
            "ReachScript",
            "ScriptSettings",
        ],
    },
)
