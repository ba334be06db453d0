"""`Module.compile`: a module whose forward is captured in place."""

import copy
import pickle

import pytest

import pellucid as torch
from pellucid.op.jit import Compiled

pytestmark = pytest.mark.gpu


def made():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()).to("webgpu")
    return model, torch.ones(2, 3, device="webgpu")


def replays(model):
    return model.forward.explain().replays


def calls(model, x, count=5):
    with torch.no_grad():
        return [model(x).tolist() for _ in range(count)]


def test_calls_are_replayed_and_the_module_stays_what_it_was():
    model, x = made()
    expected, names = calls(model, x, 1), [*model.state_dict()]
    assert model.compile() is None
    assert calls(model, x) == 5 * expected
    assert replays(model) >= 3
    assert type(model) is torch.nn.Sequential
    assert [*model.state_dict()] == names
    with torch.no_grad():
        model[0].bias.add_(1)
    assert calls(model, x, 1) != expected


def test_inner_modules_are_compiled_and_again():
    model, x = made()
    model[0].compile()
    model[0].compile(fullgraph=True)
    expected = calls(model, x, 1)
    assert calls(model, x) == 5 * expected
    assert replays(model[0]) >= 3


def test_hooks_run_and_those_of_other_modules_are_no_matter():
    model, x = made()
    model.compile()
    seen = []
    other = torch.nn.ReLU()
    other.register_forward_hook(lambda *_: seen.append("other"))
    own = model.register_forward_hook(lambda *_: seen.append("own"))
    calls(model, x, 2)
    assert seen == ["own", "own"]
    own.remove()
    calls(model, x)
    assert replays(model) >= 3


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_have_a_capture_of_their_own(copied):
    model, x = made()
    model.compile()
    expected = calls(model, x)
    twin = copied(model)
    with torch.no_grad():
        twin[0].weight.zero_()
        twin[0].bias.fill_(2.0)
    assert calls(twin, x) == 5 * [[[2.0] * 4] * 2]
    assert replays(twin) >= 3
    assert calls(model, x) == expected


def test_a_shallow_copy_is_not_captured():
    model, x = made()
    model.compile()
    twin = copy.copy(model)
    assert not isinstance(twin.forward, Compiled)
    assert calls(twin, x) == calls(model, x)


def test_names_that_forward_has_not():
    model, _ = made()
    with pytest.raises(ValueError, match="dynamic= names"):
        model.compile(dynamic="position")
    assert not isinstance(model.forward, Compiled)
