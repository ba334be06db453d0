"""`torch.testing`: what is close, messages and refusals as in PyTorch."""

import re

import numpy as np
import pytest
import torch

import pellucid

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
PAIRS = [
    ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], {}),
    ([1.0, 2.0, 3.0], [1.0, 2.00001, 3.0], {}),
    ([1.0, 2.0, 3.0], [1.0, 2.1, 3.5], {}),
    ([1.0, 2.0], [1.0, 2.1], {"rtol": 0.1, "atol": 0.0}),
    ([[1, 2], [3, 4]], [[1, 2], [3, 5]], {}),
    ([1, 2], [1, 3], {"rtol": 0.0, "atol": 1.0}),
    ([float("nan")], [float("nan")], {}),
    ([float("nan")], [float("nan")], {"equal_nan": True}),
    ([float("inf"), 1.0], [float("inf"), 1.0], {}),
    ([float("inf")], [-float("inf")], {}),
    ([1.0, 2.0], [1.0], {}),
    ([True, False], [True, True], {}),
    ([1.0], [2.0], {"msg": "not this"}),
    ([1.0], [2.0], {"msg": lambda text: f"for sure: {text}"}),
]
NESTED = [
    (lambda t: ({"a": t.tensor(1.0), "b": [t.tensor([2])]}, {"a": t.tensor(1.0), "b": [t.tensor([3])]})),
    (lambda t: ({"a": t.tensor(1.0)}, {"b": t.tensor(1.0)})),
    (lambda t: ([t.tensor(1.0)], [t.tensor(1.0), t.tensor(2.0)])),
    (lambda t: (1.0, 1.1)),
    (lambda t: (3, 3)),
    (lambda t: (t.tensor(1.0), t.tensor(1))),
    (lambda t: (t.tensor(1), t.tensor(1, dtype=t.int32))),
    (lambda t: ((t.tensor(1.0), 2), (t.tensor(1.0), 2))),
]


def said(t, actual, expected, **settings) -> str:
    """What is raised, with numbers of four digits; nothing if they are close."""
    try:
        t.testing.assert_close(actual, expected, **settings)
    except AssertionError as error:
        text = str(error).replace("torch.", "").replace("pellucid.", "")
        return re.sub(r"\d+\.\d+(e[+-]?\d+)?", lambda m: f"{float(m[0]):.3g}", text)
    return ""


@pytest.mark.parametrize(("actual", "expected", "settings"), PAIRS)
@pytest.mark.parametrize("device", ["webgpu", "cpu"])
def test_tensors(actual, expected, settings, device):
    ours = said(pellucid, *(pellucid.tensor(v, device=device) for v in (actual, expected)), **settings)
    assert ours == said(torch, torch.tensor(actual), torch.tensor(expected), **settings)


@pytest.mark.parametrize("pair", NESTED)
def test_numbers_sequences_and_mappings(pair):
    with pellucid.device("cpu"):
        ours = said(pellucid, *pair(pellucid))
    theirs = said(torch, *pair(torch))
    assert bool(ours) == bool(theirs)
    assert ours.splitlines()[:1] == theirs.splitlines()[:1]


def test_halves_and_what_is_refused():
    a = pellucid.tensor([1.0, 2.0], dtype=pellucid.float16)
    pellucid.testing.assert_close(a, a + 0.001)
    with pytest.raises(AssertionError):
        pellucid.testing.assert_close(a, a + 0.01)
    pellucid.testing.assert_close(a, a.float(), check_dtype=False)
    with pytest.raises(AssertionError, match="'dtype' do not match"):
        pellucid.testing.assert_close(a, a.float())
    with pytest.raises(ValueError, match="must both be specified"):
        pellucid.testing.assert_close(a, a, rtol=1.0)
    with pytest.raises(TypeError, match="No comparison pair"):
        pellucid.testing.assert_close(a, "text")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool", "complex64"])
def test_made_tensors(dtype):
    t = pellucid.testing.make_tensor(3, 40, dtype=getattr(pellucid, dtype), low=0, high=2, exclude_zero=True)
    assert tuple(t.shape) == (3, 40)
    assert str(t.dtype).endswith(dtype)
    values = t.numpy()
    assert np.all(values != 0)
    assert np.all(np.abs(values) < 3)
    gaps = pellucid.testing.make_tensor((2, 3), dtype=getattr(pellucid, dtype), noncontiguous=True)
    assert tuple(gaps.shape) == (2, 3)
    assert not gaps.is_contiguous()
