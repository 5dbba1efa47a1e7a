"""`Remote`: a cache server that speaks the HTTP protocol of Bazel's remote caches.

`GET` and `PUT` of `/ac/KEY` (an `ActionResult`) and `/cas/SHA256` (its blobs), relative to the
URL's path. The server is optional: after a failure, or a few seconds at most, a build continues
without it and sends it no more requests.
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

# In seconds. A nearby server answers in milliseconds; one slower than a build does not help.
CONNECT_TIMEOUT = 1.0
TIMEOUT = 3.0
# Total time that a build waits for downloads and uploads.
TOTAL = 5.0
# After a failure a process sends no requests for this time, so that its next build does not wait.
PAUSE = 60.0
_CHUNK = 1 << 16
# Characters that must not occur in a request: Python's client rejects or drops them.
_NO_URL = re.compile(r"[^\x21-\x7e]")
# Limit for a result, which is a list of digests.
_LARGEST_RESULT = 1 << 20


# By URL: the end of the pause, on the monotonic clock.
_paused: dict[str, float] = {}


class RemoteError(Exception):
    """A failure of the server. The user sees it only as a note."""


class Remote:
    """One build's connection to a server. Thread-safe.

    `trouble` is the reason why no more requests are sent, if so; `was_told` is true if an earlier
    build of this process had the same trouble and reported it.
    """

    def __init__(self, url: str, *, uploads: bool = True) -> None:
        """Raises InputError for a URL that is not an HTTP URL."""
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
        """The result for that key; None if there is none, or no server."""
        return self._wait(lambda: self._server.get(f"ac/{key}", _LARGEST_RESULT))

    def get_blob(self, digest: Digest) -> bytes | None:
        """The blob, if the server has it and its digest is right."""
        data = self._wait(lambda: self._server.get(f"cas/{digest.hash}", digest.size))
        if data is None:
            return None
        if not digest.is_of(data):
            self.distrust("a blob whose hash is another")
            return None
        return data

    def put(self, key: str, result: bytes, blobs: Sequence[bytes]) -> None:
        """Uploads the blobs and then the result, in the background."""
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
        """Sends no more requests, because the server's response `what` was wrong."""
        self._give_up(f"it gave {what}")

    def close(self, *, waits: bool = True) -> None:
        """Waits for uploads within the time limit, unless `waits` is false."""
        if waits and self.trouble is None and not self._uploader.wait(self._left):
            self._give_up("it takes too long to store what was built")
        for worker in (self._fetcher, self._uploader):
            worker.stop()
        self._server.abandon()

    def _wait(self, ask: Callable[[], bytes | None]) -> bytes | None:
        """Runs `ask` in another thread: a slow name service or server cannot block this one."""
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
    """A daemon thread that runs tasks in order."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self, task: Callable[[], None]) -> None:
        self._tasks.put(task)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Waits at most `seconds`; returns whether all tasks are done."""
        if self._thread is None:
            return True
        done = threading.Event()
        self._tasks.put(done.set)
        return done.wait(max(0.0, seconds))

    def stop(self) -> None:
        """Ends the thread after its current task."""
        self._tasks.put(None)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()


class _Server:
    """HTTP requests, with one connection per thread."""

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
        """The content, of at most `largest` bytes; None if the server does not have it. Raises
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
        """Aborts the requests in progress."""
        self._is_abandoned = True
        for connection in self._connections:
            with contextlib.suppress(OSError, AttributeError):
                # This wakes up a thread that reads from the socket.
                connection.sock.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                connection.close()

    def _finish(self, response: http.client.HTTPResponse) -> None:
        """Reads the rest of an error response; closes the connection if it is too long."""
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
        # A server may close an idle connection that it had kept open.
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
        """Converts all errors of a request to RemoteError."""
        try:
            yield
        except RemoteError:
            raise
        except TimeoutError:
            raise RemoteError("no answer") from None
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            # (AttributeError: another thread closed the connection at this moment.)
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
