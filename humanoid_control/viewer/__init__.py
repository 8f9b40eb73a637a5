"""Browser pages of a robot with targets and collision shapes; editor of collision volumes.

```python
from humanoid_control.robots import load_robot
from humanoid_control.viewer import LineUp

page = LineUp(port=8080)
robot = load_robot("hrp2", "fixed")
page.add_robot(robot, robot.postures["neutral"])
page.set_camera(aspect=1.6)
```

Pages need viser (`pip install 'humanoid_control[viewer]'`); screenshots also need Chromium.
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.viewer.access import page_address as page_address
    from humanoid_control.viewer.access import print_address as print_address
    from humanoid_control.viewer.browser import Browser as Browser
    from humanoid_control.viewer.browser import find_chromium as find_chromium
    from humanoid_control.viewer.browser import photograph as photograph
    from humanoid_control.viewer.page import ViewerPage as ViewerPage
    from humanoid_control.viewer.page import ViewState as ViewState
    from humanoid_control.viewer.panel import PanelActions as PanelActions
    from humanoid_control.viewer.server import open_server as open_server
    from humanoid_control.viewer.server import port_is_free as port_is_free
    from humanoid_control.viewer.stills import CollisionRow as CollisionRow
    from humanoid_control.viewer.stills import LineUp as LineUp
    from humanoid_control.viewer.stills import Shot as Shot
    from humanoid_control.viewer.volume_editor.distances import EditorDistances as EditorDistances
    from humanoid_control.viewer.volume_editor.document import Document as Document
    from humanoid_control.viewer.volume_editor.editor import VolumeEditor as VolumeEditor
    from humanoid_control.viewer.volume_editor.page import VolumeEditorPage as VolumeEditorPage

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "access": ["page_address", "print_address"],
        "browser": ["Browser", "find_chromium", "photograph"],
        "page": ["ViewState", "ViewerPage"],
        "panel": ["PanelActions"],
        "server": ["open_server", "port_is_free"],
        "stills": ["CollisionRow", "LineUp", "Shot"],
        "volume_editor.distances": ["EditorDistances"],
        "volume_editor.document": ["Document"],
        "volume_editor.editor": ["VolumeEditor"],
        "volume_editor.page": ["VolumeEditorPage"],
    },
    public=["LineUp", "ViewerPage", "VolumeEditor", "photograph"],
)
