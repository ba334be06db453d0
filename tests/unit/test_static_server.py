"""The static server: ranges, entity tags, isolation headers, faults and the request log."""

import contextlib
import gzip
import http.client
import os
import threading
import time

import pytest

from static_server import Fault, Response, StaticServer, parse_range

BODY = bytes(range(256)) * 64


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data.bin").write_bytes(BODY)
    (tmp_path / "module.mjs").write_text("export {};")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "index.html").write_text("<p>deep</p>")
    return tmp_path


@pytest.fixture
def serve(folder):
    """Start a server on the folder with the given options."""
    started = []

    def start(**options):
        server = StaticServer(folder, **options).start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


def ask(server, path, method="GET", body=None, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with contextlib.closing(http.client.HTTPConnection(server.host, server.port, timeout=5)) as connection:
        connection.request(method, path, body=body, headers=named)
        with connection.getresponse() as answer:
            data = answer.read()
            return answer.status, dict(answer.getheaders()), data


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=10-19", (10, 20)),
        ("bytes=90-", (90, 100)),
        ("bytes=90-500", (90, 100)),
        ("bytes=-5", (95, 100)),
        ("bytes=-500", (0, 100)),
        ("bytes=0-1,5-6", None),
        ("bytes=5-2", None),
        ("bytes=-", None),
        ("bytes=a-b", None),
        ("rows=0-1", None),
        ("bytes", None),
    ],
)
def test_parse_range(header, expected):
    assert parse_range(header, 100) == expected


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=100-200", "bytes=-0"])
def test_parse_range_outside(header):
    with pytest.raises(ValueError, match="outside a body of 100 bytes"):
        parse_range(header, 100)


def test_whole_file_and_its_headers(serve):
    status, headers, data = ask(serve(), "/data.bin")
    assert (status, data) == (200, BODY)
    assert headers["Accept-Ranges"] == "bytes"
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Embedder-Policy"] == "require-corp"


def test_part_of_a_file(serve):
    status, headers, data = ask(serve(), "/data.bin", Range="bytes=5-9")
    assert (status, data, headers["Content-Range"]) == (206, BODY[5:10], f"bytes 5-9/{len(BODY)}")


def test_part_past_the_end(serve):
    status, headers, _ = ask(serve(), "/data.bin", Range=f"bytes={len(BODY)}-")
    assert (status, headers["Content-Range"]) == (416, f"bytes */{len(BODY)}")


def test_range_of_another_version_gets_the_whole_file(serve):
    server = serve()
    tag = ask(server, "/data.bin", "HEAD")[1]["ETag"]
    assert ask(server, "/data.bin", Range="bytes=0-3", If_Range=tag)[0] == 206
    assert ask(server, "/data.bin", Range="bytes=0-3", If_Range='"other"')[0] == 200
    assert ask(server, "/data.bin", If_None_Match=tag)[::2] == (304, b"")


def test_head_sends_no_body(serve):
    status, headers, data = ask(serve(), "/data.bin", "HEAD")
    assert (status, headers["Content-Length"], data) == (200, str(len(BODY)), b"")


def test_switches_for_isolation_and_origins(serve):
    headers = ask(serve(isolation=False, cors=True), "/data.bin")[1]
    assert "Cross-Origin-Opener-Policy" not in headers
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert "ETag" in headers["Access-Control-Expose-Headers"]


def test_folders_and_types(serve):
    server = serve()
    assert ask(server, "/deep/")[2] == b"<p>deep</p>"
    status, headers, _ = ask(server, "/deep")
    assert (status, headers["Location"]) == (301, "/deep/")
    assert ask(server, "/module.mjs")[1]["Content-Type"].startswith("text/javascript")
    assert ask(server, "/")[0] == 404


def test_a_packed_file_is_sent_to_those_who_take_it(serve, folder):
    file, packed = folder / "module.mjs", folder / "module.mjs.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    server = serve()
    status, headers, data = ask(server, "/module.mjs", Accept_Encoding="br, gzip")
    assert (status, headers["Content-Encoding"], headers["Vary"]) == (200, "gzip", "Accept-Encoding")
    assert headers["Content-Type"].startswith("text/javascript")
    assert gzip.decompress(data) == file.read_bytes()
    assert ask(server, "/module.mjs", Accept_Encoding="gzip", If_None_Match=headers["ETag"])[0] == 304
    # Whoever takes none, or a part: the file itself, which is another version.
    for asked, wanted in (
        ({}, b"export {};"),
        ({"Accept_Encoding": "gzip", "Range": "bytes=0-5"}, b"export"),
    ):
        _, plain, data = ask(server, "/module.mjs", **asked)
        assert data == wanted
        assert plain["ETag"] != headers["ETag"]
        assert "Content-Encoding" not in plain
        assert plain["Vary"] == "Accept-Encoding"
    # One that is older is of something else.
    os.utime(packed, (0, 0))
    assert ask(server, "/module.mjs", Accept_Encoding="gzip")[2] == b"export {};"


def test_mounts_and_nothing_outside(serve, folder):
    server = serve(mounts={"other": folder / "deep"})
    assert ask(server, "/other/index.html")[0] == 200
    for path in ("/other/../data.bin", "/%2e%2e/secret", "/..%2f..%2fetc/passwd"):
        assert ask(server, path)[0] == 404, path


def test_a_name_longer_than_any_file_has(serve, capfd):
    server = serve()
    for path in ("/" + "a" * 300, "/deep/" + "%C3%A4" * 200, "/" + "a/" * 5000):
        assert ask(server, path)[0] == 404
    assert "Traceback" not in capfd.readouterr().err


def test_missing_folder():
    with pytest.raises(FileNotFoundError, match="not a folder"):
        StaticServer("no/such/folder")


def test_connection_is_kept(serve):
    server = serve()
    connection = http.client.HTTPConnection(server.host, server.port, timeout=5)
    for path, size in (("/data.bin", len(BODY)), ("/absent", None), ("/data.bin", len(BODY))):
        connection.request("GET", path)
        socket = connection.sock
        data = connection.getresponse().read()
        assert size is None or len(data) == size
        assert connection.sock is socket
    connection.close()


def test_dropped_connection_is_logged(serve):
    server = serve(faults=lambda request: Fault(drop_after=1000))
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask(server, "/data.bin")
    assert len(caught.value.partial) == 1000
    (request,) = server.requests
    assert (request.status, request.stop - request.start, request.sent) == (200, len(BODY), 1000)


def test_other_faults(serve):
    faults = {"/data.bin": Fault(ranges=False), "/module.mjs": Fault(status=503)}
    server = serve(faults=lambda request: faults.get(request.path))
    status, headers, data = ask(server, "/data.bin", Range="bytes=0-3")
    assert (status, len(data)) == (200, len(BODY))
    assert "Accept-Ranges" not in headers
    assert ask(server, "/module.mjs")[0] == 503


def test_slow_body_takes_its_time(serve):
    server = serve(faults=lambda request: Fault(bytes_per_second=len(BODY) * 5))
    began = time.monotonic()
    assert ask(server, "/data.bin")[2] == BODY
    assert time.monotonic() - began >= 0.15


def test_routes_answer_posts(serve):
    server = serve(routes={"/echo": lambda request: Response(request.body[::-1])})
    assert ask(server, "/echo", "POST", b"abc")[::2] == (200, b"cba")
    assert ask(server, "/data.bin", "POST", b"abc")[0] == 405


def test_many_clients_at_once(serve):
    server = serve()
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(ask(server, "/data.bin")[2])) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [BODY] * 16
    assert len(server.requests) == 16
