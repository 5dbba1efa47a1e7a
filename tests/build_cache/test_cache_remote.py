"""A cache on a server: nginx with WebDAV, and servers that do not do their part."""

from __future__ import annotations

import base64
import contextlib
import http.server
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from build_cache.support import Cached, found, missed, module

from aotc.cache import remote as remote_module
from aotc.cache.remote import PAUSE, Remote
from aotc.cache.result import ActionResult, Digest
from aotc.errors import InputError

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")

CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log {folder}/access.log;
  client_body_temp_path {folder}/bodies;
  proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  client_max_body_size 1g;
  server {{
    listen 127.0.0.1:{port};
    location /cache/ {{
      root {folder}/data;
      dav_methods PUT;
      create_full_put_path on;
      {more}
    }}
  }}
}}
"""


@pytest.fixture(autouse=True)
def paused(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The servers that this process asks no more: none when a test begins."""
    found: dict[str, float] = {}
    monkeypatch.setattr("aotc.cache.remote._paused", found)
    return found


class Nginx:
    """A server whose files are in `data`; its log tells what was asked."""

    def __init__(self, folder: Path, more: str = "") -> None:
        self.folder = folder
        (folder / "data").mkdir(parents=True)
        self.port = free_port()
        configuration = folder / "nginx.conf"
        configuration.write_text(CONFIGURATION.format(folder=folder, port=self.port, more=more))
        (folder / "users").write_text("me:{PLAIN}secret\n")
        assert NGINX is not None
        self._process = subprocess.Popen(
            [NGINX, "-c", str(configuration), "-e", str(folder / "start.log")]
        )
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.01)
        raise AssertionError((folder / "start.log").read_text())

    def url(self, user: str = "") -> str:
        return f"http://{user}127.0.0.1:{self.port}/cache"

    def requests(self, method: str) -> list[str]:
        """Paths and statuses: "/cache/ac/… 201"."""
        lines = (self.folder / "access.log").read_text().splitlines()
        words = [line.split('"') for line in lines]
        return [
            f"{word[1].split()[1]} {word[2].split()[0]}"
            for word in words
            if word[1].startswith(method)
        ]

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[Callable[..., Nginx]]:
    if NGINX is None:
        pytest.skip("nginx is not installed")
    running: list[Nginx] = []

    def start(more: str = "") -> Nginx:
        running.append(Nginx(tmp_path / f"nginx{len(running)}", more))
        return running[-1]

    yield start
    for server in running:
        server.stop()


def test_a_team_shares_what_one_built(
    cached: Cached, nginx: Callable[..., Nginx], tmp_path: Path
) -> None:
    server = nginx()
    cached.build(module(), "--remote-cache", server.url())
    made = cached.out.read_bytes()
    stored = server.requests("PUT")
    assert stored
    assert all(line.endswith((" 201", " 204")) for line in stored)
    # Blobs are there under their hashes, and results are the protocol's messages.
    for file in (server.folder / "data" / "cache" / "cas").iterdir():
        assert Digest.of(file.read_bytes()).hash == file.name
    results = list((server.folder / "data" / "cache" / "ac").iterdir())
    for file in results:
        for digest in ActionResult.from_bytes(file.read_bytes()).digests:
            assert (server.folder / "data" / "cache" / "cas" / digest.hash).exists()
    assert len(results) == len(cached.files("ac"))

    # Another machine.
    cached.cache = tmp_path / "other"
    assert cached.build(None, "--remote-cache", server.url()) == {"build": "found (on the server)"}
    assert cached.out.read_bytes() == made
    # Now it is here, and the server is not asked.
    asked = len(server.requests("GET"))
    assert cached.build(None, "--remote-cache", server.url()) == {"build": "found"}
    assert len(server.requests("GET")) == asked
    # What the tools made is shared, too.
    cached.cache = tmp_path / "third"
    done = cached.build(module(threads=64), "--remote-cache", server.url())
    device = [step for step in done if step.endswith((".device.ll", ".ptx", ".cubin", ".fatbin"))]
    assert len(device) == 8
    assert all(done[step] == "found (on the server)" for step in device)
    assert len(server.requests("PUT")) > len(stored)


def test_the_environment_names_the_server(
    cached: Cached, nginx: Callable[..., Nginx], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = nginx()
    monkeypatch.setenv("AOTC_REMOTE_CACHE", server.url() + "/")
    monkeypatch.setenv("AOTC_REMOTE_CACHE_UPLOAD", "0")
    cached.build(module(), emit="host-ll")
    assert server.requests("PUT") == []
    monkeypatch.setenv("AOTC_REMOTE_CACHE_UPLOAD", "1")
    cached.build(module(threads=3), emit="host-ll")
    assert server.requests("PUT")
    cached.cache = tmp_path / "other"
    monkeypatch.setenv("AOTC_REMOTE_CACHE_UPLOAD", "0")
    assert cached.build(emit="host-ll") == {"build": "found (on the server)"}


def test_a_switch_that_is_none(cached: Cached, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who writes "false" does not want to upload: it is an error, before anything is sent."""
    monkeypatch.setenv("AOTC_REMOTE_CACHE_UPLOAD", "false")
    cached.build(module(), "--remote-cache", "http://localhost:1/", emit="host-ll", code=2)
    message = "AOTC_REMOTE_CACHE_UPLOAD is 'false': expected one of 1, yes, on, 0, no, off."
    assert cached.outcome.stderr == f"aotc: error: {message}\n"


def test_a_password(cached: Cached, nginx: Callable[..., Nginx], tmp_path: Path) -> None:
    server = nginx(f"auth_basic cache; auth_basic_user_file {tmp_path}/nginx0/users;")
    cached.build(module(), "--remote-cache", server.url("me:secret@"), emit="host-ll")
    assert "note" not in cached.outcome.stderr
    assert server.requests("PUT")
    cached.build(module(threads=3), "--remote-cache", server.url("me:wrong@"), emit="host-ll")
    note = f"the remote cache {server.url()} is left out: GET: 401 Unauthorized"
    assert note in cached.outcome.stderr
    assert "wrong" not in cached.outcome.stderr


def test_files_of_the_server_may_be_damaged(
    cached: Cached, nginx: Callable[..., Nginx], tmp_path: Path
) -> None:
    server = nginx()
    cached.build(module(), "--remote-cache", server.url(), emit="manifest")
    made = cached.out.read_bytes()
    files = sorted(path for path in (server.folder / "data").rglob("*") if path.is_file())
    for i, file in enumerate(files):
        content = file.read_bytes()
        for damaged in (bytes([content[0] ^ 4]) + content[1:], b"", None):
            if damaged is None:
                file.unlink()
            else:
                file.write_bytes(damaged)
            shutil.rmtree(cached.cache)
            cached.build(None, "--remote-cache", server.url(), emit="manifest")
            assert cached.out.read_bytes() == made
            # It was built, and put there again; or it was not needed.
            file.write_bytes(content)
        if i == 7:
            break


class _Answers(http.server.BaseHTTPRequestHandler):
    """A server that answers as `answer` says."""

    answer: Callable[[_Answers], None]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        type(self).answer(self)

    do_PUT = do_GET  # noqa: N815

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def reply_only(self, status: int) -> None:
        """To a request that was read."""
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def answering(answer: Callable[[_Answers], None]) -> Iterator[str]:
    handler = type("Handler", (_Answers,), {"answer": staticmethod(answer)})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def hang(handler: _Answers) -> None:
    time.sleep(2)


def drip(handler: _Answers) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    with contextlib.suppress(OSError):
        for _ in range(60):
            handler.wfile.write(b"x")
            time.sleep(0.05)


def drip_the_header(handler: _Answers) -> None:
    with contextlib.suppress(OSError):
        for letter in "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n" * 3:
            handler.wfile.write(letter.encode())
            time.sleep(0.05)


def cut(handler: _Answers) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"x")
    handler.close_connection = True


def nonsense(handler: _Answers) -> None:
    handler.wfile.write(b"\0\xff this is no HTTP\r\n\r\n")
    handler.close_connection = True


def hang_up(handler: _Answers) -> None:
    handler.close_connection = True
    handler.connection.close()


MISBEHAVIOUR: dict[str, tuple[Callable[[_Answers], None], str]] = {
    "no answer": (hang, "no answer"),
    "drips": (drip, "no answer"),
    "drips the header": (drip_the_header, "no answer"),
    "an error": (lambda h: h.reply(500, b"oh"), "GET: 500 Internal Server Error"),
    "a long error": (lambda h: h.reply(503, b"x" * 200_000), "GET: 503 Service Unavailable"),
    "elsewhere": (lambda h: h.reply(302, b"", Location="/x"), "GET: 302 Found"),
    "forbidden": (lambda h: h.reply(403), "GET: 403 Forbidden"),
    "a page": (lambda h: h.reply(200, b"<html>Log in</html>"), "it gave a result that is none"),
    "nothing": (lambda h: h.reply(200, b""), "it gave a result that is none"),
    "much": (lambda h: h.reply(200, b"x" * (2 << 20)), "it gave a result that is none"),
    "cut": (cut, "it gave a result that is none"),
    "nonsense": (nonsense, "HTTP"),
    "hangs up": (hang_up, ""),
}


@pytest.mark.parametrize("name", MISBEHAVIOUR)
def test_a_server_that_does_not_do_its_part(
    cached: Cached, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build is done, in time, and it is said once."""
    monkeypatch.setattr(remote_module, "TIMEOUT", 0.4)
    answer, why = MISBEHAVIOUR[name]
    cached.build(module(), "--no-cache", emit="host-mlir")
    made = cached.out.read_bytes()
    with answering(answer) as url:
        started = time.monotonic()
        cached.build(None, "--remote-cache", url, emit="host-mlir")
        assert time.monotonic() - started < 3
    assert cached.out.read_bytes() == made
    note = f"aotc: note: the remote cache {url} is left out: "
    assert cached.outcome.stderr.count(note) == 1
    assert why in cached.outcome.stderr.partition(note)[2]
    assert found(cached.build(emit="host-mlir")) == {"build"}


def test_a_server_that_takes_nothing(cached: Cached, monkeypatch: pytest.MonkeyPatch) -> None:
    for status in (405, 413, 507):

        def answer(handler: _Answers, status: int = status) -> None:
            handler.reply(404 if handler.command == "GET" else status)

        with answering(answer) as url:
            text = module(threads=status)
            assert missed(cached.build(text, "--remote-cache", url, emit="host-mlir"))
        assert f"is left out: PUT: {status} " in cached.outcome.stderr


def test_a_server_that_stores_slowly(cached: Cached, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_module, "TOTAL", 0.5)

    def answer(handler: _Answers) -> None:
        if handler.command == "PUT":
            time.sleep(2)
        handler.reply(404 if handler.command == "GET" else 201)

    with answering(answer) as url:
        started = time.monotonic()
        cached.build(module(), "--remote-cache", url, emit="host-mlir")
        assert time.monotonic() - started < 2
    assert "is left out: it takes too long to store what was built" in cached.outcome.stderr


def keep_or_give(
    handler: _Answers, stored: dict[str, bytes], change: Callable[[str, bytes], bytes]
) -> None:
    """As a cache does, but that what it gives went through `change`."""
    if handler.command == "PUT":
        size = int(handler.headers["Content-Length"])
        stored[handler.path] = handler.rfile.read(size)
        handler.reply_only(201)
    elif handler.path in stored:
        handler.reply(200, change(handler.path, stored[handler.path]))
    else:
        handler.reply(404)


def test_a_server_that_lies(cached: Cached, paused: dict[str, float], tmp_path: Path) -> None:
    """It has every result, with other contents; or those of other builds."""
    stored: dict[str, bytes] = {}

    def answer(handler: _Answers) -> None:
        keep_or_give(handler, stored, lambda path, content: change[0](path, content))

    change: list[Callable[[str, bytes], bytes]] = [lambda path, content: content]
    with answering(answer) as url:
        cached.build(module(), "--remote-cache", url, emit="host-mlir")
        made = cached.out.read_bytes()
        results = [content for path, content in stored.items() if path.startswith("/ac/")]
        lies: list[tuple[Callable[[str, bytes], bytes], str]] = [
            (lambda path, c: c if "/ac/" in path else b"y" * len(c), "a blob whose hash"),
            (lambda path, c: c if "/ac/" in path else c[:-1], "a blob whose hash"),
            (
                lambda path, c: results[c == results[0]] if "/ac/" in path else c,
                "a result that is none",
            ),
        ]
        for lie, why in lies:
            change[0] = lie
            paused.clear()
            cached.cache = tmp_path / f"{why}{id(lie)}"
            cached.build(None, "--remote-cache", url, emit="host-mlir")
            assert cached.out.read_bytes() == made
            assert f"is left out: it gave {why}" in cached.outcome.stderr


def test_the_next_build_of_a_process_does_not_ask_again(
    cached: Cached, paused: dict[str, float]
) -> None:
    """Nor tell; a minute later it does."""
    asked: list[str] = []

    def answer(handler: _Answers) -> None:
        asked.append(handler.path)
        handler.reply(500)

    with answering(answer) as url:
        cached.build(module(), "--remote-cache", url, emit="host-mlir")
        assert "is left out" in cached.outcome.stderr
        before = len(asked)
        cached.build(module(threads=3), "--remote-cache", url, emit="host-mlir")
        assert "is left out" not in cached.outcome.stderr
        assert len(asked) == before
        paused[url] -= PAUSE
        cached.build(module(threads=5), "--remote-cache", url, emit="host-mlir")
        assert "is left out" in cached.outcome.stderr
        assert len(asked) > before


def test_nobody_listens(cached: Cached) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    cached.build(module(), "--remote-cache", url, emit="host-mlir")
    assert f"the remote cache {url} is left out: Connection refused" in cached.outcome.stderr
    cached.build(module(threads=3), "--remote-cache", url, "-q", emit="host-mlir")
    assert "note" not in cached.outcome.stderr


def test_a_machine_that_is_not_there(cached: Cached) -> None:
    """Packets to it are lost, as behind a firewall: a listener that accepts nobody."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        with contextlib.ExitStack() as stack:
            for _ in range(4):  # its queue is full now
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(("127.0.0.1", port))
            started = time.monotonic()
            cached.build(module(), "--remote-cache", f"http://127.0.0.1:{port}", emit="host-mlir")
            assert time.monotonic() - started < 4
    assert "is left out: no answer" in cached.outcome.stderr


def test_a_connection_that_the_server_closed_in_between(cached: Cached, tmp_path: Path) -> None:
    """Servers keep connections for some time only: that is no failure."""
    stored: dict[str, bytes] = {}

    def answer(handler: _Answers) -> None:
        keep_or_give(handler, stored, lambda path, content: content)
        handler.close_connection = True

    with answering(answer) as url:
        cached.build(module(), "--remote-cache", url, emit="host-mlir")
        assert "note" not in cached.outcome.stderr
        assert stored
        cached.cache = tmp_path / "other"
        done = cached.build(None, "--remote-cache", url, emit="host-mlir")
    assert done == {"build": "found (on the server)"}


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "host:80", "http://", "http://host:x", "http://:80", "file:///x"]
)
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(InputError, match="is no URL of a server"):
        Remote(url)


def test_credentials_are_decoded_and_not_shown() -> None:
    remote = Remote("http://me%40here:pa%3Ass@host:99/x/")
    assert remote.name == "http://host:99/x/"
    token = base64.b64encode(b"me@here:pa:ss").decode()
    assert remote._server._headers["Authorization"] == f"Basic {token}"
    with pytest.raises(InputError) as caught:
        Remote("ftp://me:secret@host")
    assert "secret" not in str(caught.value)
