"""Record what torchdiffeq, numpyro and arviz compute: tests/golden/physics.npz.

    python -m venv /tmp/golden
    /tmp/golden/bin/pip install torch==2.13.0 torchdiffeq==0.2.5 numpyro==0.22.0 arviz-stats==0.8.0
    /tmp/golden/bin/python scripts/golden_physics.py

In an environment of its own, since jax is not needed for anything else.
"""
# pyright: reportMissingImports=false

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import torch
import torchdiffeq
from arviz_stats.base import array_stats
from numpyro import diagnostics, distributions
from numpyro.infer import MCMC, NUTS
from numpyro.infer.hmc_util import euclidean_kinetic_energy, velocity_verlet

FILE = Path(__file__).resolve().parents[1] / "tests" / "golden" / "physics.npz"
METHODS = ("dopri5", "euler", "midpoint", "rk4")
STEP = 0.1
Arrays = dict[str, np.ndarray]


def solved(rng: np.random.Generator) -> Arrays:
    """A neural ODE that knows the time, by each method: values, and gradients of a weighted sum of them."""
    given = {
        "W": rng.standard_normal((2, 8)) / 2, "b": rng.standard_normal(8) / 3,
        "V": rng.standard_normal((8, 2)) / 2, "y0": rng.standard_normal((3, 2)),
    }  # fmt: skip
    times, weight = np.array([0.0, 0.3, 0.8, 1.5]), rng.standard_normal((4, 3, 2))
    found: Arrays = {f"ode_{k}": v for k, v in given.items()} | {"ode_t": times, "ode_weight": weight}
    for name in (*METHODS, "adjoint"):
        method, adaptive = ("dopri5", True) if name == "adjoint" else (name, name == "dopri5")
        W, b, V, y0 = leaves = [torch.tensor(x).requires_grad_() for x in given.values()]

        def field(t: torch.Tensor, y: torch.Tensor, W=W, b=b, V=V) -> torch.Tensor:
            return ((y**3) @ W + b * t.cos()).tanh() @ V

        solve = torchdiffeq.odeint_adjoint if name == "adjoint" else torchdiffeq.odeint
        more = {"adjoint_params": (W, b, V)} if name == "adjoint" else {}
        more |= {"rtol": 1e-10, "atol": 1e-12} if adaptive else {"options": {"step_size": STEP}}
        y = solve(field, y0, torch.tensor(times), method=method, **more)
        (y * torch.tensor(weight)).sum().backward()
        found[f"ode_{name}"] = y.detach().numpy()
        for key, leaf in zip(given, leaves, strict=True):
            assert leaf.grad is not None
            found[f"ode_{name}_{key}"] = leaf.grad.numpy()
    return found


def chains(rng: np.random.Generator) -> Arrays:
    """Chains that agree, that are slow, that alternate, with heavy tails and that disagree, and what is said
    of them.
    """
    x = rng.standard_normal((151, 4, 5))
    for t in range(1, len(x)):
        x[t] += np.array([0.0, 0.9, -0.4, 0.5, 0.3]) * x[t - 1]
    x[..., 3] = np.sinh(2 * x[..., 3])
    x[:, 0, 4] += 1
    z = np.ascontiguousarray(x.swapaxes(0, 1))

    def each(function: str, **more) -> np.ndarray:
        call = getattr(array_stats, function)
        return np.array([call(z[..., k], chain_axis=0, draw_axis=1, **more) for k in range(z.shape[2])])

    return {
        "chains": x,
        "r_hat_plain": diagnostics.gelman_rubin(z),
        "r_hat_split": diagnostics.split_gelman_rubin(z),
        "r_hat_rank": each("rhat", method="rank"),
        "ess_plain": diagnostics.effective_sample_size(z),
        "ess_mean": each("ess", method="mean"),
        "ess_bulk": each("ess", method="bulk"),
        "ess_tail": each("ess", method="tail", prob=(0.05, 0.95)),
    }


def leapt(rng: np.random.Generator) -> Arrays:
    """Ten steps of velocity Verlet in the potential ``sum(cosh(q)) + q[0] q[1]``."""
    q, p = rng.standard_normal((2, 3))
    inverse = np.array([1.0, 0.5, 2.0])
    found: Arrays = {"verlet_start": np.stack([q, p]), "verlet_inverse": inverse}
    start, update = velocity_verlet(lambda q: jnp.cosh(q).sum() + q[0] * q[1], euclidean_kinetic_energy)
    for name, masses in (("unit", np.ones(3)), ("masses", inverse)):
        state = start(jnp.array(q), jnp.array(p))
        for _ in range(10):
            state = update(0.1, jnp.array(masses), state)
        found[f"verlet_{name}"] = np.stack([state.z, state.r])
    return found


def posterior(rng: np.random.Generator) -> Arrays:
    """A logistic regression by NUTS: means and deviations of so many draws that their error is small."""
    x = rng.standard_normal((40, 3))
    y = (rng.random(40) < 1 / (1 + np.exp(-x @ [1.0, -1.5, 0.5]))).astype(np.float64)

    def model():
        w = numpyro.sample("w", distributions.Normal(0, 2).expand([3]).to_event(1))
        numpyro.sample("y", distributions.Bernoulli(logits=x @ w), obs=y)

    run = MCMC(NUTS(model), num_warmup=1000, num_samples=10_000, num_chains=4, progress_bar=False)
    run.run(jax.random.PRNGKey(0))
    w = np.asarray(run.get_samples(group_by_chain=True)["w"])
    flat = w.reshape(-1, 3)
    return {
        "posterior_x": x, "posterior_y": y, "posterior_mean": flat.mean(0), "posterior_sd": flat.std(0),
        "posterior_error": flat.std(0) / np.sqrt(diagnostics.effective_sample_size(w)),
    }  # fmt: skip


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    numpyro.set_host_device_count(4)
    rng = np.random.default_rng(0)
    parts = (solved, chains, leapt, posterior)
    found: dict[str, Any] = {k: v for part in parts for k, v in part(rng).items()}
    np.savez_compressed(FILE, **found)
    print(f"{FILE}: {len(found)} arrays, {FILE.stat().st_size:,} bytes")
