"""Reaching: reproducible random goals for two hands, and optimal motions between postures.

Some goals and samples are invalid on purpose.

    from humanoid_control.reaching import GoalSampler, ReachScript
    from humanoid_control.robots import load_robot

    robot = load_robot("hrp2", "fixed")
    sampler = GoalSampler(robot)
    hands = robot.frame_positions(robot.q("neutral"), sampler.frames)
    script = ReachScript(sampler, hands, seed=1)
    targets = script.at(2.0)

Optimal arm motion by torque, torque change or jerk:

    from humanoid_control.reaching import ReachSettings, robot_arm, synthesise

    arm = robot_arm(robot, "right")
    reach = synthesise(arm, [0.0] * arm.n, [-0.5, *[0.2] * (arm.n - 1)], 1.0, ReachSettings({"mtc": 1.0}))
    print(reach.cost, reach.start, reach.at([0.5])[0])
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
    from humanoid_control.reaching.optimal.arm import Arm as Arm
    from humanoid_control.reaching.optimal.arm import robot_arm as robot_arm
    from humanoid_control.reaching.optimal.measured import MeasuredReach as MeasuredReach
    from humanoid_control.reaching.optimal.measured import compare as compare
    from humanoid_control.reaching.optimal.measured import compare_person as compare_person
    from humanoid_control.reaching.optimal.measured import read_measured_reaches as read_measured_reaches
    from humanoid_control.reaching.optimal.measured import study_settings as study_settings
    from humanoid_control.reaching.optimal.measured import summary as summary
    from humanoid_control.reaching.optimal.parametrisation import PARAMETRISATIONS as PARAMETRISATIONS
    from humanoid_control.reaching.optimal.parametrisation import Parametrisation as Parametrisation
    from humanoid_control.reaching.optimal.person_arm import person_arm as person_arm
    from humanoid_control.reaching.optimal.reach import CRITERIA as CRITERIA
    from humanoid_control.reaching.optimal.reach import Reach as Reach
    from humanoid_control.reaching.optimal.reach import ReachSettings as ReachSettings
    from humanoid_control.reaching.optimal.reach import criteria_of as criteria_of
    from humanoid_control.reaching.optimal.reach import synthesise as synthesise

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
        "optimal.arm": ["Arm", "robot_arm"],
        "optimal.measured": [
            "MeasuredReach",
            "compare",
            "compare_person",
            "read_measured_reaches",
            "study_settings",
            "summary",
        ],
        "optimal.parametrisation": ["PARAMETRISATIONS", "Parametrisation"],
        "optimal.person_arm": ["person_arm"],
        "optimal.reach": ["CRITERIA", "Reach", "ReachSettings", "criteria_of", "synthesise"],
    },
    public=["CRITERIA", "Goal", "Reach", "ReachSettings", "compare", "robot_arm", "synthesise"],
)
