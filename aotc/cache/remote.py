"""`Remote`: a cache on a server, by the HTTP protocol of Bazel's remote caches.

`GET` and `PUT` of `/ac/KEY` (an `ActionResult`) and `/cas/SHA256` (its blobs), under the URL's
path. The server is a help and no need: whatever it does, a build goes on without it after a few
seconds at most, and asks it no more.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import queue
import re
import socket
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence

from aotc.cache.result import Digest
from aotc.errors import InputError

# In seconds. A server that is near answers in milliseconds; to be slower than a build is no help.
CONNECT_TIMEOUT = 1.0
TIMEOUT = 3.0
# For all that a build waits for: what it fetches, and what it puts there.
TOTAL = 5.0
# How long a process asks a server no more that had failed: its next build would wait again.
PAUSE = 60.0
_CHUNK = 1 << 16
# What requests may not have, and Python refuses when it sends one, or leaves out.
_NO_URL = re.compile(r"[^\x21-\x7e]")
# Of a result, which is a list of digests.
_LARGEST_RESULT = 1 << 20


# By URL: until when, by the monotonic clock.
_paused: dict[str, float] = {}


class RemoteError(Exception):
    """The server did not do its part. Never reaches the user but as a note."""


class Remote:
    """One build's view of a server. For several threads.

    `trouble` is why the server is asked no more, if so; `was_told` whether a build of this process
    before had that trouble, and told of it.
    """

    def __init__(self, url: str, *, uploads: bool = True) -> None:
        """Raises InputError for a URL that is none of HTTP's."""
        self._server = _Server(url)
        self.name = self._server.name
        self._url = url
        self.was_told = time.monotonic() < _paused.get(url, 0.0)
        self.trouble: str | None = "it failed a minute ago" if self.was_told else None
        self._uploads = uploads
        self._left = TOTAL
        self._lock = threading.Lock()
        self._fetcher = _Worker()
        self._uploader = _Worker()

    def get_result(self, key: str) -> bytes | None:
        """The result of that key; None where there is none, or no server."""
        return self._wait(lambda: self._server.get(f"ac/{key}", _LARGEST_RESULT))

    def get_blob(self, digest: Digest) -> bytes | None:
        """The blob, if it is there and is the one."""
        data = self._wait(lambda: self._server.get(f"cas/{digest.hash}", digest.size))
        if data is None:
            return None
        if not digest.is_of(data):
            self.distrust("a blob whose hash is another")
            return None
        return data

    def put(self, key: str, result: bytes, blobs: Sequence[bytes]) -> None:
        """Puts a result there, after its blobs, while the build goes on."""
        if not self._uploads or self.trouble is not None:
            return
        server = self._server

        def upload() -> None:
            if self.trouble is not None:
                return
            try:
                for blob in blobs:
                    server.put(f"cas/{Digest.of(blob).hash}", blob)
                server.put(f"ac/{key}", result)
            except RemoteError as error:
                self._give_up(str(error))

        self._uploader.start(upload)

    def distrust(self, what: str) -> None:
        """Asks no more after the server gave `what`."""
        self._give_up(f"it gave {what}")

    def close(self, *, waits: bool = True) -> None:
        """Waits until what was put is there, as long as there is time; or does not wait."""
        if waits and self.trouble is None and not self._uploader.wait(self._left):
            self._give_up("it takes too long to store what was built")
        for worker in (self._fetcher, self._uploader):
            worker.stop()
        self._server.abandon()

    def _wait(self, ask: Callable[[], bytes | None]) -> bytes | None:
        """What `ask` gives, from another thread: no name service, no slow server can hold us."""
        with self._lock:
            if self.trouble is not None:
                return None
            answers: queue.SimpleQueue[bytes | RemoteError | None] = queue.SimpleQueue()

            def run() -> None:
                try:
                    answers.put(ask())
                except RemoteError as error:
                    answers.put(error)

            started = time.monotonic()
            self._fetcher.start(run)
            try:
                answer = answers.get(timeout=max(0.0, min(TIMEOUT, self._left)))
            except queue.Empty:
                answer = RemoteError(f"no answer in {TIMEOUT:.0f} seconds")
            self._left -= time.monotonic() - started
            if isinstance(answer, RemoteError):
                self._give_up(str(answer))
                return None
            return answer

    def _give_up(self, why: str) -> None:
        if self.trouble is None:
            self.trouble = why
            _paused[self._url] = time.monotonic() + PAUSE
        self._server.abandon()


class _Worker:
    """A thread that does one thing after the other, and keeps no process alive."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self, task: Callable[[], None]) -> None:
        self._tasks.put(task)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether all is done, after `seconds` at most."""
        if self._thread is None:
            return True
        done = threading.Event()
        self._tasks.put(done.set)
        return done.wait(max(0.0, seconds))

    def stop(self) -> None:
        """Ends the thread after what it does now."""
        self._tasks.put(None)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()


class _Server:
    """Requests, over a connection of each thread's own."""

    def __init__(self, url: str) -> None:
        try:
            parts = urllib.parse.urlsplit(url)
            port = parts.port
        except ValueError:
            raise _no_url(url) from None
        if parts.scheme not in ("http", "https") or not parts.hostname or _NO_URL.search(url):
            raise _no_url(url)
        self._is_secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, port
        self._path = parts.path.rstrip("/")
        self._headers = {"User-Agent": "aotc", "Accept-Encoding": "identity"}
        if parts.username is not None:
            words = (urllib.parse.unquote(word or "") for word in (parts.username, parts.password))
            token = base64.b64encode(":".join(words).encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"
        self.name = _without_password(url)
        self._own = threading.local()
        self._connections: list[http.client.HTTPConnection] = []
        self._is_abandoned = False

    def get(self, path: str, largest: int) -> bytes | None:
        """The content, of at most `largest` bytes; None where there is none. Raises
        RemoteError."""
        with self._told():
            response = self._ask("GET", path)
            if response.status == 404:
                self._finish(response)
                return None
            if response.status != 200:
                raise RemoteError(f"GET: {response.status} {response.reason}")
            data = response.read(largest)
            self._finish(response)
            return data

    def put(self, path: str, content: bytes) -> None:
        """Raises RemoteError."""
        with self._told():
            response = self._ask("PUT", path, content)
            if response.status not in (200, 201, 202, 204):
                raise RemoteError(f"PUT: {response.status} {response.reason}")
            self._finish(response)

    def abandon(self) -> None:
        """Ends what is under way."""
        self._is_abandoned = True
        for connection in self._connections:
            with contextlib.suppress(OSError, AttributeError):
                # A thread that reads from it wakes up.
                connection.sock.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                connection.close()

    def _finish(self, response: http.client.HTTPResponse) -> None:
        """Reads what is left, of an error's page; what is too long ends the connection."""
        response.read(_CHUNK)
        if not response.isclosed():
            self._own.connection.close()
            self._own.connection = None

    def _ask(self, method: str, path: str, body: bytes | None = None) -> http.client.HTTPResponse:
        is_fresh = getattr(self._own, "connection", None) is None
        connection = self._connection()
        target = f"{self._path}/{path}"
        try:
            connection.request(method, target, body=body, headers=self._headers)
            return connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):
            if is_fresh:
                raise
        # A server may close a connection that it kept open for a while.
        self._own.connection.close()
        self._own.connection = None
        connection = self._connection()
        connection.request(method, target, body=body, headers=self._headers)
        return connection.getresponse()

    def _connection(self) -> http.client.HTTPConnection:
        if self._is_abandoned:
            raise RemoteError("given up")
        connection: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._is_secure else http.client.HTTPConnection
            connection = kind(self._host, self._port, timeout=CONNECT_TIMEOUT)
            connection.connect()
            if connection.sock is not None:
                connection.sock.settimeout(TIMEOUT)
            self._own.connection = connection
            self._connections.append(connection)
        return connection

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Makes RemoteError of all that can go wrong."""
        try:
            yield
        except RemoteError:
            raise
        except TimeoutError:
            raise RemoteError("no answer") from None
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            # (AttributeError: a connection that was closed in this moment.)
            text = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise RemoteError(text) from None


def _no_url(url: str) -> InputError:
    return InputError(
        f"The remote cache '{_without_password(url)}' is no URL of a server: write "
        "http://HOST[:PORT][/PATH]."
    )


def _without_password(url: str) -> str:
    before, sign, after = url.rpartition("@")
    return f"{before.partition('//')[0]}//{after}" if sign else url
