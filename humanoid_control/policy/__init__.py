"""Learned policies of others: read, explained, checked, run behind a gate on torques.

```python
from humanoid_control.policy import KINDS, kind_of

print(kind_of("gravity_orientation"), KINDS["projected_gravity"].unit)
```

`read_policy` reads the files of LEAPP, BeyondMimic and mjlab, holosoma, Unitree, rl_sar, and our own description;
`examine` checks what was read. Networks are ONNX files: the extra `policy` of pip reads and runs them.
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.policy.checks import Examination as Examination
    from humanoid_control.policy.checks import examine as examine
    from humanoid_control.policy.formats.description import draft_description as draft_description
    from humanoid_control.policy.formats.reader import read_policy as read_policy
    from humanoid_control.policy.model import PolicyModel as PolicyModel
    from humanoid_control.policy.network import read_network as read_network
    from humanoid_control.policy.page import policy_data as policy_data
    from humanoid_control.policy.page import policy_page as policy_page
    from humanoid_control.policy.terms import KINDS as KINDS
    from humanoid_control.policy.terms import kind_of as kind_of

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "checks": ["Examination", "examine"],
        "formats.reader": ["read_policy"],
        "formats.description": ["draft_description"],
        "model": ["PolicyModel"],
        "network": ["read_network"],
        "page": ["policy_data", "policy_page"],
        "terms": ["KINDS", "kind_of"],
    },
)
