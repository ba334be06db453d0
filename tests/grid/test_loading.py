"""P-071 to P-074: tensors of every dtype, roles by names, networks of checkpoints that nothing describes."""

import json

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import pellucid
from pellucid.errors import DTypeError, FormatError, WeightError
from pellucid.grid import detect_layers, find_roles, load_tensors, load_universal


def file(tensors):
    """A safetensors file of tensors by name: dtype of the format, shape, bytes."""
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def saved(module):
    return pellucid.weights.save(
        {k: pellucid.tensor(v.detach().numpy(), device="cpu") for k, v in module.state_dict().items()}
    )


def test_tensors_of_every_dtype():
    """P-071: as PyTorch reads the same bytes; only what is asked for is read."""
    data = bytes(range(16)) + b"\x80\x3f\x7f\xff" * 4
    kinds = {
        "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64",
        "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "U16": "uint16", "U32": "uint32",
        "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "C64": "complex64",
    }  # fmt: skip
    width = {name: getattr(torch, kind).itemsize for name, kind in kinds.items()}
    order = sorted(kinds, key=lambda name: -width[name])
    found = load_tensors(file({name: (name, [2, 16 // width[name]], data) for name in order}))
    for name, kind in kinds.items():
        want = torch.frombuffer(bytearray(data), dtype=getattr(torch, kind)).reshape(2, -1)
        if kind.startswith(("float8", "bfloat")):
            want = want.float()
        else:
            assert found[name].dtype.name == kind
        np.testing.assert_array_equal(found[name].numpy(), want.numpy())
    more = file({
        "u": ("U64", [1], (5).to_bytes(8, "little")), "b": ("BOOL", [2], b"\0\1"),
        "f": ("F4", [2, 2], b"\x21\xf7"), "x": ("F8_E4M3FNUZ", [1], b"\0"),
    })  # fmt: skip
    few = load_tensors(more, ["u", "b", "f"])
    assert (few["u"].tolist(), few["b"].tolist()) == ([5], [False, True])
    assert few["f"].tolist() == [[0.5, 1.0], [6.0, -6.0]]
    with pytest.raises(DTypeError, match="fnuz"):
        load_tensors(more)
    with pytest.raises(WeightError, match="no tensor y"):
        load_tensors(more, ["y"])
    with pytest.raises(WeightError, match="beyond int64"):
        load_tensors(file({"u": ("U64", [1], b"\xff" * 8)}))


@pytest.mark.parametrize(
    ("names", "roles"),
    [
        (["model.embed_tokens.weight", "model.layers.0.q.weight", "model.norm.weight", "lm_head.weight"],
         ("model.embed_tokens.weight", "lm_head.weight", "model.norm.weight")),
        (["model.embed_tokens.weight", "model.norm.weight"],
         ("model.embed_tokens.weight", None, "model.norm.weight")),
        (["model.embed_tokens.weight", "model.final_layernorm.weight", "lm_head.weight", "lm_head.bias"],
         ("model.embed_tokens.weight", "lm_head.weight", "model.final_layernorm.weight")),
        (["transformer.wte.weight", "transformer.wpe.weight", "transformer.ln_f.weight"],
         ("transformer.wte.weight", None, "transformer.ln_f.weight")),
        (["gpt_neox.embed_in.weight", "gpt_neox.final_layer_norm.weight", "embed_out.weight"],
         ("gpt_neox.embed_in.weight", "embed_out.weight", "gpt_neox.final_layer_norm.weight")),
        (["token_embd.weight", "blk.0.attn_norm.weight", "output_norm.weight", "output.weight"],
         ("token_embd.weight", "output.weight", "output_norm.weight")),
        (["conv.weight"], (None, None, None)),
    ],
)  # fmt: skip
def test_roles(names, roles):
    """P-072: of Llama, SmolLM2 (tied), Phi, GPT-2, GPT-NeoX, GGUF."""
    found = find_roles(reversed(names))
    assert tuple(found) == roles
    assert found.tied == (roles[0] is not None and roles[1] is None)


def test_a_llama_without_its_config():
    """P-073, P-074: recognised by names and shapes, and computes what transformers computes."""
    config = LlamaConfig(
        vocab_size=50, hidden_size=32, intermediate_size=48, num_hidden_layers=11, num_attention_heads=4,
        num_key_value_heads=2, rms_norm_eps=1e-5, tie_word_embeddings=False,
    )  # fmt: skip
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).eval()
    data = saved(model)
    with pytest.raises(WeightError, match=r"self_attn as residual \(0\.40: .*num_heads"):
        load_universal(data)
    net, found = load_universal(data, {"*self_attn": {"num_heads": 4}}, device="cpu")
    assert [a.type for a in found.layers] == ["embedding", *["residual"] * 22, "rms_norm", "dense"]
    assert found.layers[3].name == "model.layers.1.self_attn"
    assert found.layers[22].name == "model.layers.10.mlp"
    assert found.unmatched == []
    assert found.confidence == 0.85
    assert "rope_freq_base 10000" in str(found)
    ids = np.random.default_rng(0).integers(0, 50, (2, 7))
    with torch.no_grad():
        want = model(torch.tensor(ids)).logits.numpy()
    got = net(pellucid.tensor(ids, device="cpu")).detach().numpy()
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def same(net, theirs, shape):
    """Whether a network gives what a module of PyTorch gives."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    want = theirs(torch.tensor(x))
    want = want[0] if isinstance(want, tuple) else want
    got = net(pellucid.tensor(x, device="cpu")).detach().numpy()
    np.testing.assert_allclose(got, want.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_chains_of_pytorch():
    """P-073: layers of each kind whose numbers can be known, between activations that must be told."""
    torch.manual_seed(0)
    mlp = torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3)
    )
    with pytest.raises(WeightError, match="activation, lies before 2"):
        load_universal(saved(mlp))
    net, found = load_universal(saved(mlp), {"0": {"activation": "tanh"}}, device="cpu")
    same(net, mlp, (5, 6))
    assert [a.type for a in found.layers] == ["dense", "layer_norm", "dense"]

    images = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ConvTranspose2d(4, 2, 3, stride=2, bias=True)
    )
    with pytest.raises(WeightError, match=r"0 as cnn2 \(0\.30: input_height, input_width, stride, padding"):
        load_universal(saved(images))
    sizes = {"input_height": 5, "input_width": 6}
    hints = {"0": {**sizes, "stride": 1, "padding": 1}, "1": {**sizes, "stride": 2, "padding": 0}}
    net, _ = load_universal(saved(images), hints, device="cpu")
    same(net, images, (2, 3, 5, 6))

    for layer in (torch.nn.LSTM(4, 5, batch_first=True), torch.nn.RNN(4, 5, batch_first=True)):
        net, found = load_universal(saved(layer), device="cpu")
        same(net, layer, (2, 3, 4))


def test_what_shapes_leave_open():
    """P-073: ambiguous shapes have less confidence, hints decide, and nothing is left out silently."""
    plain = detect_layers(
        {"one.weight": (50, 8), "word_emb.weight": (50, 8), "two.weight": (8, 9), "two.bias": (9,)}
    )
    assert [(a.name, a.type, a.confidence) for a in plain.layers] == [
        ("word_emb", "embedding", 0.9), ("one", "dense", 0.65), ("two", "dense", 0.8)
    ]  # fmt: skip
    assert plain.layers[2].tensors["layer.weight"] == "T:two.weight"
    hinted = detect_layers({"one.weight": (50, 8)}, {"one": {"type": "embedding"}})
    assert (hinted.layers[0].type, hinted.confidence) == ("embedding", 0.9)
    strange = {
        "bn.weight": (4,), "bn.bias": (4,), "bn.running_mean": (4,), "scale": (), "gru.weight_ih_l0": (9, 2),
        "gru.weight_hh_l0": (9, 3), "gru.bias_ih_l0": (9,), "gru.bias_hh_l0": (9,), "odd.weight": (3, 4),
        "odd.bias": (7,), "many.weight": (2, 2, 3, 4),
    }  # fmt: skip
    found = detect_layers(strange)
    assert found.layers == []
    assert sorted(found.unmatched) == sorted(strange)
    data = pellucid.weights.save(
        {"0.weight": pellucid.ones(3, 2, device="cpu"), "s": pellucid.ones(1, device="cpu")}
    )
    with pytest.raises(WeightError, match="no layer: s"):
        load_universal(data)
    net, found = load_universal(data, strict=False, device="cpu")
    assert found.unmatched == ["s"]
    assert net(pellucid.ones(1, 2, device="cpu")).tolist() == [[2, 2, 2]]
    for hints, text in (
        ({"two": {}}, "fit no layer"),
        ({"0": {"type": "lstm"}}, "has the shapes of dense"),
        ({"0": {"activation": "bent"}}, "activation must be"),
        ({"0": {"z": 3, "weights": {}}}, "can't say weights, z of a layer"),
        ({"0": {3: 4}}, "must be fields by name"),
        ({3: {"type": "dense"}}, "is a text, not 3"),
        (["0"], "by patterns of layers' names, not list"),
    ):
        with pytest.raises(FormatError, match=text):
            load_universal(data, hints, strict=False)


def test_shapes_that_are_none_and_names_that_are_long():
    """P-073: lengths of 0 and numbers of any length in names belong to no layer, or to one as others do."""
    rows = {f"a.{n}_proj.weight": (0, 0) for n in "qkvo"}
    rows |= {"l.weight_ih_l0": (4, 0), "l.weight_hh_l0": (4, 0), "l.bias_ih_l0": (4,), "l.bias_hh_l0": (4,)}
    assert len(detect_layers(rows).unmatched) == len(rows)
    assert detect_layers({"9" * 5000 + ".weight": (2, 4)}).layers[0].type == "dense"
    for shapes in ({"a": 3}, {"a": "ab"}, {"a": (-1, 2)}, {"a": (1.5, 2)}, {"a": None}, {3: (2, 2)}):
        with pytest.raises(FormatError, match="lengths of axes by names of tensors"):
            detect_layers(shapes)
