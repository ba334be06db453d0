"""P-065, P-066, P-067: observers of layers and gradients, blueprints, reflection."""

import http.server
import io
import json
import threading

import numpy as np
import pytest

import pellucid
from grid.test_specification import SAMPLES
from ops.oracle import DEVICES
from pellucid import nn
from pellucid.device.stream import stream
from pellucid.errors import ArgumentError, RangeError, SourceError
from pellucid.grid import (
    AggregatingObserver,
    ConsoleObserver,
    GridNetwork,
    HTTPObserver,
    Link,
    Position,
    blueprint,
    layer_stats,
    methods,
    methods_json,
    network_from_json,
    observe,
)

X = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)


def network(device="cpu"):
    pellucid.manual_seed(0)
    layers = nn.Linear(4, 8, device=device), nn.ReLU(), nn.Linear(8, 2, device=device)
    return GridNetwork(1, 1, 3, 1, {(0, 0, x, 0): layer for x, layer in enumerate(layers)})


@pytest.mark.parametrize("device", DEVICES)
def test_events_have_the_statistics_of_hooks(device):
    net, events = network(device), []
    x = pellucid.tensor(X, device=device)
    with observe(net, events.append, "one"):
        out = net(x)
        (out * out).sum().backward()
    layers = net.run(x).layers
    net(x)
    assert [e.layer for e in events if e.mode == "forward"] == ["0,0,0,0", "0,0,1,0", "0,0,2,0"]
    assert [e.layer for e in events if e.mode == "backward"] == ["0,0,2,0", "0,0,1,0", "0,0,0,0"]
    assert sorted(e.layer for e in events if e.mode == "gradient") == sorted(
        n for n, _ in net.named_parameters()
    )
    for event in events:
        assert (event.step, event.model) == (1, "one")
        want = {
            "forward": lambda e: layers[Position(*map(int, e.layer.split(",")))],
            "gradient": lambda e: dict(net.named_parameters())[e.layer].grad,
            "backward": lambda e: 2 * out if e.layer == "0,0,2,0" else None,
        }[event.mode](event)
        if want is not None:
            w = want.detach().numpy()
            np.testing.assert_allclose(
                event.stats, (w.mean(), w.max(), w.min(), (w != 0).mean(), w.size), rtol=1e-5, atol=1e-6
            )
    told = json.loads(events[1].to_json())
    assert (told["kind"], told["stats"]["total"]) == ("ReLU", 40)
    assert not any(layer._forward_hooks for _, layer in net.layers())


def test_statistics_are_made_on_the_device(monkeypatch):
    """P-065: of an event nothing is read until somebody asks, and then a few numbers."""
    host, read = type(stream().open()), []
    original = host.begin_read

    def counted(self, *args, **kwargs):
        read.append(args[2])
        return original(self, *args, **kwargs)

    monkeypatch.setattr(host, "begin_read", counted)
    net, events = network("webgpu"), []
    with observe(net, events.append):
        net(pellucid.tensor(np.tile(X, (500, 1)), device="webgpu")).sum().backward()
    assert len(events) == 3 + 3 + 4
    assert read == []
    assert events[0].stats.total == 2500 * 8
    assert read == [16]


def test_console_and_windows():
    net, file, windows = network(), io.StringIO(), AggregatingObserver(3)
    with observe(net, ConsoleObserver(file, ("forward",))), observe(net, windows):
        for k in range(5):
            net(pellucid.tensor(k * X, device="cpu")).sum().backward()
    lines = file.getvalue().splitlines()
    assert len(lines) == 15
    assert lines[-1].startswith("model step 5 forward 0,0,2,0 Linear: mean ")
    summary = windows.summary()
    assert len(summary) == 3 + 3 + 4
    kept = [layer_stats(net.layer((0, 0, 0, 0))(pellucid.tensor(k * X, device="cpu"))) for k in (2, 3, 4)]
    first = summary["forward", "0,0,0,0"]
    assert first.total == 3 * 40
    assert first.largest == max(s.largest for s in kept)
    assert first.mean == pytest.approx(np.mean([s.mean for s in kept]), rel=1e-5)
    for call in (
        lambda: AggregatingObserver(0),
        lambda: observe(net, None),
        lambda: layer_stats(pellucid.zeros(0)),
    ):
        with pytest.raises((RangeError, ArgumentError)):
            call()


def test_events_are_posted():
    got = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200 if len(got) < 4 else 500)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        net = network()
        with observe(net, HTTPObserver(f"http://127.0.0.1:{server.server_port}/"), "one"):
            net(pellucid.tensor(X * np.inf, device="cpu"))
            assert [(e["mode"], e["layer"], e["model"]) for e in got] == [
                ("forward", f"0,0,{k},0", "one") for k in range(3)
            ]
            assert got[0]["stats"]["mean"] is None
            with pytest.raises(SourceError, match="did not take"):
                net(pellucid.tensor(X, device="cpu"))
    finally:
        server.shutdown()
        server.server_close()
    with pytest.raises(ArgumentError, match="http"):
        HTTPObserver("file:///etc")


def test_blueprints():
    """Counts are those of the parameters, shapes those of a run, for a layer of each type."""
    layers = [{"x": k, "type": t, **f} for k, (t, (f, _)) in enumerate(SAMPLES.items())]
    net = network_from_json({"cols": len(layers), "layers": layers}, device="cpu")
    told = json.loads(json.dumps(blueprint(net, "all")))
    assert told["total_layers"] == 19
    assert told["total_parameters"] == sum(r["parameters"] for r in told["layers"]) == net.num_parameters()
    by_type = {r["type"]: r for r in told["layers"]}
    assert list(by_type) == list(SAMPLES)
    assert by_type["parallel"]["combine_mode"] == "add"
    assert [b["activation"] for b in by_type["parallel"]["branches"]] == ["linear", "relu"]
    assert [r["type"] for r in by_type["sequential"]["layers"]] == ["dense", "rms_norm"]
    small = network()
    small.connect(Link(Position(0, 0, 0, 0), Position(0, 0, 1, 0)))
    small.enable((0, 0, 1, 0), False)
    told = blueprint(small, example=pellucid.tensor(X, device="cpu"))
    assert told["layers"][2]["input_shape"] == [5, 8]
    assert told["layers"][2]["output_shape"] == [5, 2]
    assert [r["disabled"] for r in told["layers"]] == [False, True, False]
    assert told["links"] == [{"source": [0, 0, 0, 0], "target": [0, 0, 1, 0], "combine": "add"}]
    with pytest.raises(ArgumentError, match="GridNetwork"):
        blueprint(nn.ReLU())


def test_methods():
    found = {m.name: m for m in methods(network())}
    assert {"layer", "place", "connect", "morph", "forward", "run"} <= found.keys()
    assert not any(name.startswith("_") for name in found)
    run = found["run"]
    assert [(p.name, p.type, p.default) for p in run.parameters] == [
        ("input", "Tensor", ""),
        ("passes", "int", "1"),
    ]
    assert run.returns == "Run"
    assert run.signature == "run(input: Tensor, passes: int = 1) -> Run"
    assert run.summary.startswith("The output, what each layer gave")
    told = json.loads(methods_json(GridNetwork))
    assert [m["name"] for m in told] == sorted(found)
    assert all({"name", "parameters", "returns", "signature"} <= m.keys() for m in told)
