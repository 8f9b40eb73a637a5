"""Web server of a page: port, allowed origins, scene light."""

from __future__ import annotations

import asyncio
import contextlib
import http
import inspect
import io
import ipaddress
import logging
import re
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from humanoid_control.errors import ConfigError, EnvironmentProblem, require_extra, shown
from humanoid_control.viewer.access import ACCESS, Access

if TYPE_CHECKING:
    import viser

HOST = "127.0.0.1"
WINDOW = 2**20  # maximum number of changes sent together


def port_is_free(host: str, port: int) -> bool:
    """Test whether a server could listen there.

    Raises:
        ConfigError: if port or address is invalid.
    """
    if not 1 <= port <= 65535:
        raise ConfigError(f"a port is a number from 1 to 65535, got {port}")
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((host, port))
        except (socket.gaierror, ValueError, TypeError):  # the last two: invalid characters
            raise ConfigError(f"'{shown(host)}' is not an address of this machine") from None
        except OSError:
            return False
    return True


def light_scene(scene: viser.SceneApi, shadows: bool) -> None:
    """Light a scene with shadows, or plainly, which is faster without a GPU."""
    scene.configure_default_lights(cast_shadow=shadows)
    scene.configure_environment_map("warehouse" if shadows else None)
    scene.add_light_hemisphere("/light", ground_color=(150, 150, 160), intensity=2.2, visible=not shadows)


# -------- Access from other sites

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"[\w.:%-]+")  # a name, or an address
_FORBIDDEN = "Not for pages of other sites: {}. A host that may connect is named in 'origins'.\n"


class Origins:
    """Allowed origins of pages: the server's own, loopback, and configured ones.

    The Host header is checked against DNS rebinding: a loopback server accepts loopback names only, others accept
    addresses and the machine's name.
    """

    def __init__(self, more: Iterable[str] = (), listens: str = HOST) -> None:
        """Parse hosts ('lab.example.org') and origins ('https://lab.example.org:8443').

        Args:
            more: additional hosts and origins.
            listens: address of the server.

        Raises:
            ConfigError: if an entry is neither.
        """
        self._hosts, self._origins = set(LOOPBACK), set[tuple[str, str, int | None]]()
        self._named = set[str]()
        self._loopback = listens in LOOPBACK
        if not self._loopback:
            machine = socket.gethostname().lower()
            self._hosts |= {machine, f"{machine.partition('.')[0]}.local", listens}
        for name in more:
            parts = _parts(name if "//" in name else f"//{name}")
            if parts is None or "*" in name or (parts[2] is not None and not parts[0]):
                raise ConfigError(f"origins: '{shown(name)}' is neither a host nor an origin: https://lab.example.org")
            self._named.add(parts[1])
            if parts[0]:
                self._origins.add(parts)
            else:
                self._hosts.add(parts[1])

    def allow(self, origins: Sequence[str], host: str) -> bool:
        """Test whether a request is allowed.

        Args:
            origins: its Origin headers; empty for programs.
            host: its Host header.
        """
        here = _parts(f"//{host}")
        if host and (here is None or not self._answers_to(here[1])):
            return False
        for origin in origins:
            parts = _parts(origin)
            if parts is None or not parts[0]:  # 'null' (sandboxed page), or malformed
                return False
            if parts[1] not in self._hosts and parts not in self._origins and (here is None or parts[1] != here[1]):
                return False
        return True

    def _answers_to(self, name: str) -> bool:
        """Test for an own name, or an allowed address, which cannot be rebound."""
        if name in self._hosts or name in self._named:
            return True
        with contextlib.suppress(ValueError):
            address = ipaddress.ip_address(name.partition("%")[0])
            return address.is_loopback or not self._loopback
        return False


def _parts(origin: str) -> tuple[str, str, int | None] | None:
    """Return scheme, host and port of an origin, or None."""
    try:
        url = urlsplit(origin.strip().lower())
        host, port = url.hostname, url.port
    except ValueError:
        return None
    host = (host or "").rstrip(".")
    if not _HOST.fullmatch(host) or url.username is not None or url.path.strip("/") or url.query or url.fragment:
        return None
    return url.scheme, host, port


_opening = threading.Lock()
_SAFE: list[type] = []  # replacement of viser's message buffer, once


@contextlib.contextmanager
def _checked_by(origins: Origins, access: Access) -> Iterator[list[int]]:
    """Make servers started by `websockets` answer 403 to foreign origins; yield their list.

    A request with the token receives the cookie; a connection with the cookie is marked. viser has no such setting.
    """
    from websockets.asyncio import server

    serve, started = server.serve, list[int]()

    def serve_checked(handler: Any, *args: Any, process_request: Any = None, **more: Any) -> Any:
        async def check(connection: Any, request: Any) -> Any:
            given, host = request.headers.get_all("Origin"), (request.headers.get_all("Host") or [""])[0]
            if not origins.allow(given, host):
                text = _FORBIDDEN.format(shown(", ".join(given) or host))
                return connection.respond(http.HTTPStatus.FORBIDDEN, text)
            answer = process_request(connection, request) if process_request is not None else None
            answer = await answer if inspect.isawaitable(answer) else answer
            if answer is not None and access.in_address(request.path):
                answer.headers["Set-Cookie"] = access.cookie
            return answer

        async def handle(connection: Any) -> None:
            access.shown.set(access.in_cookies(connection.request.headers.get_all("Cookie")))
            await handler(connection)

        started.append(1)
        return serve(handle, *args, process_request=check, **more)

    with _opening:
        server.serve = serve_checked  # type: ignore[assignment,misc]
        try:
            yield started
        finally:
            server.serve = serve  # type: ignore[misc]


class LoopEvent(asyncio.Event):
    """Event that other threads may set, as viser does for each message.

    asyncio's own event is not thread-safe ("deque mutated during iteration").
    """

    def set(self) -> None:
        self._value = True
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # not the loop's thread
            return
        for waiter in list(self._waiters):
            if not waiter.done():
                waiter.set_result(True)


def _make_events_safe() -> None:
    """Make viser's message buffer thread-safe, and send all changes of a `server.atomic` together.

    viser sends 128 changes at a time: slow browsers would draw half of a robot.
    """
    from viser.infra import _infra

    plain = getattr(_infra, "AsyncMessageBuffer", None)
    if plain is not None and "message_event" in getattr(plain, "__dataclass_fields__", {}) and not _SAFE:

        class SafeMessageBuffer(plain):  # type: ignore[misc,valid-type]
            def __init__(self, *args: Any, **more: Any) -> None:
                super().__init__(*args, **{"message_event": LoopEvent(), "max_window_size": WINDOW, **more})

        _infra.AsyncMessageBuffer = SafeMessageBuffer  # type: ignore[misc]
        _SAFE.append(SafeMessageBuffer)


def open_server(port: int, host: str = HOST, origins: Iterable[str] = ()) -> viser.ViserServer:
    """Return the server of one page, closed to other sites.

    Args:
        origins: additional hosts or origins that may connect.

    Raises:
        EnvironmentProblem: if an optional package is missing, or access cannot be restricted.
        ConfigError: if an origin is invalid.
    """
    require_extra("viewer")
    import viser

    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    _make_events_safe()
    access = Access(port)
    with (
        _checked_by(Origins(origins, host), access) as started,
        contextlib.redirect_stdout(io.StringIO()),
    ):  # viser's banner
        server = viser.ViserServer(host=host, port=port, verbose=False)  # verbose=False still prints a banner
    if not started:
        server.stop()
        raise EnvironmentProblem("this release of viser cannot be closed to pages of other sites: install another one")
    ACCESS[server] = access

    @server.on_client_connect
    async def _(client: viser.ClientHandle) -> None:
        if access.shown.get():
            access.clients.add(client.client_id)

    server.gui.configure_theme(show_logo=False, show_share_button=False)  # sharing would use a host of viser
    return server
