"""Token of a page: only browsers opened with it may request power or motion.

Other users of the machine reach loopback pages too. The token file is private. The address with the token sets a
cookie.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import sys
import time
from collections.abc import Sequence
from contextvars import ContextVar
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit
from weakref import WeakKeyDictionary

from humanoid_control.paths import PACKAGE, home_dir

if TYPE_CHECKING:
    import viser

KEY = "token"  # key in the address, prefix of the cookie name
REFUSED = "refused: open the page with the address that the command printed; it ends with a token"
_BYTES = 16
NOTICE = 10.0  # [s] that a notice is shown; a pad asks seven times a second
_made: list[str] = []  # token of a process that cannot store one


def page_token() -> str:
    """Return the token of this user, created at first use."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or home_dir() / ".local" / "state") / PACKAGE
    path = folder / "page_token"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(made, secrets.token_urlsafe(_BYTES).encode())
            os.close(made)
        found = path.stat()
        token = path.read_text(encoding="ascii", errors="replace").strip()
        if found.st_uid == os.getuid() and not found.st_mode & 0o077 and len(token) >= _BYTES:
            return token
    if not _made:  # for example, the home folder is not writable
        _made.append(secrets.token_urlsafe(_BYTES))
    return _made[0]


def page_address(port: int, host: str = "localhost") -> str:
    """Return the address of a page with its token."""
    return f"http://{host}:{port}/?{KEY}={page_token()}"


class Access:
    """Browsers that have presented the token.

    Args:
        port: port of the page, part of the cookie name, because ports share cookies.
    """

    def __init__(self, port: int) -> None:
        self._token, self._cookie = page_token(), f"{KEY}_{port}"
        self.shown = ContextVar(f"token shown to {port}", default=False)
        self.clients = set[int]()
        self.notified: dict[int | None, float] = {}

    def in_address(self, path: str) -> bool:
        """Test whether a request path contains the token."""
        with contextlib.suppress(ValueError):
            return self._is(parse_qs(urlsplit(path).query).get(KEY, [""])[0])
        return False

    def in_cookies(self, headers: Sequence[str]) -> bool:
        """Test whether the Cookie headers contain the token."""
        for header in headers:
            with contextlib.suppress(CookieError):
                cookie = SimpleCookie(header).get(self._cookie)
                if cookie is not None and self._is(cookie.value):
                    return True
        return False

    @property
    def cookie(self) -> str:
        """Set-Cookie header with the token."""
        return f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"

    def _is(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token.encode())


ACCESS: WeakKeyDictionary[viser.ViserServer, Access] = WeakKeyDictionary()
"""Access to each open server."""


def may_command(server: viser.ViserServer, event: Any) -> bool:
    """Test whether the browser of an event has the token; otherwise notify its user, once while the notice is shown."""
    access, client = ACCESS.get(server), getattr(event, "client_id", None)
    if access is not None and client in access.clients:
        return True
    if (page := getattr(event, "client", None)) is not None:
        now, notified = time.monotonic(), {} if access is None else access.notified
        if now - notified.get(client, -NOTICE) >= NOTICE:
            notified[client] = now
            page.add_notification("No token", REFUSED, auto_close_seconds=NOTICE, color="red")
    return False


def print_address(port: int, host: str) -> None:
    """Print the address to standard error, hidden from other users."""
    local = host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "::")
    sys.stderr.write(f"viewer: {page_address(port, 'localhost' if local else host)}\n")
