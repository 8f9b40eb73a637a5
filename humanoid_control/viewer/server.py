"""Web server of a page: viser, an optional extra, and the port that it listens on."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import socket
from typing import TYPE_CHECKING

from humanoid_control.errors import ConfigError, EnvironmentProblem, missing_package

if TYPE_CHECKING:
    import viser

HOST = "127.0.0.1"


def missing_viewer() -> EnvironmentProblem | None:
    """An error that says what to install for pages in the browser; None where all of it is there."""
    for package in ("viser", "trimesh"):
        if importlib.util.find_spec(package) is None:
            return missing_package(ModuleNotFoundError(name=package))
    return None


def require_viewer() -> None:
    """Raise a clear error where pages cannot be shown.

    Raises:
        EnvironmentProblem: an optional package is not installed.
    """
    if problem := missing_viewer():
        raise problem


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


def open_server(port: int, host: str = HOST) -> viser.ViserServer:
    """A server of one page.

    Raises:
        EnvironmentProblem: an optional package is not installed.
    """
    require_viewer()
    import viser

    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    return viser.ViserServer(host=host, port=port, verbose=False)
