"""Tells at once when the page of a browser is gone, though the browser itself still runs."""

import http.server
import threading


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        line = self.server.line  # type: ignore[attr-defined]
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


class Lifeline:
    """An event stream on which nothing is ever sent: only the end of the page's process closes it.

    The page holds it with `new EventSource(url)`. Where the process crashes or is killed, the browser goes on
    without a word, but its connections close. It has a port of its own, as a browser opens only six
    connections to a server.

    Attributes:
        held: the page has begun.
        lost: the page is gone.
    """

    def __init__(self) -> None:
        self.held, self.lost = threading.Event(), threading.Event()
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.line = self  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> "Lifeline":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
