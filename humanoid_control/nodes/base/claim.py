"""A name that one process of a machine has at a time."""

from __future__ import annotations

import errno
import socket


class Claim:
    """A topic's name, which the kernel gives to one process of a machine at a time.

    Two nodes that start at once find each other on the graph within seconds where the machine is busy; until then each
    believes itself alone. The name is that of an abstract Unix socket: nothing is left of it when its owner is killed,
    and it reaches as far as a network namespace does, as the graph of one machine.
    """

    def __init__(self, topic: str, domain: int) -> None:
        self._address = f"\0humanoid_control:{domain}:{topic}"
        self._socket: socket.socket | None = None

    def take(self) -> bool:
        """Claim the topic; True where it is this one's, or where the system has no such names."""
        if self._socket is not None or not hasattr(socket, "AF_UNIX"):
            return True
        claimed = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claimed.bind(self._address)
        except OSError as e:
            claimed.close()
            return e.errno != errno.EADDRINUSE
        self._socket = claimed
        return True

    def release(self) -> None:
        """Leave it to others."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
