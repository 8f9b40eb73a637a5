"""Reaching at random: goals for the hands that can and that cannot be reached, and the proof of how a run went.

Not among the names of `humanoid_control.ik`: what asks the hands for something is no part of the solver.
"""

from humanoid_control.reaching.goals import (
    FAR,
    HANDS,
    INSIDE,
    KINDS,
    REACHABLE,
    Goal,
    GoalSampler,
    Leg,
    ReachScript,
    ScriptSettings,
)

__all__ = [
    "FAR",
    "HANDS",
    "INSIDE",
    "KINDS",
    "REACHABLE",
    "Goal",
    "GoalSampler",
    "Leg",
    "ReachScript",
    "ScriptSettings",
]
