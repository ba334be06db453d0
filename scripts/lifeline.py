"""Tells at once when the page of a browser is gone, though the browser itself still runs."""

import http.server
import threading
import time

from chromium import Chromium

# Seconds that a page may take to begin; it is a few lines, which load in one or two.
PATIENCE = 60


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, _Server)
        line = self.server.line
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        line.held.set()
        try:
            while self.connection.recv(1024):
                pass
        except OSError:
            pass  # closed without a farewell
        line.lost.set()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


class _Server(http.server.ThreadingHTTPServer):
    line: "Lifeline"


class Lifeline:
    """An event stream on which nothing is ever sent: only the end of the page's process closes it.

    The page holds it with `new EventSource(url)`. Where the process crashes or is killed, the browser goes on
    without a word, but its connections close. It has a port of its own, as a browser opens only six
    connections to a server.

    Args:
        page: what the page is called where it is told of.

    Attributes:
        held: the page has begun.
        lost: the page is gone.
    """

    def __init__(self, page: str = "the page") -> None:
        self.page = page
        self.held, self.lost = threading.Event(), threading.Event()
        self._began = time.monotonic()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.line = self
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> "Lifeline":
        self._thread.start()
        return self

    def trouble(self, browser: Chromium) -> str | None:
        """Why nothing more is to come from the page, with the browser's last words; None while it may."""
        if browser.process.poll() is not None:
            what = f"Chromium ended by itself with status {browser.process.returncode}"
        elif self.lost.is_set():
            what = f"{self.page} crashed: its process ended"
        elif not self.held.is_set() and time.monotonic() > self._began + PATIENCE:
            what = f"Chromium opened no page within {PATIENCE} s"
        else:
            return None
        return f"{what}:\n{browser.complaints()}"

    def __exit__(self, *error: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
