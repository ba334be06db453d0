"""Datasets, samplers and loaders beside PyTorch's: each line gives in both what PyTorch gives."""

import collections
import warnings

import numpy as np
import pytest
import torch
import torch.utils.data

import pellucid
from pellucid.errors import PellucidError, RangeError
from pellucid.utils import data

Point = collections.namedtuple("Point", "x y")
LINES = """
[b for b in d.DataLoader(range(5), 2)]; [b for b in d.DataLoader(range(5), 2, drop_last=True)]
len(d.DataLoader(range(5), 2)); len(d.DataLoader(range(5), 2, drop_last=True)); len(d.DataLoader(range(5), None))
[b for b in d.DataLoader(range(3), None)]; [b for b in d.DataLoader(range(5), sampler=[3, 1, 2], batch_size=2)]
[b for b in d.DataLoader(range(5), batch_sampler=[[0, 4], [2]])]; len(d.DataLoader(range(5), batch_sampler=[[0]]))
[b for b in d.DataLoader(s(7), 3)]; [b for b in d.DataLoader(s(7), 3, drop_last=True)]; [b for b in d.DataLoader(s(2), None)]
len(d.DataLoader(s(7), 3)); d.DataLoader(s(7), shuffle=True); d.DataLoader(s(7), sampler=[1]); d.DataLoader(range(3), 0)
d.DataLoader(range(3), shuffle=True, sampler=[1]); d.DataLoader(range(3), 2, batch_sampler=[[0]]); d.DataLoader(range(3), None, drop_last=True)
d.DataLoader(range(3), num_workers=-1); d.DataLoader(range(3), prefetch_factor=2); d.DataLoader(range(3), persistent_workers=True)
[b for b in d.DataLoader(range(3), 2, collate_fn=sum)]; sorted(x for b in d.DataLoader(range(9), 4, shuffle=True) for x in b.tolist())
d.default_collate([t.ones(2), t.zeros(2)]); d.default_collate([1.5, 2.5]); d.default_collate([1, 2]); d.default_collate([True, False])
d.default_collate(["a", "b"]); d.default_collate([(1, 2.5), (3, 4.5)]); d.default_collate([[1, 2], [3, 4]]); d.default_collate([P(1, 2), P(3, 4)])
d.default_collate([{"a": 1, "b": t.ones(1)}, {"a": 2, "b": t.ones(1)}]); d.default_collate([np.ones(2), np.zeros(2)])
d.default_collate([np.float32(1), np.float32(2)]); d.default_collate([[1], [1, 2]]); d.default_collate([object()])
d.default_collate([np.array("x")]); d.default_convert({"a": np.ones(1), "b": [np.int64(2), "x"], "c": (np.ones(1), 3)}); d.default_convert(P(1, np.ones(1)))
d.TensorDataset(t.arange(4), t.arange(8).reshape(4, 2))[1]; len(d.TensorDataset(t.arange(4))); d.TensorDataset(t.ones(2), t.ones(3))
[d.ConcatDataset([range(2), range(5, 8)])[k] for k in (0, 1, 2, 4, -1)]; len(d.ConcatDataset([range(2), range(3)]))
d.ConcatDataset([range(2)])[2]; d.ConcatDataset([]); d.ConcatDataset([s(2)]); [*d.ChainDataset([s(2), s(3)])]; [*(s(2) + s(1))]
d.Subset("abcd", [3, 0])[1]; len(d.Subset("abcd", [3, 0])); d.StackDataset(range(3), "abc")[1]; d.StackDataset(a=range(3), b="abc")[2]
d.StackDataset(range(2), range(3)); d.StackDataset(); d.StackDataset(range(2), a=range(2)); len((d.TensorDataset(t.arange(4)) + range(3)))
[len(p) for p in d.random_split(range(10), [3, 7])]; [len(p) for p in d.random_split(range(10), [0.33, 0.33, 0.34])]; d.random_split(range(10), [3, 3])
d.random_split(range(10), [1.5, -0.5]); sorted(x for p in d.random_split(range(5), [2, 3]) for x in p.indices)
[*d.SequentialSampler("abc")]; sorted(d.RandomSampler("abcd")); len(d.RandomSampler("abcd", num_samples=7)); len([*d.RandomSampler("abcd", num_samples=7)])
len([*d.RandomSampler("abcd", True, 9)]); d.RandomSampler("abc", num_samples=0); d.RandomSampler("abc", replacement=2); sorted(d.SubsetRandomSampler([5, 7]))
[*d.BatchSampler("abcde", 2, False)]; [*d.BatchSampler("abcde", 2, True)]; len(d.BatchSampler("abcde", 2, True)); d.BatchSampler("ab", 0, True)
[*d.WeightedRandomSampler([0, 1, 0], 3)]; sorted(d.WeightedRandomSampler([1, 1, 0], 2, False)); d.WeightedRandomSampler([1, 0], 2.5); d.WeightedRandomSampler([[1]], 1)
[[*d.DistributedSampler("abcde", n, r, shuffle=False, drop_last=last)] for n, r, last in ((2, 0, False), (2, 1, True), (7, 6, False), (1, 0, True))]
[len(d.DistributedSampler("abcde", 3, r, drop_last=last)) for r in range(3) for last in (False, True)]; d.DistributedSampler("ab", 2, 2)
d.get_worker_info(); d.Dataset()[0]; next(iter(d.IterableDataset()))
"""  # noqa: E501


def shown(value):
    if isinstance(value, (torch.Tensor, pellucid.Tensor)):
        return "tensor", str(value.dtype).rpartition(".")[2], value.tolist()
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value).__name__, [shown(v) for v in value]
    return [type(value).__name__, *map(shown, value)] if isinstance(value, tuple) else str(value)


def outcome(library, room, line):
    class Stream(room.IterableDataset):
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return iter(range(self.n))

        def __len__(self):
            return self.n

    with pellucid.device("cpu"):
        try:
            return shown(eval(line, {"t": library, "d": room, "s": Stream, "np": np, "P": Point}))
        except Exception as error:
            return error


@pytest.mark.parametrize("line", [part for part in LINES.replace("\n", "; ").split("; ") if part])
def test_as_pytorch(line):
    theirs, ours = outcome(torch, torch.utils.data, line), outcome(pellucid, data, line)
    if not isinstance(theirs, Exception):
        assert not isinstance(ours, Exception), ours
        assert ours == theirs or "DataLoader object" in str(theirs)
        return
    assert isinstance(ours, (PellucidError, NotImplementedError, TypeError)), (ours, theirs)
    assert isinstance(ours, type(theirs)) or isinstance(theirs, AssertionError)


def test_seeds_reproduce_and_differ():
    def order(seed):
        return [*data.RandomSampler(range(20), generator=pellucid.Generator().manual_seed(seed))]

    assert order(3) == order(3) != order(4)
    assert [
        *data.DataLoader(range(20), None, shuffle=True, generator=pellucid.Generator().manual_seed(3))
    ] == order(3)


def test_processes_share_a_dataset():
    shares = [data.DistributedSampler(range(10), 2, rank) for rank in range(2)]
    first = [[*share] for share in shares]
    assert sorted(first[0] + first[1]) == [*range(10)]
    shares[0].set_epoch(1)
    assert [*shares[0]] != first[0]
    assert sorted(data.DistributedSampler("abc")) == [0, 1, 2]


@pytest.mark.parametrize("weights", [[-1, 2], [0, 0], [float("nan")], [float("inf"), 1]])
def test_weights_that_are_no_probabilities(weights):
    with pytest.raises(RangeError, match="must be finite, not negative, and not all 0"):
        data.WeightedRandomSampler(weights, 1)


def test_weights_are_frequencies():
    pellucid.manual_seed(0)
    drawn = [*data.WeightedRandomSampler([1, 3], 4000)]
    assert sum(drawn) / 4000 == pytest.approx(0.75, abs=0.03)
    first = [next(iter(data.WeightedRandomSampler([1, 3], 2, False))) for _ in range(400)]
    assert sum(first) / 400 == pytest.approx(0.75, abs=0.08)


def test_on_webgpu_numbers_are_of_the_default_dtype():
    (batch,) = data.DataLoader([(0.5, 1), (1.5, 2)], 2)
    assert [x.dtype for x in batch] == [pellucid.float32, pellucid.int64]
    assert batch[0].is_webgpu


def test_workers_are_refused_with_a_warning():
    with pytest.warns(UserWarning, match="num_workers=4 counts as 0"):
        loader = data.DataLoader(range(3), num_workers=4, prefetch_factor=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [b.item() for b in loader] == [0, 1, 2]
