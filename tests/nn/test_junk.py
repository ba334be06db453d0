"""What is no argument at all in the place of each argument of a layer: a typed error, or what PyTorch takes
too; and the device goes on."""

import inspect
import re
import warnings

import pytest
import torch

import pellucid
from ops.test_junk import JUNK
from pellucid.errors import PellucidError
from samples.outcome import flat


def counted(p):
    return p.arange(24.0).reshape(2, 3, 4) / 10


def image(p):
    return p.ones(1, 2, 4, 4)


def volume(p):
    return p.ones(1, 2, 4, 4, 4)


RANKS = {1: counted, 2: image, 3: volume}
# What modules refuse in PyTorch's words, by its TypeError.
PYTORCHS = re.compile(r"^cannot assign \w+ as (buffer|parameter) '|^\w+ is not a Module\.$")
# What a layer needs to be made, and what it is called with.
NEEDED = {
    "Conv1d": ((3, 4, 2), counted), "ConvTranspose1d": ((3, 4, 2), counted),
    "Conv2d": ((2, 4, 2), image), "ConvTranspose2d": ((2, 4, 2), image),
    "Embedding": ((5, 2), lambda p: p.tensor([1, 2])), "Linear": ((4, 2), counted),
    "LayerNorm": ((4,), counted), "RMSNorm": ((4,), counted), "Unflatten": ((1, (3, 1)), counted),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Softmin"), ((-1,), counted)),
    "Conv3d": ((2, 4, 2), volume), "ConvTranspose3d": ((2, 4, 2), volume),
    **{
        f"{name}{n}d": (needed, made) for n, made in RANKS.items() for name, needed in {
            **dict.fromkeys(("AdaptiveAvgPool", "AdaptiveMaxPool", "AvgPool", "MaxPool"), (2,)),
            **dict.fromkeys(("CircularPad", "ReflectionPad", "ReplicationPad", "ZeroPad"), (1,)),
            "ConstantPad": (1, 2.0), "FractionalMaxPool": (2, 2), "LPPool": (2, 2),
        }.items()
    },
    "Upsample": ((2,), counted), "UpsamplingNearest2d": ((2,), image),
    "UpsamplingBilinear2d": ((2,), image), "PixelUnshuffle": ((2,), image), "Unfold": ((2,), image),
    "PixelShuffle": ((1,), image), "ChannelShuffle": ((2,), image),
    "Fold": ((4, 2), lambda p: p.ones(1, 4, 9)),
    **{f"MaxUnpool{n}d": ((2,), lambda p, made=made: (made(p), made(p).long())) for n, made in RANKS.items()},
    "BatchNorm1d": ((3,), counted), "BatchNorm2d": ((2,), image), "GroupNorm": ((1, 3), counted),
    "BatchNorm3d": ((2,), lambda p: image(p)[None].transpose(0, 1)), "InstanceNorm1d": ((3,), counted),
    "InstanceNorm2d": ((2,), image), "InstanceNorm3d": ((1,), lambda p: image(p)[:, None, :1]),
    "LocalResponseNorm": ((2,), counted), "CrossMapLRN2d": ((2,), image),
    "CosineSimilarity": ((), lambda p: (p.ones(2, 3), p.ones(2, 3))),
    "AdaptiveLogSoftmaxWithLoss": ((4, 6, [2]), lambda p: (p.ones(2, 4), p.tensor([1, 5]))),
    "LinearCrossEntropyLoss": ((3, 4), lambda p: (p.ones(2, 3), p.tensor([1, 2]))),
    "CTCLoss": ((), lambda p: (p.ones(4, 1, 3), p.tensor([[1, 2]]), p.tensor([4]), p.tensor([2]))),
    "LazyLinear": ((2,), counted),
    **{f"Lazy{kind}{n}d": ((4, 2), made) for kind in ("Conv", "ConvTranspose") for n, made in RANKS.items()},
    **{f"Lazy{kind}Norm{n}d": ((), made) for kind in ("Batch", "Instance") for n, made in RANKS.items()},
    "Bilinear": ((3, 3, 2), lambda p: (p.ones(2, 3), p.ones(2, 3))),
    "EmbeddingBag": ((5, 2), lambda p: p.tensor([[1, 2]])),
    "MultiheadAttention": ((4, 2), lambda p: (counted(p),) * 3),
    **dict.fromkeys(
        ("ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"), ((), None)
    ),
    **{name: ((), lambda p: (p.ones(2, 3) * 0.5, p.tensor([1, 2]))) for name in (
        "CrossEntropyLoss", "NLLLoss", "NLLLoss2d"
    )},
    **{name: ((), lambda p: (p.ones(2, 3) * 0.5, p.ones(2, 3) / 4)) for name in (
        "BCELoss", "BCEWithLogitsLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "SmoothL1Loss",
        "HingeEmbeddingLoss", "MultiLabelSoftMarginLoss", "PairwiseDistance", "PoissonNLLLoss",
        "SoftMarginLoss",
    )},
    **{name: ((), lambda p: (p.ones(2, 3) * 0.5, p.ones(2, 3) / 4, p.ones(2, 3))) for name in (
        "GaussianNLLLoss", "MarginRankingLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss"
    )},
    "CosineEmbeddingLoss": ((), lambda p: (p.ones(2, 3) * 0.5, p.ones(2, 3) / 4, p.ones(2))),
    "MultiMarginLoss": ((), lambda p: (p.ones(2, 3) * 0.5, p.tensor([1, 2]))),
    "MultiLabelMarginLoss": ((), lambda p: (p.ones(2, 3) * 0.5, p.tensor([[1, -1, 0], [0, 2, -1]]))),
    "Threshold": ((0.1, 20.0), counted),
    **{name: ((4, 3), lambda p: p.ones(2, 1, 4)) for name in ("RNN", "LSTM", "GRU")},
    **{name: ((4, 3), lambda p: p.ones(2, 4)) for name in ("RNNCell", "LSTMCell", "GRUCell")},
    "TransformerEncoderLayer": ((4, 2, 8), lambda p: p.ones(2, 1, 4)),
    "TransformerDecoderLayer": ((4, 2, 8), lambda p: (p.ones(2, 1, 4), p.ones(3, 1, 4))),
}  # fmt: skip
# What we take and PyTorch refuses.
TAKEN = {
    # A tensor of one element is a number, None the usual one, and any object is a flag by its truth.
    ("CosineEmbeddingLoss", "margin", "a tensor"),
    ("PairwiseDistance", "p", "None"),
    ("TripletMarginLoss", "p", "None"),
    *(("PoissonNLLLoss", flag, junk) for flag in ("full", "log_input") for junk in JUNK),
    *(("TripletMarginLoss", "swap", junk) for junk in JUNK),
    *(("TripletMarginWithDistanceLoss", "swap", junk) for junk in JUNK),
}
# Tensors, settings, and what is refused whatever is given.
TENSORS = {
    # These are made of layers, or are what layers are made of.
    "DataParallel", "RNNBase", "RNNCellBase", "Transformer", "TransformerDecoder", "TransformerEncoder",
    "Buffer", "LinearCrossEntropyOptions", "Module", "Parameter", "SyncBatchNorm", "UninitializedBuffer",
    "UninitializedParameter",
}  # fmt: skip
LAYERS = sorted(
    name
    for name in pellucid.nn.__all__
    if inspect.isclass(getattr(pellucid.nn, name)) and name not in TENSORS
)


def attempt(p, name, args, place, junk):
    """What making and calling the layer raises, or None."""
    value = JUNK[junk](p, "cpu" if p is torch else "meta")
    given = (*args[:place], value, *args[place + 1 :]) if isinstance(place, int) else args
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            layer = getattr(p.nn, name)(*given, **({} if isinstance(place, int) else {place: value}))
            make = NEEDED.get(name, ((), counted))[1]
            if make is not None:
                seen = make(p)
                out = layer(*(seen if isinstance(seen, tuple) else (seen,)))
                for t in flat(out):
                    if t is not None and t.device.type != "meta":
                        t.tolist()  # where an index out of range is raised
    except Exception as error:  # whatever it is, the test looks at it
        return error
    return None


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", LAYERS)
def test_junk_is_refused(name, device):
    args = NEEDED.get(name, ((), counted))[0]
    parameters = list(inspect.signature(getattr(pellucid.nn, name)).parameters.values())
    later = [p.name for p in parameters[len(args) :] if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    wrong = []
    with pellucid.device(device):
        for place in [*range(len(args)), *later]:
            called = place if isinstance(place, str) else parameters[place].name
            for junk in JUNK:
                mine = attempt(pellucid, name, args, place, junk)
                assert (pellucid.ones(3) + 1).tolist() == [2.0] * 3
                if mine is None:
                    known = (
                        (name, called, junk) in TAKEN or junk == "elsewhere" or called in ("device", "dtype")
                    )
                    theirs = None if known else attempt(torch, name, args, place, junk)
                    # A float may be as large, which PyTorch does not take from an integer.
                    if theirs is not None and not (junk == "2**70" and isinstance(theirs, OverflowError)):
                        wrong.append(f"{called} is {junk}: PyTorch says {type(theirs).__name__} {theirs}")
                elif not (
                    isinstance(mine, (PellucidError, NotImplementedError)) or PYTORCHS.search(str(mine))
                ):
                    wrong.append(f"{called} is {junk}: a bare {type(mine).__name__}: {mine}")
    assert not wrong, "\n".join(wrong)
