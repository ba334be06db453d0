"""P-016, P-048, P-049, P-071, P-073: specifications, genomes and checkpoints that are broken at random: what
is wrong has an error of the library, and nothing else goes wrong."""

import copy
import json
import random

import pytest

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


def tried(reads, inputs):
    """How many were read; the others were refused by an error of the library."""
    read, told = 0, []
    for given in inputs:
        try:
            reads(given)
        except PellucidError as error:
            told.append(str(error))
            continue
        read += 1
    assert all(len(text) > 10 for text in told)
    return read


def network():
    pellucid.manual_seed(0)
    layers = [{"x": k, "type": t, **f} for k, (t, (f, _)) in enumerate(SAMPLES.items())]
    layers[0] |= {"dtype": "int4", "group": 32}
    links = [{"source": [0, 0, 0, 0], "target": [0, 0, 1, 0], "combine": "add"}]
    spec = {"id": "n", "depth": 1, "rows": 1, "cols": len(layers), "layers": layers, "links": links}
    return network_from_json(spec, device="cpu")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("with_weights", [True, False])
def test_specifications(seed, with_weights):
    chance = random.Random(seed)
    spec = json.loads(network_to_json(network(), weights=with_weights))
    given = [broken(spec, chance) for _ in range(60)]
    assert 0 < tried(lambda s: network_from_json(json.dumps(s), device="cpu"), given) < 60
    text = json.dumps(spec)
    cut = [text[: chance.randrange(len(text))] for _ in range(20)]
    assert tried(lambda s: network_from_json(s, device="cpu"), cut) == 0


@pytest.mark.parametrize("seed", range(4))
def test_genomes(seed):
    chance = random.Random(seed)
    neat = NEAT(2, 1, NEATConfig(size=12, node_rate=0.5, connection_rate=0.5), device="cpu")
    x = pellucid.ones(3, 2, device="cpu")
    for _ in range(6):
        neat.evolve(lambda nets: nets(x).sum((-1, -2)))
    genome = json.loads(neat.best().to_json())
    given = [broken(genome, chance) for _ in range(150)]

    def reads(value):
        Networks([Genome.from_json(json.dumps(value))], "cpu")(x)

    assert 0 < tried(reads, given) < 150
    text = json.dumps(genome)
    assert tried(Genome.from_json, [text[: chance.randrange(len(text))] for _ in range(30)]) == 0


@pytest.mark.parametrize("seed", range(3))
def test_packed_files(seed, tmp_path):
    chance = random.Random(seed)
    layer = morph(pellucid.nn.Linear(32, 4, device="cpu"), "fp4", "weight", 16, "float8_e4m3fn")
    path = tmp_path / "packed.safetensors"
    save_packed(layer, path)
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    twin = pellucid.nn.Linear(32, 4, device="cpu")

    def reads(made):
        path.write_bytes(made)
        load_packed(twin, path)

    given = []
    for _ in range(60):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(8 + size)] = chance.randrange(256)
        given.append(bytes(changed[: chance.randrange(len(data))] if chance.random() < 0.2 else changed))
    header = json.loads(data[8 : 8 + size])
    key = next(k for k in header["__metadata__"])
    for _ in range(60):
        new = copy.deepcopy(header)
        new["__metadata__"][key] = json.dumps(broken(json.loads(header["__metadata__"][key]), chance))
        text = json.dumps(new).encode()
        given.append(len(text).to_bytes(8, "little") + text + data[8 + size :])
    assert tried(reads, given) < len(given)


@pytest.mark.parametrize("seed", range(3))
def test_checkpoints_of_unknown_make(seed, tmp_path):
    """P-073: tensors by any names, in any shapes: recognised, or refused with hints."""
    chance = random.Random(seed)
    words = ["layers", "0", "1", "mlp", "gate_proj", "up_proj", "down_proj", "self_attn", "q_proj", "k_proj",
             "v_proj", "o_proj", "weight", "bias", "norm", "conv", "weight_ih_l0", "weight_hh_l0",
             "bias_ih_l0", "embed_tokens", "lm_head", "running_mean", "x"]  # fmt: skip
    given = []
    for k in range(40):
        tensors = {}
        for _ in range(chance.randint(1, 8)):
            name = ".".join(chance.choice(words) for _ in range(chance.randint(1, 4)))
            shape = [chance.choice([0, 1, 2, 3, 4, 8, 12]) for _ in range(chance.randint(0, 5))]
            kind = chance.choice([pellucid.float32, pellucid.int64, pellucid.float16])
            tensors[name] = pellucid.zeros(shape, dtype=kind, device="cpu")
        path = tmp_path / f"{k}.safetensors"
        weights.save_file(tensors, path)
        given.append(path)
    assert tried(detect_layers, given) > 0
    hints = {"*": {"num_heads": 2, "input_height": 3, "input_width": 3}}
    assert tried(lambda path: load_universal(path, hints, device="cpu"), given) < 40
