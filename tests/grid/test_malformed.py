"""P-016, P-048, P-049, P-071, P-073: specifications, genomes and checkpoints that are broken at random: what
is wrong has an error of the library, and nothing else goes wrong."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pellucid
from grid.test_specification import SAMPLES
from pellucid import weights
from pellucid.errors import PellucidError
from pellucid.grid import (
    NEAT,
    Genome,
    NEATConfig,
    Networks,
    detect_layers,
    load_packed,
    load_tensors,
    load_universal,
    morph,
    network_from_json,
    network_to_json,
    save_packed,
)

JUNK = [
    None, True, False, 0, -1, 3, 2.5, 1e300, float("nan"), float("inf"), 1 << 23, 1 << 30, 1 << 70,
    -(1 << 70), "", "x", "dense", "AAAA", "é", [], [1], [[]], {}, {"type": "dense"}, [None], [-1], ["x", 1],
    {"x": []},
]  # fmt: skip


def places(value):
    """Every list and object within, with the keys of its values."""
    found = []
    if isinstance(value, (dict, list)):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        found += [(value, key) for key in keys]
        for key in keys:
            found += places(value[key])
    return found


def broken(value, chance):
    """A copy with one to three values replaced, taken away, doubled or moved."""
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        at, key = chance.choice(places(value))
        if (isinstance(at, dict) and key not in at) or (isinstance(at, list) and key >= len(at)):
            continue
        how = chance.randrange(5)
        if how == 0:
            del at[key]
        elif how == 1:
            other, name = chance.choice(places(value))
            at[key] = copy.deepcopy(other[name])
        elif how == 2 and isinstance(at[key], (int, float)):
            at[key] = at[key] * chance.choice([-1, 2, 0.5, 100])
        else:
            at[key] = copy.deepcopy(chance.choice(JUNK))
        if not places(value):
            return value
    return value


def is_read(reads, given):
    """Whether it was read; what is not is refused by an error of the library that says something."""
    try:
        reads(given)
    except PellucidError as error:
        told = str(error)
    else:
        return True
    assert len(told) > 10
    return False


def damaged(count, **more):
    """Runs a test for so many sources of chance, and other things that it is given."""
    chance = st.randoms(use_true_random=False)
    return lambda test: settings(max_examples=count, deadline=None)(given(chance=chance, **more)(test))


def network():
    pellucid.manual_seed(0)
    layers = [{"x": k, "type": t, **f} for k, (t, (f, _)) in enumerate(SAMPLES.items())]
    layers[0] |= {"dtype": "int4", "group": 32}
    links = [{"source": [0, 0, 0, 0], "target": [0, 0, 1, 0], "combine": "add"}]
    spec = {"id": "n", "depth": 1, "rows": 1, "cols": len(layers), "layers": layers, "links": links}
    return network_from_json(spec, device="cpu")


SPECIFICATIONS = [json.loads(network_to_json(network(), weights=weights)) for weights in (True, False)]


def reads_network(text):
    network_from_json(text, device="cpu")


@damaged(60, spec=st.sampled_from(SPECIFICATIONS))
def test_specifications(chance, spec):
    is_read(reads_network, json.dumps(broken(spec, chance)))


@damaged(20)
def test_specifications_that_are_cut(chance):
    text = json.dumps(SPECIFICATIONS[0])
    assert is_read(reads_network, text)
    assert not is_read(reads_network, text[: chance.randrange(len(text))])


def genome():
    neat = NEAT(2, 1, NEATConfig(size=12, node_rate=0.5, connection_rate=0.5), device="cpu")
    x = pellucid.ones(3, 2, device="cpu")
    for _ in range(6):
        neat.evolve(lambda nets: nets(x).sum((-1, -2)))
    return json.loads(neat.best().to_json())


GENOME = genome()


@damaged(100)
def test_genomes(chance):
    def runs(text):
        Networks([Genome.from_json(text)], "cpu")(pellucid.ones(3, 2, device="cpu"))

    text = json.dumps(GENOME)
    assert is_read(runs, text)
    is_read(runs, json.dumps(broken(GENOME, chance)))
    assert not is_read(runs, text[: chance.randrange(len(text))])


def changed_bytes(data, length, chance):
    """A file with a few bytes of its first part replaced, or its end cut off."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        made[chance.randrange(length)] = chance.randrange(256)
    return bytes(made[: chance.randrange(len(data))] if chance.random() < 0.2 else made)


def with_header(data, change):
    """A safetensors file whose header is another."""
    size = int.from_bytes(data[:8], "little")
    text = json.dumps(change(json.loads(data[8 : 8 + size]))).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A file of packed weights, and where to put damaged ones."""
    layer = morph(pellucid.nn.Linear(32, 4, device="cpu"), "fp4", "weight", 16, "float8_e4m3fn")
    path = tmp_path_factory.mktemp("packed") / "packed.safetensors"
    save_packed(layer, path)
    return path.read_bytes(), path


@damaged(50)
def test_packed_files(chance, packed):
    data, path = packed

    def reads(made):
        path.write_bytes(made)
        load_packed(pellucid.nn.Linear(32, 4, device="cpu"), path)

    def changed(header):
        key = next(iter(header["__metadata__"]))
        told = broken(json.loads(header["__metadata__"][key]), chance)
        return {**header, "__metadata__": {key: json.dumps(told)}}

    is_read(reads, changed_bytes(data, 8 + int.from_bytes(data[:8], "little"), chance))
    is_read(reads, with_header(data, changed))
    is_read(reads, with_header(data, lambda header: broken(header, chance)))
    assert is_read(reads, data)


def checkpoint(shapes):
    kinds = {"i": pellucid.int64, "h": pellucid.float16}
    return weights.save(
        {
            n: pellucid.zeros(s, dtype=kinds.get(n[0], pellucid.float32), device="cpu")
            for n, s in shapes.items()
        }
    )


WORDS = ["layers", "0", "1", "mlp", "gate_proj", "up_proj", "down_proj", "self_attn", "q_proj", "k_proj",
         "v_proj", "o_proj", "weight", "bias", "norm", "conv", "weight_ih_l0", "weight_hh_l0",
         "bias_ih_l0", "embed_tokens", "lm_head", "running_mean", "x", "i", "h"]  # fmt: skip
NAMES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(".".join)
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 4, 8, 12]), max_size=5)
HINTS = {"*": {"num_heads": 2, "input_height": 3, "input_width": 3}}


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(NAMES, SHAPES, min_size=1, max_size=8))
def test_checkpoints_of_unknown_make(shapes):
    """P-073: tensors by any names, in any shapes: recognised, or refused with hints."""
    data = checkpoint(shapes)
    assert is_read(load_tensors, data)
    is_read(detect_layers, data)
    is_read(lambda made: load_universal(made, HINTS, device="cpu"), data)


CHAIN = checkpoint({"0.weight": (8, 6), "0.bias": (8,), "1.weight": (8,), "1.bias": (8,), "2.weight": (3, 8)})


@damaged(50)
def test_damaged_checkpoints(chance):
    """P-071, P-073: a header that lies, bytes that are missing, hints of any kind."""

    def reads(made):
        load_universal(made, {"0": {"activation": "tanh"}}, strict=False, device="cpu")

    assert is_read(reads, CHAIN)
    size = 8 + int.from_bytes(CHAIN[:8], "little")
    for made in (changed_bytes(CHAIN, size, chance), with_header(CHAIN, lambda h: broken(h, chance))):
        is_read(reads, made)
        is_read(load_tensors, made)
    hints = broken({"0": {"activation": "tanh", "type": "dense"}, "2": {"type": "dense"}}, chance)
    is_read(lambda made: load_universal(made, hints, strict=False, device="cpu"), CHAIN)
