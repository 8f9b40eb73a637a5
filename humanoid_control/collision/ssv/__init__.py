"""Swept-sphere volumes (Schwienbacher 2014, chapter 6): points, lines and triangles swept by a sphere, in segments.

```python
import numpy as np
from humanoid_control.collision.ssv import Segment, SegmentPair, SegmentPairs, SsvModel, Volume

bone = Volume("bone", "line", 0.1, ((0.0, 0.0, -0.2), (0.0, 0.0, 0.2)))
ball = Volume("ball", "point", 0.05, ((0.0, 0.0, 0.0),))
segments = [Segment("arm", "arm_link", (bone,)), Segment("tool", "tool_link", (ball,))]
frames = {"arm_link": (0, np.eye(3), np.zeros(3)), "tool_link": (1, np.eye(3), np.zeros(3))}
model = SsvModel.build(segments, frames, [SegmentPair("arm", "tool")])
pairs = SegmentPairs(model, ancestor_mask=np.array([[0.0], [1.0]]), activation=0.3)
poses = np.tile(np.r_[np.eye(3).ravel(), np.zeros(3)], (2, 1))  # columns of the rotation, then the position
poses[1, 11] = 0.5
pairs.place(poses)
near = pairs.nearest()  # one pair, near.distance == [0.15]
```
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.collision.ssv.distance import NearSegments as NearSegments
    from humanoid_control.collision.ssv.distance import SegmentPairs as SegmentPairs
    from humanoid_control.collision.ssv.distance import volume_distances as volume_distances
    from humanoid_control.collision.ssv.fitting import fit_volumes as fit_volumes
    from humanoid_control.collision.ssv.fitting import volumes_of_shape as volumes_of_shape
    from humanoid_control.collision.ssv.model import PoseArray as PoseArray
    from humanoid_control.collision.ssv.model import SsvModel as SsvModel
    from humanoid_control.collision.ssv.pair_selection import choose_pairs as choose_pairs
    from humanoid_control.collision.ssv.segments import Segment as Segment
    from humanoid_control.collision.ssv.segments import SegmentFile as SegmentFile
    from humanoid_control.collision.ssv.segments import SegmentPair as SegmentPair
    from humanoid_control.collision.ssv.segments import Volume as Volume
    from humanoid_control.collision.ssv.segments import read_segment_file as read_segment_file
    from humanoid_control.collision.ssv.segments import write_segment_file as write_segment_file

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "distance": ["NearSegments", "SegmentPairs", "volume_distances"],
        "fitting": ["fit_volumes", "volumes_of_shape"],
        "model": ["PoseArray", "SsvModel"],
        "pair_selection": ["choose_pairs"],
        "segments": [
            "Segment",
            "SegmentFile",
            "SegmentPair",
            "Volume",
            "read_segment_file",
            "write_segment_file",
        ],
    },
    public=["Segment", "SegmentPairs", "SsvModel", "Volume", "fit_volumes", "read_segment_file", "write_segment_file"],
)
