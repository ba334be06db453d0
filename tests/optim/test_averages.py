"""Averaged models and renewed batch norms against PyTorch's."""

import numpy as np
import pytest
import torch

import pellucid

AVERAGES = {
    "mean": lambda s: {},
    "mean of lists": lambda s: {"multi_avg_fn": s.get_swa_multi_avg_fn()},
    "moving": lambda s: {"avg_fn": s.get_ema_avg_fn(0.9)},
    "moving lists": lambda s: {"multi_avg_fn": s.get_ema_multi_avg_fn(0.8), "use_buffers": True},
    "own": lambda s: {"avg_fn": lambda a, b, n: a + b * n},
}


def network(lib, device):
    model = lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.BatchNorm1d(2)).to(device)
    values = np.random.default_rng(3).standard_normal((2, 3)).astype(np.float32)
    with lib.no_grad():
        for k, p in enumerate(model.parameters()):
            p.copy_(lib.tensor(values.ravel()[: p.numel()] + k, device=device).view(p.shape))
    return model


@pytest.mark.parametrize("name", AVERAGES)
def test_averaged_model(name, device):
    seen = []
    batches = np.random.default_rng(1).standard_normal((3, 4, 3)).astype(np.float32)
    for lib, where in ((pellucid, device), (torch, "cpu")):
        model = network(lib, where)
        averaged = lib.optim.swa_utils.AveragedModel(model, **AVERAGES[name](lib.optim.swa_utils))
        for x in batches:
            model(lib.tensor(x, device=where))
            with lib.no_grad():
                model[0].weight.mul_(1.5)
            averaged.update_parameters(model)
        state = {k: v.tolist() for k, v in averaged.state_dict().items()}
        lib.optim.swa_utils.update_bn([(lib.tensor(x, device=where), 0) for x in batches], averaged)
        assert averaged.module[1].momentum == 0.1
        out = averaged.eval()(lib.tensor(batches[0], device=where))
        seen.append([state, out.detach().tolist()])
    assert seen[0][0].keys() == seen[1][0].keys()
    for k, x in seen[0][0].items():
        np.testing.assert_allclose(x, seen[1][0][k], atol=1e-5, err_msg=k)
    np.testing.assert_allclose(seen[0][1], seen[1][1], atol=1e-4)


def test_says_what_is_wrong():
    s = pellucid.optim.swa_utils
    with pytest.raises(ValueError, match="between 0 and 1, not 2"):
        s.get_ema_avg_fn(2)
    with pytest.raises(TypeError, match="not both"):
        s.AveragedModel(pellucid.nn.Linear(1, 1), avg_fn=abs, multi_avg_fn=abs)
    s.update_bn([], pellucid.nn.Linear(1, 1))
