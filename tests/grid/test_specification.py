"""P-010, P-014, P-016, P-017: every type of layer from JSON and back, with weights; malformed ones."""

import json
import re

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES
from pellucid.errors import ArgumentError, FormatError, ShapeError
from pellucid.grid import (
    Layer,
    RotaryAttention,
    network_from_json,
    network_to_json,
    remember,
    tile_rows,
    transformer_network,
)
from pellucid.grid.layers import LAYERS

D = {"type": "dense", "d_model": 6}
GATE = {"type": "dense", "input_height": 6, "output_height": 2}
# A layer of each type, and the shape of an input.
SAMPLES = {
    "dense": ({"input_height": 6, "output_height": 4, "activation": "gelu"}, (2, 6)),
    "multi_head_attention": ({"d_model": 8, "num_heads": 4, "num_kv_heads": 2}, (2, 5, 8)),
    "swiglu": ({"d_model": 6}, (2, 6)),
    "rms_norm": ({"d_model": 6}, (2, 6)),
    "cnn1": ({"input_height": 6, "filters": 2, "padding": 1}, (2, 6)),
    "cnn2": ({"input_height": 4, "input_width": 5, "filters": 2, "stride": 2}, (2, 20)),
    "cnn3": ({"input_depth": 3, "input_height": 3, "input_width": 3, "filters": 2}, (2, 1, 3, 3, 3)),
    "rnn": ({"d_model": 6}, (2, 3, 6)),
    "lstm": ({"input_height": 6, "output_height": 4}, (2, 3, 6)),
    "layer_norm": ({"d_model": 6}, (2, 6)),
    "conv_transposed_1d": ({"input_height": 6, "filters": 2, "stride": 2, "output_padding": 1}, (2, 6)),
    "conv_transposed_2d": ({"input_height": 3, "input_width": 3, "filters": 1}, (2, 9)),
    "conv_transposed_3d": ({"input_depth": 2, "input_height": 2, "input_width": 2, "filters": 1}, (2, 8)),
    "embedding": ({"vocab_size": 9, "embedding_dim": 4}, None),
    "kmeans": ({"num_clusters": 3, "d_model": 6, "output_mode": "features"}, (2, 6)),
    "softmax": (
        {"softmax_type": "grid", "softmax_rows": 2, "softmax_cols": 3, "hierarchy_levels": [2, 3]},
        (2, 6),
    ),
    "parallel": ({"parallel_branches": [D, {**D, "activation": "relu"}], "combine_mode": "add"}, (2, 6)),
    "sequential": ({"sequential_layers": [D, {"type": "rms_norm", "d_model": 6}]}, (2, 6)),
    "residual": ({"sequential_layers": [D]}, (2, 6)),
}


def test_there_is_a_sample_of_every_type():
    assert list(SAMPLES) == list(LAYERS)
    assert len(LAYERS) == 19


@pytest.mark.parametrize("kind", LAYERS)
def test_layers_come_back_with_their_weights(kind):
    fields, shape = SAMPLES[kind]
    spec = {"id": "one", "layers": [{"type": kind, **fields}]}
    net = network_from_json(json.dumps(spec), device="cpu")
    x = np.random.default_rng(1).standard_normal(shape or 1).astype(np.float32)
    given = pellucid.tensor(x, device="cpu") if shape else pellucid.tensor([[1, 8]], device="cpu")
    text = network_to_json(net)
    twin = network_from_json(text, device="cpu")
    assert network_to_json(twin) == text
    out = net(given)
    assert (out == twin(given)).all()
    if kind not in ("softmax",):
        out.sum().backward()
        assert all(p.grad is not None for p in net.parameters())
    assert "weights" not in network_to_json(net, weights=False)


def test_attention_is_that_of_pytorch_with_rotary_positions():
    pellucid.manual_seed(2)
    layer = Layer({"type": "multi_head_attention", **SAMPLES["multi_head_attention"][0]}, device="cpu").layer
    x = np.random.default_rng(4).standard_normal((2, 5, 8)).astype(np.float32)
    w = {name: torch.tensor(p.detach().numpy()) for name, p in layer.named_parameters()}
    t = torch.tensor(x)
    q, k, v = ((t @ w[f"{n}_proj.weight"].T).view(2, 5, -1, 2).transpose(1, 2) for n in "qkv")
    angles = torch.arange(5.0)[:, None]
    cos, sin = angles.cos(), angles.sin()

    def turned(y):
        return torch.cat([y[..., :1] * cos - y[..., 1:] * sin, y[..., 1:] * cos + y[..., :1] * sin], -1)

    attend = torch.nn.functional.scaled_dot_product_attention
    out = attend(turned(q), turned(k), v, is_causal=True, enable_gqa=True)
    right = out.transpose(1, 2).flatten(-2) @ w["o_proj.weight"].T
    np.testing.assert_allclose(
        layer(pellucid.tensor(x, device="cpu")).detach().numpy(), right.numpy(), rtol=1e-5, atol=1e-6
    )


def of_layer(kind, fields, shape):
    """Shapes of the parameters, and what the layer gives."""
    pellucid.manual_seed(0)
    layer = Layer({"type": kind, **fields}, device="cpu")
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    x = [[1, 8]] if kind == "embedding" else x
    return [p.shape for p in layer.parameters()], layer(pellucid.tensor(x, device="cpu")).detach().numpy()


# Fields with a value that makes another layer of a sample; its input where that has another shape, and what
# the sample has besides.
EFFECTS = [
    ("dense", {"activation": "relu"}), ("dense", {"dtype": "int4"}), ("dense", {"output_height": 3}),
    ("dense", {"input_height": 5}, (2, 5)), ("cnn2", {"input_width": 4}, (2, 16)),
    ("cnn3", {"input_depth": 4}, (2, 36)), ("cnn1", {"input_channels": 2}, (2, 12)), ("cnn1", {"filters": 3}),
    ("cnn1", {"kernel_size": 2}), ("cnn1", {"stride": 2}), ("cnn1", {"padding": 0}),
    ("conv_transposed_1d", {"output_padding": 0}), ("multi_head_attention", {"num_heads": 2}),
    ("multi_head_attention", {"num_kv_heads": 4}), ("multi_head_attention", {"head_dim": 4}),
    ("multi_head_attention", {"rope_freq_base": 100.0}, None, {"head_dim": 4}),
    ("rms_norm", {"d_model": 5}, (2, 5)),
    ("embedding", {"vocab_size": 10}), ("embedding", {"embedding_dim": 5}), ("kmeans", {"num_clusters": 4}),
    ("kmeans", {"kmeans_temperature": 0.1}), ("kmeans", {"output_mode": "probabilities"}),
    ("softmax", {"softmax_type": "standard"}), ("softmax", {"softmax_rows": 3, "softmax_cols": 2}),
    ("softmax", {"temperature": 0.5}, None, {"softmax_type": "temperature"}),
    ("softmax", {"hierarchy_levels": [3, 2]}, None, {"softmax_type": "hierarchical"}),
    ("softmax", {"entmax_alpha": 2}, None, {"softmax_type": "entmax"}),
    ("softmax", {"mask": [1] * 5 + [0]}, None, {"softmax_type": "masked", "mask": [1] * 6}),
    ("softmax", {"gumbel_noise": False}, None, {"softmax_type": "gumbel"}),
    ("parallel", {"parallel_branches": [D, D]}), ("parallel", {"combine_mode": "avg"}),
    ("parallel", {"gate": {**GATE, "activation": "relu"}}, None, {"combine_mode": "filter", "gate": GATE}),
    ("sequential", {"sequential_layers": [D]}),
]  # fmt: skip


@pytest.mark.parametrize("effect", EFFECTS, ids=[f"{e[0]} {list(e[1])[-1]}" for e in EFFECTS])
def test_each_field_makes_another_layer(effect):
    """P-010: a field of a layer is no word that is only kept."""
    kind, change, other, more = (*effect, None, None)[:4]
    fields, shape = SAMPLES[kind]
    fields = {**fields, **(more or {})}
    sizes, out = of_layer(kind, fields, shape or 1)
    changed, found = of_layer(kind, fields | change, other or shape or 1)
    assert sizes != changed or out.shape != found.shape or (out != found).any()


# All keys that the other library's networks and layers have, and files of its kind that have each of them.
KEYS = """id depth rows cols layers_per_cell layers z y x l type activation dtype input_height input_width
input_depth output_height output_width output_depth input_channels filters kernel_size stride padding
num_heads num_kv_heads d_model seq_length vocab_size embedding_dim num_clusters output_mode parallel_branches
combine_mode sequential_layers use_tiling tile_size"""
EVERY_KEY = {
    "id": "all", "depth": 2, "rows": 1, "cols": 2, "layers_per_cell": 1,
    "layers": [
        {"z": 0, "y": 0, "x": 0, "l": 0, "type": "CNN3", "activation": "ReLU", "dtype": "float32",
         "input_height": 4, "input_width": 5, "input_depth": 3, "output_height": 4, "output_width": 5,
         "output_depth": 3, "input_channels": 2, "filters": 2, "kernel_size": 3, "stride": 1, "padding": 1,
         "use_tiling": True, "tile_size": 8},
        {"z": 0, "y": 0, "x": 1, "l": 0, "type": "parallel", "combine_mode": "avg", "parallel_branches": [
            {"type": "dense", "activation": "Tanh", "dtype": "INT8", "input_height": 120, "output_height": 8},
            {"type": "sequential", "sequential_layers": [
                {"type": "dense", "input_height": 120, "output_height": 6},
                {"type": "kmeans", "num_clusters": 4, "d_model": 6, "output_mode": "features"},
                {"type": "dense", "input_height": 6, "output_height": 8}]}]},
        {"z": 1, "y": 0, "x": 0, "l": 0, "type": "residual", "sequential_layers": [
            {"type": "dense", "d_model": 8, "activation": "SiLU", "dtype": "fp16"}]},
        {"z": 1, "y": 0, "x": 1, "l": 0, "type": "dense", "input_height": 8, "output_height": 3},
    ],
}  # fmt: skip
TEXTS = {
    "layers": [
        {"type": "embedding", "vocab_size": 9, "embedding_dim": 8, "dtype": "int4"},
        {"x": 1, "type": "multi_head_attention", "d_model": 8, "num_heads": 4, "num_kv_heads": 2,
         "seq_length": 5, "use_tiling": True, "tile_size": 2},
    ],
    "cols": 2,
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
def test_every_key_of_the_other_library_is_read(device):
    """P-016: two files with all keys of a network and a layer load, run, learn and are written again."""
    text = json.dumps([EVERY_KEY, TEXTS])
    assert [key for key in re.findall(r"\w+", KEYS) if f'"{key}"' not in text] == []
    for spec, x, shape in (
        (EVERY_KEY, np.random.default_rng(0).standard_normal((3, 120)).astype(np.float32), (3, 3)),
        (TEXTS, np.arange(10).reshape(2, 5) % 9, (2, 5, 8)),
    ):
        net = network_from_json(json.dumps(spec), device=device)
        out = net(pellucid.tensor(x, device=device))
        assert out.shape == shape
        (out * out).sum().backward()
        assert all(p.grad.abs().max() > 0 for p in net.parameters())
        again = network_to_json(net, weights=False)
        assert network_to_json(network_from_json(again, device=device), weights=False) == again
        for wrote, read in zip(json.loads(again)["layers"], spec["layers"], strict=True):
            for name in ("type", "activation"):
                assert wrote.pop(name, None) == (read[name].lower() if name in read else None)
            assert wrote.items() >= {k: v for k, v in read.items() if k not in ("type", "activation")}.items()


@pytest.mark.parametrize("device", DEVICES)
def test_attention_that_remembers_gives_what_the_whole_text_gives(device):
    """P-010, P-020: keys and values of a whole network are kept from call to call, without gradients."""
    pellucid.manual_seed(3)
    net = transformer_network(2, 16, 4, device=device)
    x = pellucid.randn(2, 9, 16, device=device)
    whole = net(x).detach().numpy()
    with remember(net, 2, 9):
        parts = [net(x[:, a:b]) for a, b in ((0, 4), (4, 5), (5, 6), (6, 9))]
        with pytest.raises(ShapeError, match="1 more positions do not fit behind 9"):
            net(x[:, :1])
    assert not any(part.requires_grad for part in parts)
    np.testing.assert_allclose(np.concatenate([p.numpy() for p in parts], 1), whole, rtol=1e-4, atol=1e-5)
    with remember(net, 1, 4), pytest.raises(ShapeError, match="2 texts"):
        net(x[:, :1])
    assert (net(x).detach().numpy() == whole).all()
    for other in (pellucid.nn.ReLU(), RotaryAttention(8, 2, causal=False)):
        with pytest.raises(ArgumentError, match="causal"), remember(other, 1, 1):
            pass


@pytest.mark.parametrize(
    ("head_dim", "memory", "invocations", "rows"),
    [(64, 16384, 256, 16), (64, 32768, 256, 32), (64, 49152, 1024, 48), (64, 1 << 20, 1024, 64),
     (48, 16384, 256, 16), (128, 16384, 256, 8), (512, 16384, 256, 8), (16, 32768, 32, 32), (8, 16384, 4, 8)],
)  # fmt: skip
def test_rows_of_a_tile_follow_the_limits(head_dim, memory, invocations, rows):
    """P-017: half of the memory, 8 bytes a number of a head, whole eights from 8 to 64."""
    assert tile_rows(head_dim, memory, invocations) == rows


@pytest.mark.parametrize("device", DEVICES)
def test_attention_in_tiles_is_that_at_once(device):
    """P-010, P-016, P-017: `use_tiling` and `tile_size` of a specification; without a size, the adapter's."""
    fields, x = SAMPLES["multi_head_attention"][0], np.random.default_rng(4).standard_normal((2, 11, 8))
    found, used = [], []
    for more in ({}, {"use_tiling": True, "tile_size": 3}, {"use_tiling": True, "tile_size": 64},
                 {"use_tiling": True}, {"tile_size": 3}):  # fmt: skip
        pellucid.manual_seed(2)
        net = network_from_json(
            {"layers": [{"type": "multi_head_attention", **fields, **more}]}, device=device
        )
        given = pellucid.tensor(x.astype(np.float32), device=device, requires_grad=True)
        out = net(given)
        (out * out).sum().backward()
        slopes = [p.grad.numpy() for p in net.parameters()]
        found.append([out.detach().numpy(), given.grad.numpy(), *slopes])
        used.append(net.layer((0, 0, 0, 0)).layer._rows(given))
        assert more.items() <= json.loads(network_to_json(net))["layers"][0].items()
    for other in found[1:]:
        for a, b in zip(other, found[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    limits = pellucid.webgpu.get_device_properties().limits
    names = "maxComputeWorkgroupStorageSize", "maxComputeInvocationsPerWorkgroup"
    assert used == [11, 3, 64, tile_rows(2, *(limits[n] for n in names) if device == "webgpu" else ()), 11]
    for wrong in ({"tile_size": -1}, {"tile_size": 2.5}):
        with pytest.raises(FormatError, match="tile_size"):
            network_from_json(
                {"layers": [{"type": "multi_head_attention", **fields, "use_tiling": True, **wrong}]}, device
            )


def test_places_links_and_unknown_keys_are_kept():
    layers = [
        {"z": 1, "l": 1, "type": "dense", "d_model": 2, "note": "last"},
        {"type": "dense", "d_model": 2, "disabled": True},
    ]
    links = [{"source": [1, 0, 0, 1], "target": [0, 0, 0, 0], "combine": "replace"}]
    spec = {"id": "n", "made": 2026, "depth": 2, "layers_per_cell": 2, "layers": layers, "links": links}
    text = network_to_json(network_from_json(spec, device="cpu"))
    again = json.loads(text)
    assert (again["id"], again["made"], again["rows"], again["links"]) == ("n", 2026, 1, links)
    assert [layer.get("note") for layer in again["layers"]] == [None, "last"]
    assert again["layers"][0]["disabled"] is True


DENSE = {"type": "dense", "d_model": 2}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "deeper than 128 levels"),
        ("3", "holds a JSON int; an object was expected"),
        ({"depth": 0}, "depth must lie between 1"),
        ({"depth": 4096, "rows": 4096}, "more than 1048576 positions"),
        ({"depth": "a"}, "depth must be an integer"),
        ({"layers": {}}, "layers must be a list"),
        ({"layers": [3]}, "layer 0: a layer is an object"),
        ({"layers": [{"type": "gru"}]}, "layer 0 at 0,0,0,0: type must be one of dense"),
        ({"layers": [{"type": "dense"}]}, "input_height is missing"),
        ({"layers": [{"type": "dense", "d_model": True}]}, "d_model must be an integer"),
        ({"layers": [{**DENSE, "activation": "selu"}]}, "activation must be one of linear"),
        ({"layers": [{**DENSE, "z": 1}]}, "layer 0 at 1,0,0,0: the volume is only 1, 1, 1, 1"),
        ({"layers": [DENSE, DENSE]}, "layer 1 at 0,0,0,0: there is a layer already"),
        ({"layers": [{"type": "multi_head_attention", "d_model": 6}]}, "must divide"),
        ({"layers": [{"type": "parallel", "parallel_branches": []}]}, "at least one branch"),
        ({"layers": [{"type": "residual", "sequential_layers": [DENSE, 1]}]}, "layer 1: a layer is an"),
        ({"layers": [{"type": "softmax", "softmax_type": "hot"}]}, "one of standard, grid"),
        ({"layers": [{**DENSE, "weights": {"layer.weight": ""}}]}, "weights must be those of"),
        ({"layers": [{**DENSE, "weights": {"layer.weight": "!", "layer.bias": ""}}]}, "no base64"),
        ({"layers": [{**DENSE, "weights": {"layer.weight": "AAAA", "layer.bias": "AAAA"}}]}, "3 bytes"),
        ({"layers": [DENSE], "links": [{"source": [0, 0, 0, 0]}]}, "link 0: target is missing"),
        ({"layers": [DENSE], "links": [{"source": [0, 0, 0, 0], "target": [0, 0, 0, 1]}]}, "no position"),
        ({"layers": [DENSE], "links": ["a"]}, "link 0: a link is an object"),
        ({"layers": [{**DENSE, "d_model": 1 << 40}]}, "must lie between"),
        (None, "no JSON: it is a NoneType"),
        ([], "no JSON: it is a list"),
        (b"\xff\xfe\x00", "not valid JSON"),
        ("\ud800", "not valid JSON"),
        ('{"depth": ' + "9" * 5000 + "}", "not valid JSON"),
        *[
            ({"layers": [{"type": kind, **SAMPLES[kind][0], **fields}]}, "layer 0 at 0,0,0,0: " + text)
            for kind, fields, text in (
                ("multi_head_attention", {"rope_freq_base": 0}, "rope_freq_base must be above 0, not 0"),
                ("multi_head_attention", {"rope_freq_base": float("nan")}, "rope_freq_base must be finite"),
                ("multi_head_attention", {"rope_freq_base": 10**400}, "rope_freq_base must be finite"),
                ("softmax", {"softmax_type": "temperature", "temperature": -1}, "temperature must be above"),
                ("softmax", {"softmax_type": "gumbel", "temperature": 0}, "temperature must be above 0"),
                ("softmax", {"softmax_type": "entmax", "entmax_alpha": 0.5}, "entmax_alpha must be at least"),
                ("softmax", {"softmax_type": "masked", "mask": ["x"]}, "mask must be true and"),
                ("softmax", {"softmax_type": "masked", "mask": [[1], [1, 0]]}, "mask must be true and false"),
                ("softmax", {"softmax_type": "hierarchical", "hierarchy_levels": [0, 2]}, "hierarchy_le"),
                ("softmax", {"softmax_type": "hierarchical", "hierarchy_levels": []}, "hierarchy_levels"),
                ("parallel", {"combine_mode": "grid_scatter", "grid": [1 << 40]}, "grid must be integers"),
                ("parallel", {"combine_mode": "grid_scatter", "grid": [4096, 4096]}, "a grid of"),
                ("conv_transposed_1d", {"stride": 1, "output_padding": 1}, "output_padding must be smaller"),
            )
        ],
    ],
)  # fmt: skip
def test_malformed_specifications(spec, text):
    with pytest.raises(FormatError, match=text):
        network_from_json(spec, device="cpu")


def test_layers_within_layers_end_somewhere():
    """P-016, P-032: as deep as Python goes; what is deeper, or within itself, is refused."""
    deep = DENSE
    for _ in range(20):
        deep = {"type": "sequential", "sequential_layers": [deep]}
    assert network_from_json({"layers": [deep]}, device="cpu").num_parameters() == 6
    for _ in range(2000):
        deep = {"type": "sequential", "sequential_layers": [deep]}
    loop = {"type": "residual"}
    loop["sequential_layers"] = [loop]
    for spec in (deep, loop):
        with pytest.raises(FormatError) as caught:
            network_from_json({"layers": [spec]}, device="cpu")
        assert "too deep" in str(caught.value)
        assert len(str(caught.value)) < 400


def test_a_place_is_that_of_the_network():
    """P-049: what a layer itself says of a place, weights or a switch is not written."""
    layer = Layer({**DENSE, "z": 7, "disabled": True, "weights": "x"}, device="cpu")
    net = pellucid.grid.GridNetwork(1, 1, 1, 1, {(0, 0, 0, 0): layer})
    twin = network_from_json(network_to_json(net), device="cpu")
    x = pellucid.ones(1, 2, device="cpu")
    assert (net(x) == twin(x)).all()
    assert "disabled" not in network_to_json(net)


def test_networks_of_other_modules_have_no_specification():
    net = pellucid.grid.GridNetwork(1, 1, 1, 1, {(0, 0, 0, 0): pellucid.nn.ReLU()})
    with pytest.raises(FormatError, match="at 0,0,0,0 is a ReLU"):
        network_to_json(net)
