"""Evaluation of clips and recorded runs: tracking error, collisions, limits, smoothness.

```python
from humanoid_control.evaluation import score_clip
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.robots import load_robot

body = find_body_points(load_clip("dance").crop(6.0, 9.0))
score = score_clip(body, load_robot("wabian2", "fixed"))
print({run.label: run.links["mean"].mean for run in score.runs})
```
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.evaluation.bag import BagReader as BagReader
    from humanoid_control.evaluation.bag import BagWriter as BagWriter
    from humanoid_control.evaluation.clip_quality import ClipMeasures as ClipMeasures
    from humanoid_control.evaluation.clip_quality import ClipQuality as ClipQuality
    from humanoid_control.evaluation.clip_quality import measure_clip as measure_clip
    from humanoid_control.evaluation.ground_contact import ContactAgreement as ContactAgreement
    from humanoid_control.evaluation.ground_contact import GroundContact as GroundContact
    from humanoid_control.evaluation.ground_contact import contact_agreement as contact_agreement
    from humanoid_control.evaluation.ground_contact import measure_ground_contact as measure_ground_contact
    from humanoid_control.evaluation.limit_costs import LimitCosts as LimitCosts
    from humanoid_control.evaluation.limit_costs import measure_limit_costs as measure_limit_costs
    from humanoid_control.evaluation.motion_dynamics import Dynamics as Dynamics
    from humanoid_control.evaluation.motion_dynamics import measure_dynamics as measure_dynamics
    from humanoid_control.evaluation.motion_quality import DriftCheck as DriftCheck
    from humanoid_control.evaluation.motion_quality import JointUse as JointUse
    from humanoid_control.evaluation.motion_quality import MotionQuality as MotionQuality
    from humanoid_control.evaluation.motion_quality import drift_check as drift_check
    from humanoid_control.evaluation.motion_quality import joint_use as joint_use
    from humanoid_control.evaluation.motion_quality import measure_motion as measure_motion
    from humanoid_control.evaluation.reaching import reach_parts as reach_parts
    from humanoid_control.evaluation.reaching import reach_report as reach_report
    from humanoid_control.evaluation.recorded_run import RecordedRun as RecordedRun
    from humanoid_control.evaluation.recorded_run import read_run as read_run
    from humanoid_control.evaluation.recorded_run import run_parts as run_parts
    from humanoid_control.evaluation.recorded_run import run_report as run_report
    from humanoid_control.evaluation.score import RobotScore as RobotScore
    from humanoid_control.evaluation.score import RunScore as RunScore
    from humanoid_control.evaluation.score import retarget_variants as retarget_variants
    from humanoid_control.evaluation.score import score_clip as score_clip
    from humanoid_control.evaluation.score import score_trajectories as score_trajectories
    from humanoid_control.evaluation.self_collision import CollisionCount as CollisionCount
    from humanoid_control.evaluation.self_collision import count_collisions as count_collisions
    from humanoid_control.evaluation.shoulder_singularity import gh_singularity as gh_singularity
    from humanoid_control.evaluation.tracking_error import ErrorPeak as ErrorPeak
    from humanoid_control.evaluation.tracking_error import link_errors as link_errors

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "bag": ["BagReader", "BagWriter"],
        "clip_quality": ["ClipMeasures", "ClipQuality", "measure_clip"],
        "ground_contact": ["ContactAgreement", "GroundContact", "contact_agreement", "measure_ground_contact"],
        "limit_costs": ["LimitCosts", "measure_limit_costs"],
        "motion_dynamics": ["Dynamics", "measure_dynamics"],
        "motion_quality": ["DriftCheck", "JointUse", "MotionQuality", "drift_check", "joint_use", "measure_motion"],
        "reaching": ["reach_parts", "reach_report"],
        "recorded_run": ["RecordedRun", "read_run", "run_parts", "run_report"],
        "score": ["RobotScore", "RunScore", "retarget_variants", "score_clip", "score_trajectories"],
        "self_collision": ["CollisionCount", "count_collisions"],
        "shoulder_singularity": ["gh_singularity"],
        "tracking_error": ["ErrorPeak", "link_errors"],
    },
    public=[
        "BagReader",
        "BagWriter",
        "ClipQuality",
        "MotionQuality",
        "measure_clip",
        "measure_ground_contact",
        "measure_motion",
        "read_run",
        "score_clip",
    ],
)
