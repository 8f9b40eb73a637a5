"""Web server of a page: viser, an optional extra, the port that it listens on, and the light of its scene."""

from __future__ import annotations

import contextlib
import logging
import socket
from typing import TYPE_CHECKING

from humanoid_control.errors import ConfigError, require_extra

if TYPE_CHECKING:
    import viser

HOST = "127.0.0.1"


def port_is_free(host: str, port: int) -> bool:
    """Test whether a server could listen there.

    Raises:
        ConfigError: not a port, or not an address.
    """
    if not 1 <= port <= 65535:
        raise ConfigError(f"a port is a number from 1 to 65535, got {port}")
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((host, port))
        except socket.gaierror:
            raise ConfigError(f"'{host}' is no address of this machine to listen on") from None
        except OSError:
            return False
    return True


def light_scene(scene: viser.SceneApi, shadows: bool) -> None:
    """Light a scene: with shadows and the light of a room, or plainly.

    A browser without a graphics processor draws shadows and reflections of a room many times slower than plain light.
    """
    scene.configure_default_lights(cast_shadow=shadows)
    scene.configure_environment_map("warehouse" if shadows else None)
    scene.add_light_hemisphere("/light", ground_color=(150, 150, 160), intensity=2.2, visible=not shadows)


def open_server(port: int, host: str = HOST) -> viser.ViserServer:
    """A server of one page.

    Raises:
        EnvironmentProblem: an optional package is not installed.
    """
    require_extra("viewer")
    import viser

    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    return viser.ViserServer(host=host, port=port, verbose=False)
