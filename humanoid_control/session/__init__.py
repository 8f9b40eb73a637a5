"""Sessions: stacks of nodes, each a process, started, supervised, recorded and stopped together.

```python
from humanoid_control.session import Session

with Session("imitation", "hrp2", {"trajectory_streamer": {"speed": 0.5}}) as session:
    session.wait_first_motion()
    session.run(seconds=20.0)
```
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.session.runs import Run as Run
    from humanoid_control.session.runs import list_runs as list_runs
    from humanoid_control.session.runs import prune_runs as prune_runs
    from humanoid_control.session.session import Session as Session
    from humanoid_control.session.stacks import STACKS as STACKS
    from humanoid_control.session.stacks import Stack as Stack
    from humanoid_control.session.stacks import find_stack as find_stack
    from humanoid_control.session.stacks import parse_settings as parse_settings
    from humanoid_control.session.supervisor import InputRefused as InputRefused
    from humanoid_control.session.supervisor import StackFailure as StackFailure

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "runs": ["Run", "list_runs", "prune_runs"],
        "session": ["Session"],
        "supervisor": ["InputRefused", "StackFailure"],
        "stacks": ["STACKS", "Stack", "find_stack", "parse_settings"],
    },
    public=["STACKS", "Session", "Stack", "find_stack", "list_runs"],
)
