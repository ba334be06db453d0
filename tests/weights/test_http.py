"""HTTP sources against a server that misbehaves: what was asked, what was sent, what the caller is told."""

import asyncio
import time

import numpy as np
import pytest

from pellucid import weights
from pellucid.errors import FormatError, SourceError
from pellucid.weights import MissingFile, settings
from pellucid.weights.header import LARGEST_READ
from weights import samples

MEGABYTE = 1_000_000
SLACK = 1.05  # most traffic for a load with a broken connection, as a multiple of the file


@pytest.fixture
def model(server):
    """Twelve megabytes of safetensors at /model.safetensors: large and small tensors."""
    random = np.random.default_rng(3)
    arrays = {f"{k:02}.large": random.integers(0, 255, 2_000_003, dtype=np.uint8) for k in range(6)}
    arrays |= {f"{k:02}.small": random.integers(0, 255, 101 + k, dtype=np.uint8) for k in range(50)}
    server.files["/model.safetensors"] = samples.safetensors_file(arrays)
    return arrays


def load(server, **options):
    """Open and read everything; the arrays by name."""
    checkpoint = weights.open(f"{server.url}/model.safetensors")
    infos = list(checkpoint.values())
    return dict(zip((t.name for t in infos), weights.read(checkpoint, infos, **options), strict=True))


def check(got, want):
    assert got.keys() == want.keys()
    for name, array in want.items():
        assert got[name].tobytes() == array.tobytes(), name


def test_no_byte_is_sent_twice_and_several_requests_are_in_flight(server, model):
    server.delay = 0.002
    check(load(server), model)
    size = len(server.files["/model.safetensors"])
    assert server.sent() == size
    assert server.sent_twice() == 0
    assert server.most_in_flight() >= 3
    assert max(r.stop - r.start for r in server.log) <= LARGEST_READ == 8 * MEGABYTE


def test_opening_reads_the_header_only(server, model):
    checkpoint = weights.open(f"{server.url}/model.safetensors")
    assert len(checkpoint) == len(model)
    assert [r.status for r in server.log] == [206]
    assert server.log[0].sent <= 1 << 18


def test_a_long_header_is_read_in_few_requests_of_limited_size(server):
    words = [f"word {k}" * 20 for k in range(150_000)]
    strings = b"".join(samples.gguf_string(w.encode()) for w in words)
    array = len(words).to_bytes(8, "little")
    pair = samples.gguf_pair(b"vocabulary", 9, (8).to_bytes(4, "little") + array + strings)
    server.files["/v.gguf"] = samples.gguf_raw([pair], [samples.gguf_tensor()])
    assert len(strings) > 20 * MEGABYTE
    assert weights.open(f"{server.url}/v.gguf").metadata["vocabulary"] == words
    assert max(r.stop - r.start for r in server.log) <= LARGEST_READ
    assert len(server.log) <= 10
    assert server.sent_twice() == 0


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_a_connection_dropped_at_60_percent_goes_on_where_it_stopped(server, model, reset):
    size = len(server.files["/model.safetensors"])
    dropped = []

    def allow(request):
        at = size * 6 // 10
        if request.start < at < request.stop and not dropped:
            dropped.append(request)
            return at - request.start
        return None

    server.allow, server.reset = allow, reset
    check(load(server), model)
    assert dropped
    assert server.sent() <= SLACK * size
    if not reset:  # what a reset throws away in the sockets was sent, though it never arrived
        assert server.sent_twice() == 0


def test_a_body_that_is_always_cut_is_an_error_after_retries(server, model):
    wall = 5 * MEGABYTE
    server.allow = lambda request: max(0, wall - request.start)
    with pytest.raises(SourceError, match=r"ended at byte .*gave up at byte [\d,]+ of .* after 4 attempts"):
        load(server)


def test_every_answer_cut_short_still_arrives(server, model):
    server.allow = lambda request: 300_000
    check(load(server), model)
    assert server.sent_twice() == 0


def test_a_server_without_range_is_one_download(server, model):
    server.unranged = {"/model.safetensors"}
    check(load(server), model)
    assert [r.status for r in server.log] == [200]
    assert server.sent() == len(server.files["/model.safetensors"])


def test_a_download_without_range_that_breaks_is_begun_again(server, model):
    server.unranged = {"/model.safetensors"}
    server.allow = lambda request: 7 * MEGABYTE if len(server.log) == 1 else None
    check(load(server), model)
    assert [r.status for r in server.log] == [200, 200]


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (404, MissingFile, "there is no such file"),
        (401, SourceError, "access refused .* token="),
        (403, SourceError, "access refused .* licence"),
        (400, SourceError, "the server answered 400"),
        (503, SourceError, "the server answered 503 .* after 4 attempts"),
    ],
)
def test_refusals_name_the_address_and_what_to_do(server, status, error, message):
    server.answer = lambda request: status
    with pytest.raises(error, match=message) as caught:
        weights.open(f"{server.url}/model.safetensors")
    assert f"{server.url}/model.safetensors" in str(caught.value)
    assert len(server.log) == (4 if status == 503 else 1)


def test_a_passing_refusal_passes(server, model):
    server.answer = lambda request: 503 if len(server.log) in (2, 3) else None
    check(load(server), model)


def test_nobody_listens(server):
    url = server.url
    server.stop()
    with pytest.raises(SourceError, match=r"cannot be reached .*after 4 attempts"):
        weights.open(f"{url}/model.safetensors")


@pytest.mark.parametrize("change", ["etag", "size"])
def test_a_file_that_changes_in_between_is_an_error(server, model, change):
    checkpoint = weights.open(f"{server.url}/model.safetensors")
    if change == "etag":
        server.etag = lambda request: '"v2"'
    else:
        server.etag = lambda request: None
        server.files["/model.safetensors"] += b"more"
    with pytest.raises(SourceError, match="the file changed while it was being read"):
        weights.read(checkpoint, list(checkpoint.values()))


def test_a_silent_server_times_out(server, model, monkeypatch):
    monkeypatch.setattr(settings, "network_timeout", 0.2)
    monkeypatch.setattr(settings, "network_retries", 1)
    server.answer = lambda request: time.sleep(0.5)
    with pytest.raises(SourceError, match="timed out"):
        weights.open(f"{server.url}/model.safetensors")


def test_an_empty_file_is_a_format_error(server):
    server.files["/empty.safetensors"] = b""
    with pytest.raises(FormatError, match="cut short"):
        weights.open(f"{server.url}/empty.safetensors")


def test_a_token_is_not_taken_to_another_host(server, model):
    other = type(server)()
    try:
        other.files["/store"] = server.files["/model.safetensors"]
        server.redirects["/model.safetensors"] = f"{other.url}/store"
        checkpoint = weights.open(f"{server.url}/model.safetensors", token="secret")
        assert len(checkpoint) == len(model)
        assert {r.headers.get("Authorization") for r in server.log} == {"Bearer secret"}
        assert {r.headers.get("Authorization") for r in other.log} == {None}
    finally:
        other.stop()


def test_the_awaitable_twins(server, model):
    async def main():
        checkpoint = await weights.open_async(f"{server.url}/model.safetensors")
        infos = list(checkpoint.values())
        return dict(zip((t.name for t in infos), await weights.read_async(checkpoint, infos), strict=True))

    check(asyncio.run(main()), model)
    assert server.sent_twice() == 0


def test_shards_are_opened_beside_each_other(server):
    names = {f"x{k}": f"s{k}.safetensors" for k in range(6)}
    server.files["/m/model.safetensors.index.json"] = samples.json.dumps({"weight_map": names}).encode()
    for name, file in names.items():
        server.files[f"/m/{file}"] = samples.safetensors_file({name: np.zeros(4, np.float32)})
    server.delay = 0.1
    assert list(weights.open(f"{server.url}/m")) == list(names)
    assert server.most_in_flight() >= 4
    assert list(asyncio.run(weights.open_async(f"{server.url}/m"))) == list(names)


def test_shards_are_read_once_each(server):
    first, second = samples.arrays(1, 1000), {f"2.{k}": v for k, v in samples.arrays(2, 1000).items()}
    names = dict.fromkeys(first, "one.safetensors") | dict.fromkeys(second, "two.safetensors")
    index = samples.json.dumps({"weight_map": names}).encode()
    server.files |= {
        "/m/model.safetensors.index.json": index,
        "/m/one.safetensors": samples.safetensors_file(first),
        "/m/two.safetensors": samples.safetensors_file(second),
    }
    checkpoint = weights.open(f"{server.url}/m")
    infos = list(checkpoint.values())
    for info, got in zip(infos, weights.read(checkpoint, infos), strict=True):
        assert got.tobytes() == (first | second)[info.name].tobytes()
    sizes = {path: len(data) for path, data in server.files.items()}
    for path, size in sizes.items():
        assert server.sent(path) == size, path
