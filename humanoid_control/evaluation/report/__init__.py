"""Score reports: tables, plots, a self-contained page, and files.

```python
from humanoid_control.evaluation import score_clip
from humanoid_control.evaluation.report import score_page
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.robots import load_robot

body = find_body_points(load_clip("dance").crop(6.0, 9.0))
page = score_page([score_clip(body, load_robot(name, "fixed")) for name in ("wabian2", "hrp2")])
```
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.evaluation.report.files import check_outputs as check_outputs
    from humanoid_control.evaluation.report.files import write_scores as write_scores
    from humanoid_control.evaluation.report.page import score_page as score_page
    from humanoid_control.evaluation.report.tables import detail_tables as detail_tables
    from humanoid_control.evaluation.report.tables import summary_tables as summary_tables
    from humanoid_control.evaluation.report.tables import to_json as to_json

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "files": ["check_outputs", "write_scores"],
        "page": ["score_page"],
        "tables": ["detail_tables", "summary_tables", "to_json"],
    },
    public=["score_page", "to_json", "write_scores"],
)
