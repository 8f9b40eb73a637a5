"""Learned policies: reading, description, checks, execution behind a torque gate.

```python
from humanoid_control.policy import Command, GateSettings

print(Command((0.5, 0.0, 0.0)))  # forward, sideward [m/s], yaw rate [rad/s]
print(GateSettings())
```

Formats: LEAPP, BeyondMimic and mjlab, holosoma, Unitree (unitree_rl_lab, unitree_rl_gym), rl_sar, ASAP, booster_gym,
Berkeley Humanoid Lite, FALCON, and our own description. Networks are ONNX files (extra `policy`).
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.policy.baselines import FreezeOnSpeed as FreezeOnSpeed
    from humanoid_control.policy.baselines import Limiter as Limiter
    from humanoid_control.policy.baselines import TargetRateLimit as TargetRateLimit
    from humanoid_control.policy.baselines import Unlimited as Unlimited
    from humanoid_control.policy.checks import Examination as Examination
    from humanoid_control.policy.checks import examine as examine
    from humanoid_control.policy.formats.description import draft_description as draft_description
    from humanoid_control.policy.formats.reader import read_policy as read_policy
    from humanoid_control.policy.gate import GateActivity as GateActivity
    from humanoid_control.policy.gate import GateSettings as GateSettings
    from humanoid_control.policy.gate import TorqueGate as TorqueGate
    from humanoid_control.policy.model import PolicyModel as PolicyModel
    from humanoid_control.policy.motion_file import load_motion as load_motion
    from humanoid_control.policy.network import read_network as read_network
    from humanoid_control.policy.page import policy_data as policy_data
    from humanoid_control.policy.page import policy_page as policy_page
    from humanoid_control.policy.player import PlayReport as PlayReport
    from humanoid_control.policy.player import PolicyPlayer as PolicyPlayer
    from humanoid_control.policy.player import gate_for as gate_for
    from humanoid_control.policy.player import play as play
    from humanoid_control.policy.player import policy_engine as policy_engine
    from humanoid_control.policy.reference import Motion as Motion
    from humanoid_control.policy.reference import MotionFrame as MotionFrame
    from humanoid_control.policy.reference import MotionReference as MotionReference
    from humanoid_control.policy.runner import Command as Command
    from humanoid_control.policy.runner import Policy as Policy
    from humanoid_control.policy.runner import PolicyTargets as PolicyTargets
    from humanoid_control.policy.runner import RobotState as RobotState
    from humanoid_control.policy.runner import load_policy as load_policy
    from humanoid_control.policy.supervision import PolicySupervisor as PolicySupervisor
    from humanoid_control.policy.supervision import SupervisionSettings as SupervisionSettings
    from humanoid_control.policy.supervision import blend_by_torque as blend_by_torque
    from humanoid_control.policy.terms import KINDS as KINDS
    from humanoid_control.policy.terms import TermKind as TermKind
    from humanoid_control.policy.terms import kind_of as kind_of

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "baselines": ["FreezeOnSpeed", "Limiter", "TargetRateLimit", "Unlimited"],
        "checks": ["Examination", "examine"],
        "formats.reader": ["read_policy"],
        "formats.description": ["draft_description"],
        "gate": ["GateActivity", "GateSettings", "TorqueGate"],
        "model": ["PolicyModel"],
        "motion_file": ["load_motion"],
        "network": ["read_network"],
        "page": ["policy_data", "policy_page"],
        "player": ["PlayReport", "PolicyPlayer", "gate_for", "play", "policy_engine"],
        "runner": ["Command", "Policy", "RobotState", "PolicyTargets", "load_policy"],
        "reference": ["Motion", "MotionFrame", "MotionReference"],
        "supervision": ["PolicySupervisor", "SupervisionSettings", "blend_by_torque"],
        "terms": ["KINDS", "TermKind", "kind_of"],
    },
    public=[
        "Command",
        "GateSettings",
        "Policy",
        "PolicyPlayer",
        "PolicySupervisor",
        "SupervisionSettings",
        "TorqueGate",
        "examine",
        "load_motion",
        "load_policy",
        "play",
        "policy_engine",
        "read_policy",
    ],
)
