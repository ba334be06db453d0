"""Learning rate schedules against PyTorch's, step by step."""

import copy
import functools
import inspect
import warnings

import pytest
import torch

import pellucid

STEPS = 25
SWALR = {lib.optim.lr_scheduler: lib.optim.swa_utils.SWALR for lib in (pellucid, torch)}


def optimizer(lib):
    params = [lib.ones(1, device="cpu", requires_grad=True) for _ in range(2)]
    return lib.optim.SGD([{"params": params[0]}, {"params": params[1], "lr": 0.5}], lr=0.1)


SCHEDULES = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda k: 0.9**k),
    "lambdas": lambda s, o: s.LambdaLR(o, [lambda k: 1 / (k + 1), lambda k: 0.5]),
    "step": lambda s, o: s.StepLR(o, 4, 0.3),
    "milestones": lambda s, o: s.MultiStepLR(o, [3, 7, 7, 20], 0.5),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.8),
    "linear": lambda s, o: s.LinearLR(o, 0.25, 0.75, 8),
    "constant": lambda s, o: s.ConstantLR(o, 0.25, 6),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 10, 0.01),
    "cycle": lambda s, o: s.OneCycleLR(o, 1.0, total_steps=STEPS + 1),
    "cycle by epochs": lambda s, o: s.OneCycleLR(
        o, [1.0, 2.0], epochs=13, steps_per_epoch=2, anneal_strategy="linear"
    ),
    "multiplied": lambda s, o: s.MultiplicativeLR(o, lambda k: 1 - 1 / (k + 1)),
    "polynomial": lambda s, o: s.PolynomialLR(o, 10, 2.0),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4, eta_min=0.01),
    "longer restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.01, [0.1, 0.2], 3, 5, cycle_momentum=False),
    "lower cycles": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 4, mode="triangular2"),
    "falling cycles": lambda s, o: s.CyclicLR(o, [0.01, 0.02], 0.1, 4, mode="exp_range", gamma=0.9),
    "own cycles": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 4, scale_fn=lambda k: 1 / k, max_momentum=[0.7, 0.8]),
    "chain": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9), s.LinearLR(o, 0.5), s.StepLR(o, 3)]
    ),
    "chain of cosine": lambda s, o: s.ChainedScheduler(
        [s.CosineAnnealingLR(o, 5, 0.01), s.MultiStepLR(o, [3, 8])], optimizer=o
    ),
    "average": lambda s, o: SWALR[s](o, [0.05, 0.2], anneal_epochs=4),
    "linear average": lambda s, o: SWALR[s](o, 0.05, 6, "linear"),
    "average at once": lambda s, o: SWALR[s](o, 0.05, 0),
    "sequence": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1.0, 5), s.StepLR(o, 3, 0.5), s.ConstantLR(o, 0.5, 4)], [5, 15]
    ),
}


def rates(lib, make):
    o = optimizer(lib)
    schedule = make(lib.optim.lr_scheduler, o)
    seen = [[g["lr"] for g in o.param_groups]]
    for _ in range(STEPS):
        o.step()
        schedule.step()
        seen.append([g["lr"] for g in o.param_groups])
        assert schedule.get_last_lr() == seen[-1]
    return seen


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_are_pytorchs(name):
    """P-096: all schedules of learning rates."""
    ours, theirs = rates(pellucid, SCHEDULES[name]), rates(torch, SCHEDULES[name])
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert a == pytest.approx(b, rel=1e-6, abs=1e-9), k


@pytest.mark.filterwarnings("ignore:.*was called before")
@pytest.mark.parametrize("name", SCHEDULES)
def test_goes_on_from_a_state(name):
    one, two = optimizer(pellucid), optimizer(pellucid)
    first, second = (SCHEDULES[name](pellucid.optim.lr_scheduler, o) for o in (one, two))
    for _ in range(9):
        first.step()
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    two.load_state_dict(one.state_dict())
    for _ in range(10):
        first.step()
        second.step()
        assert [g["lr"] for g in one.param_groups] == [g["lr"] for g in two.param_groups]


# Schedules whose rate is a factor of the step, with their arguments' names.
FACTORS = {
    "step": "step_size gamma",
    "milestones": "milestones gamma",
    "exponential": "gamma",
    "linear": "start_factor end_factor total_iters",
    "constant": "factor total_iters",
    "cosine": "T_max eta_min",
    "polynomial": "total_iters power",
}


def warned(run):
    """How often each line of this file was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [(w.category, w.filename == __file__) for w in caught]


@pytest.mark.parametrize("name", SCHEDULES)
def test_steps_before_the_optimizer_warn(name):
    """As PyTorch: at the first step, if the optimizer took none since the schedule was made."""
    for before, replaced in ((0, None), (1, None), (0, "plain"), (1, "wrapped")):
        counts = []
        for lib in (pellucid, torch):
            o = optimizer(lib)
            o.step()  # nobody asked yet
            schedule = SCHEDULES[name](lib.optim.lr_scheduler, o)
            if before:
                o.step()
            if replaced == "plain":
                o.step = lambda: None
            elif replaced == "wrapped":
                o.step = functools.wraps(o.step)(lambda: None)
            counts.append([len(warned(schedule.step)) for _ in range(3)])
        assert counts[0] == counts[1], (before, replaced)


def test_warnings_of_schedules_name_the_program():
    o = optimizer(pellucid)
    schedule = pellucid.optim.lr_scheduler.StepLR(o, 3)
    assert warned(schedule.step) == [(UserWarning, True)]
    assert warned(lambda: schedule.step(2)) == [(UserWarning, True)]
    plateau = pellucid.optim.lr_scheduler.ReduceLROnPlateau(o)
    assert warned(lambda: plateau.step(1.0, 2)) == [(UserWarning, True)]
    chain = pellucid.optim.lr_scheduler.ChainedScheduler([type(schedule)(optimizer(pellucid), 3)])
    assert warned(chain.step) == [(UserWarning, True)]


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_that_no_step_asks_for_warn(name):
    counts = []
    for lib in (pellucid, torch):
        schedule = SCHEDULES[name](lib.optim.lr_scheduler, optimizer(lib))
        if not hasattr(schedule, "schedulers") and "chain" not in name and "sequence" not in name:
            counts.append(len(warned(schedule.get_lr)))
    assert counts in ([1, 1], [])


@pytest.mark.filterwarnings("ignore:.*epoch is deprecated", "ignore:The epoch parameter")
@pytest.mark.filterwarnings("ignore:Detected call", "ignore:.*was called before")
@pytest.mark.parametrize("name", FACTORS)
def test_goes_to_a_step_and_on_from_one(name):
    seen = []
    for lib in (pellucid, torch):
        o = optimizer(lib)
        schedule, rates = SCHEDULES[name](lib.optim.lr_scheduler, o), []
        for k in (None, 7, 3, None):
            schedule.step() if k is None else schedule.step(k)
            rates += schedule.get_last_lr()
        state = schedule.state_dict()
        settings = {k: getattr(schedule, k) for k in FACTORS[name].split()}
        again = type(schedule)(o, **settings, last_epoch=schedule.last_epoch)
        rates += again.get_last_lr()
        again.step()
        rates += again.get_last_lr()
        seen.append([*rates, state["last_epoch"], state["_step_count"], *state["base_lrs"]])
    assert seen[0] == pytest.approx(seen[1], rel=1e-6)


@pytest.mark.parametrize("name", SCHEDULES)
def test_states_of_pytorch_are_loaded(name):
    made = {}
    for lib in (torch, pellucid):
        o = optimizer(lib)
        schedule = made[lib] = SCHEDULES[name](lib.optim.lr_scheduler, o)
        for _ in range(6):
            o.step()
            schedule.step()
    state = made[torch].state_dict()
    assert made[pellucid].state_dict().keys() == state.keys()
    o = optimizer(pellucid)
    again = SCHEDULES[name](pellucid.optim.lr_scheduler, o)
    again.load_state_dict(copy.deepcopy(state))
    o.load_state_dict(made[pellucid].optimizer.state_dict())
    assert again.get_last_lr() == pytest.approx(made[torch].get_last_lr())
    for _ in range(4):
        for schedule in (made[torch], again):
            schedule.optimizer.step()
            schedule.step()
        assert again.get_last_lr() == pytest.approx(made[torch].get_last_lr())


def test_states_of_functions_are_kept():
    class Falling:
        def __init__(self):
            self.by = 0.5

        def __call__(self, step):
            return self.by**step

    seen = []
    for lib in (torch, pellucid):
        schedule = lib.optim.lr_scheduler.LambdaLR(optimizer(lib), [Falling(), lambda step: 0.5])
        schedule.lr_lambdas[0].by = 0.25
        again = lib.optim.lr_scheduler.LambdaLR(optimizer(lib), [Falling(), lambda step: 0.5])
        again.load_state_dict(schedule.state_dict())
        seen.append((schedule.state_dict()["lr_lambdas"], again.lr_lambdas[0].by))
    assert seen[0] == seen[1] == ([{"by": 0.25}, None], 0.25)


RESUMED = {
    "step": lambda s, o, k: s.StepLR(o, 2, 0.1, last_epoch=k),
    "milestones": lambda s, o, k: s.MultiStepLR(o, [2, 4, 4], 0.1, last_epoch=k),
    "constant": lambda s, o, k: s.ConstantLR(o, 0.5, 4, last_epoch=k),
    "linear": lambda s, o, k: s.LinearLR(o, 0.5, 1.0, 4, last_epoch=k),
    "exponential": lambda s, o, k: s.ExponentialLR(o, 0.9, last_epoch=k),
    "cosine": lambda s, o, k: s.CosineAnnealingLR(o, 5, 0.01, last_epoch=k),
    "polynomial": lambda s, o, k: s.PolynomialLR(o, 5, 2.0, last_epoch=k),
    "lambda": lambda s, o, k: s.LambdaLR(o, lambda e: 0.9**e, last_epoch=k),
    "multiplied": lambda s, o, k: s.MultiplicativeLR(o, lambda e: 0.9, last_epoch=k),
    "restarts": lambda s, o, k: s.CosineAnnealingWarmRestarts(o, 3, last_epoch=k),
    "longer restarts": lambda s, o, k: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01, last_epoch=k),
    "cyclic": lambda s, o, k: s.CyclicLR(o, 0.01, 0.1, 3, cycle_momentum=False, last_epoch=k),
}


@pytest.mark.parametrize("last_epoch", [-1, 0, 1, 3, 4, 5])
@pytest.mark.parametrize("name", RESUMED)
def test_a_new_schedule_goes_on(name, last_epoch):
    """Of groups that say what they began with: some schedules leave the rates as they are at first."""
    seen = []
    for lib in (pellucid, torch):
        o = optimizer(lib)
        for group in o.param_groups:
            group["initial_lr"] = 2 * group["lr"]
        schedule = RESUMED[name](lib.optim.lr_scheduler, o, last_epoch)
        rates = [*schedule.get_last_lr()]
        for _ in range(9):
            o.step()
            schedule.step()
            rates += schedule.get_last_lr()
        seen.append(rates)
    assert seen[0] == pytest.approx(seen[1], rel=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"patience": 1},
        {"mode": "max", "patience": 0, "cooldown": 2, "min_lr": [0.01, 0.1]},
        {"threshold_mode": "abs", "threshold": 0.2, "patience": 0, "eps": 0.02, "factor": 0.5},
        {"mode": "max", "threshold_mode": "abs", "threshold": 0.1, "patience": 2},
    ],
)
def test_plateaus(settings):
    measures = [3, 2.0, 1.9, 2.5, 2, 2, 1.5, 1.5, 1.45, 1.6, 1, 1, 1, 1, float("nan"), 0.9]
    seen = []
    for lib in (pellucid, torch):
        o = optimizer(lib)
        schedule = lib.optim.lr_scheduler.ReduceLROnPlateau(o, **settings)
        for x in measures[:10]:
            schedule.step(lib.tensor(float(x)))
            seen.append(schedule.get_last_lr())
        again = lib.optim.lr_scheduler.ReduceLROnPlateau(o, **settings)
        again.load_state_dict(schedule.state_dict())
        for x in measures[10:]:
            again.step(x)
            seen.append([again.get_last_lr(), again.num_bad_epochs])
    half = len(seen) // 2
    assert seen[:half] == seen[half:]


def test_a_rate_that_is_a_tensor_is_written_into():
    seen = []
    for lib in (pellucid, torch):
        w = lib.ones(2, device="cpu", requires_grad=True)
        lr = lib.tensor(0.5, device="cpu")
        o = lib.optim.SGD([w], lr=lr)
        schedule = lib.optim.lr_scheduler.ExponentialLR(o, 0.5)
        for _ in range(2):
            w.grad = lib.ones(2, device="cpu")
            o.step()
            schedule.step()
        assert o.param_groups[0]["lr"] is lr
        seen.append([lr.item(), *w.tolist()])
    assert seen[0] == seen[1]


def adam(lib, **settings):
    w = lib.tensor([1.0, -2.0], requires_grad=True)
    return w, lib.optim.Adam([w], lr=0.1, **settings)


def sgd(lib):
    params = [lib.tensor([1.0, -2.0], requires_grad=True) for _ in range(2)]
    o = lib.optim.SGD([{"params": params[0]}, {"params": params[1], "momentum": 0.5}], lr=0.1, momentum=0.9)
    return params[1], o


CYCLES = {
    "as it is": {},
    "few steps": {"total_steps": 4},
    "no rise": {"pct_start": 0.0},
    "one step up": {"total_steps": 20, "pct_start": 0.05 + 1e-9},
    "linear": {"anneal_strategy": "linear", "base_momentum": 0.5, "max_momentum": 0.9},
    "three phases": {"three_phase": True},
    "three phases, linear": {"three_phase": True, "pct_start": 0.4, "anneal_strategy": "linear"},
    "rates only": {"cycle_momentum": False},
    "by epochs": {"total_steps": None, "epochs": 3, "steps_per_epoch": 4, "div_factor": 5.0},
}


@pytest.mark.parametrize("make", [adam, sgd])
@pytest.mark.parametrize("settings", CYCLES.values(), ids=list(CYCLES))
def test_one_cycle_trains_as_pytorchs(make, settings):
    seen = []
    for lib in (pellucid, torch):
        w, o = make(lib)
        many = len(o.param_groups) > 1
        given = {"total_steps": 12, **settings}
        if many and given.get("cycle_momentum", True):
            given |= {"base_momentum": [0.7, 0.8], "max_momentum": [0.9, 0.95]}
        schedule = lib.optim.lr_scheduler.OneCycleLR(o, [0.2, 0.4] if many else 0.2, **given)
        rows = []
        for _ in range(schedule.total_steps):
            o.zero_grad()
            (w * w).sum().backward()
            o.step()
            schedule.step()
            rows += [x for g in o.param_groups for x in (g["lr"], g.get("momentum", g.get("betas", [0])[0]))]
            rows += w.tolist()
        seen.append(rows)
    assert seen[0] == pytest.approx(seen[1], rel=1e-5, abs=1e-6)


@pytest.mark.filterwarnings("ignore:.*was called before")
def test_one_cycle_goes_on_from_a_state():
    (_, one), (_, two) = adam(pellucid), adam(pellucid)
    first, second = (pellucid.optim.lr_scheduler.OneCycleLR(o, 0.2, total_steps=20) for o in (one, two))
    for _ in range(9):
        first.step()
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    two.load_state_dict(one.state_dict())
    for _ in range(5):
        first.step()
        second.step()
        assert one.param_groups[0]["betas"] == two.param_groups[0]["betas"]


def test_no_argument_of_pytorch_is_missing():
    for ours, theirs in (
        (pellucid.optim.lr_scheduler, torch.optim.lr_scheduler),
        (pellucid.optim.swa_utils, torch.optim.swa_utils),
        (pellucid.optim, torch.optim),
    ):
        for name in ours.__all__:
            # Ours alone: K-FAC, and optimizers with 8-bit state.
            if not callable(getattr(ours, name)) or name in ("KFAC", "Adam8bit", "AdamW8bit"):
                continue
            have, wanted = (inspect.signature(getattr(m, name)).parameters for m in (ours, theirs))
            assert list(wanted) == list(have), name
            for k, p in have.items():
                assert p.default == wanted[k].default, (name, k)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda s, o: s.StepLR(3, 1), TypeError, "takes an optimizer, not int"),
        (lambda s, o: s.LambdaLR(o, [abs]), ValueError, "1 functions for 2 groups"),
        (lambda s, o: s.StepLR(o, 2, last_epoch=3), KeyError, "initial_lr"),
        (lambda s, o: s.LinearLR(o, 2.0), ValueError, "factors must lie between"),
        (lambda s, o: s.ConstantLR(o, 2.0), ValueError, "factor must lie between"),
        (lambda s, o: s.OneCycleLR(o, 1.0), ValueError, "give total_steps"),
        (lambda s, o: s.OneCycleLR(o, 1.0, 0), ValueError, "must be positive"),
        (lambda s, o: s.OneCycleLR(o, 1.0, 5, anneal_strategy="x"), ValueError, "'cos' or 'linear'"),
        (lambda s, o: s.OneCycleLR(3, 1.0, 5), TypeError, "takes an optimizer, not int"),
        (lambda s, o: s.OneCycleLR(o, [1.0], 5), ValueError, "1 values of max_lr for 2 groups"),
        (lambda s, o: s.OneCycleLR(o, 1.0, 5, max_momentum=[1.0]), ValueError, "1 values of max_momentum"),
        (lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="x"), ValueError, "mode must be 'triangular'"),
        (lambda s, o: s.CyclicLR(o, 0.1, 0.2, 0), ValueError, "halves of 0 and 0 steps"),
        (lambda s, o: s.CosineAnnealingWarmRestarts(o, 0), ValueError, "T_0 must be a positive integer"),
        (lambda s, o: s.CosineAnnealingWarmRestarts(o, 2).step(-1), ValueError, "at least 0, not -1"),
        (lambda s, o: s.ChainedScheduler([]), ValueError, "there are no schedules"),
        (
            lambda s, o: s.ChainedScheduler([s.StepLR(o, 1)], optimizer(pellucid)),
            ValueError,
            "another optimizer",
        ),
        (lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]), ValueError, "needs a measure"),
        (lambda s, o: s.ReduceLROnPlateau(o, factor=1), ValueError, "below 1, not 1"),
        (lambda s, o: s.ReduceLROnPlateau(o, mode="x"), ValueError, "mode must be 'min' or 'max', not 'x'"),
        (lambda s, o: SWALR[s](o, 0.1, -1), ValueError, "anneal_epochs must be"),
        (lambda s, o: SWALR[s](o, 0.1, anneal_strategy="x"), ValueError, "'cos' or 'linear'"),
        (lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [1]), ValueError, "1 schedules need 0 milestones"),
    ],
)
def test_says_what_is_wrong(make, error, message):
    with pytest.raises(error, match=message):
        make(pellucid.optim.lr_scheduler, optimizer(pellucid))


@pytest.mark.filterwarnings("ignore:.*was called before")
def test_one_cycle_ends():
    schedule = pellucid.optim.lr_scheduler.OneCycleLR(optimizer(pellucid), 1.0, total_steps=2)
    schedule.step()
    schedule.step()
    with pytest.raises(ValueError, match="step 3 is after the last of 2"):
        schedule.step()
