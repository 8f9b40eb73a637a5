"""Claims of Schwienbacher 2014: angular momentum of a walk by each method, and encoder calibration in a jig.

    from humanoid_control.robots import load_robot
    from evidence.studies.schwienbacher2014 import CLAIMS, WalkingLab, find_gait

    robot = load_robot("lola", "floating")
    gait, notes = find_gait(robot)
    judgement = CLAIMS["T-34"].judge(WalkingLab(robot, gait))
    print(judgement.verdict, judgement.parts)

`humanoid study momentum` and `humanoid study calibration` print the reports.
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from evidence.studies.schwienbacher2014.momentum_claims import CLAIMS as CLAIMS
    from evidence.studies.schwienbacher2014.momentum_claims import MomentumClaim as MomentumClaim
    from evidence.studies.schwienbacher2014.momentum_claims import MomentumJudgement as MomentumJudgement
    from evidence.studies.schwienbacher2014.momentum_walks import MAIN as MAIN
    from evidence.studies.schwienbacher2014.momentum_walks import MomentumWalkOutcome as MomentumWalkOutcome
    from evidence.studies.schwienbacher2014.momentum_walks import WalkingLab as WalkingLab
    from evidence.studies.schwienbacher2014.momentum_walks import find_gait as find_gait

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "momentum_claims": ["CLAIMS", "MomentumClaim", "MomentumJudgement"],
        "momentum_walks": ["MAIN", "MomentumWalkOutcome", "WalkingLab", "find_gait"],
    },
)
