"""`kernels.compile`: shaders of one's own, called with tensors."""

from itertools import pairwise

import numpy as np
import pytest

import pellucid
from pellucid import kernels
from pellucid.errors import ArgumentError, DeviceError, DTypeError, GradientError, KernelError, ShapeError

AXPY = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
struct Params { n: u32, factor: f32, x_offset: u32 }
@group(1) @binding(0) var<uniform> params: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < params.n) { out[id.x] += params.factor * x[params.x_offset + id.x]; }
}
"""
SPLIT = """
@group(0) @binding(0) var<storage, read> x: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> low: array<i32>;
@group(0) @binding(2) var<storage, read_write> high: array<i32>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) id: vec3<u32>) {
    let at = id.y * 3u + id.x;
    low[at] = bitcast<i32>(x[at].x);
    high[at] = bitcast<i32>(x[at].y);
}
"""


def add(x, out, n, factor):
    out.reshape(-1)[:n] += np.float32(factor) * x.reshape(-1)[:n]


axpy = kernels.compile(AXPY, name="axpy", reference=add)


TURN = """
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
struct Params { n: u32, host_turn: u32 }
@group(1) @binding(0) var<uniform> params: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < params.n) { out[id.x] = params.host_turn; }
}
"""


def test_the_host_gives_turns_to_whatever_launch_asks_for_them():
    turn = kernels.compile(TURN, name="turn")
    made = [pellucid.full((n,), 7, dtype=pellucid.uint32, device="webgpu") for n in (1, 2, 1, 2, 2, 1)]
    for out in made:
        turn(out, grid=1, n=out.numel(), host_turn=0)
        axpy(pellucid.ones(1, device="webgpu"), pellucid.ones(1, device="webgpu"), grid=1, n=1, factor=1)
    values = [out.tolist() for out in made]
    assert values[0] in ([0], [1])
    for before, after in pairwise(values):
        assert set(after) == {1 - before[0]}


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
def test_it_computes_what_its_reference_computes(device):
    x = pellucid.arange(12.0, device=device).reshape(3, 4)
    out = pellucid.ones(4, 3, device=device)
    assert axpy(x.t(), out, grid=1, n=12, factor=0.5) is out
    assert out.tolist() == (1 + 0.5 * np.arange(12.0).reshape(3, 4).T).tolist()
    assert out._version == 1


def test_a_view_begins_inside_its_buffer():
    x = pellucid.arange(10.0, device="webgpu")
    assert axpy(x[7:], pellucid.zeros(3, device="webgpu"), grid=1, n=3, factor=1).tolist() == [7, 8, 9]


def test_what_is_read_and_written_is_read_before():
    x = pellucid.arange(4.0, device="webgpu")
    assert axpy(x, x, grid=1, n=4, factor=2).tolist() == [0, 3, 6, 9]


def test_several_results_and_a_grid_of_two_dimensions():
    x = pellucid.tensor([2**40 + 5, -1, 3, 4, 5, 6], device="webgpu")
    split = kernels.compile(SPLIT)
    empty = pellucid.zeros(6, dtype=pellucid.int32, device="webgpu")
    low, high = split(x, empty, empty.clone(), grid=(3, 2))
    assert low.tolist() == [5, -1, 3, 4, 5, 6]
    assert high.tolist() == [256, -1, 0, 0, 0, 0]


def test_captured_calls_bring_their_own_numbers():
    def step(x, n):
        return axpy(x, pellucid.zeros_like(x), grid=1, n=n, factor=n / 2) + 1

    fast = pellucid.compile(step, dynamic=("n",))
    x = pellucid.arange(4.0, device="webgpu")
    for n in (1, 2, 3, 4, 2):
        assert fast(x, n).tolist() == step(x, n).tolist()


def test_an_autograd_function_gives_it_a_derivative():
    class Half(pellucid.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return axpy(x, pellucid.zeros_like(x, requires_grad=False), grid=1, n=x.numel(), factor=0.5)

        @staticmethod
        def backward(ctx, g):
            return 0.5 * g

    x = pellucid.ones(3, device="webgpu", requires_grad=True)
    Half.apply(x).sum().backward()
    assert x.grad.tolist() == [0.5] * 3


def on(shape, dtype=pellucid.float32):
    return pellucid.zeros(shape, dtype=dtype, device="webgpu")


@pytest.mark.parametrize(
    ("tensors", "numbers", "error", "said"),
    [
        ((3,), {}, ArgumentError, "1 tensors for the buffers x, out"),
        ((3, 1.5), {}, ArgumentError, "out is a float. Give a tensor"),
        ((3, 3), {"grid": 0}, ArgumentError, "grid is 0"),
        ((3, 3), {"grid": (1, 1, 1, 1)}, ArgumentError, "one to three numbers"),
        ((3, 3), {"grid": (70_000, 1)}, ShapeError, "over the device's limit"),
        ((3, 3), {"k": 1}, ArgumentError, "has no field k"),
        ((3, 3), {"n": -1}, ArgumentError, "n is -1, and the field is a u32"),
        ((3, 3), {"n": 2**40}, ArgumentError, "Give a number of 0 to 4294967295"),
        ((3, 3), {"n": "3"}, ArgumentError, "n must be an integer"),
        ((3, 3), {"n": None}, ArgumentError, "n must be an integer"),
        ((3, 3), {"factor": "x"}, TypeError, "factor"),
        ((3, on(3, pellucid.int32)), {}, DTypeError, "out is an array of f32; .*int32 lies in memory as i32"),
        ((on(3, pellucid.float16), 3), {}, DTypeError, "lies in memory as u32"),
        ((3, on((3, 4)).t()), {}, ShapeError, "out is not contiguous"),
        ((3, on(5)[1:]), {}, ShapeError, "Add a field out_offset"),
        ((3, on(3).requires_grad_()), {}, GradientError, "out requires a gradient"),
        ((pellucid.ones(3, device="cpu"), 3), {}, DeviceError, "is on cpu"),
    ],
)
def test_junk_is_refused(tensors, numbers, error, said):
    given = [on(t) if isinstance(t, int) else t for t in tensors]
    with pytest.raises(error, match=said):
        axpy(*given, **{"grid": 1, "n": 3, "factor": 1.0, **numbers})


def test_a_number_that_is_missing_is_named():
    with pytest.raises(ArgumentError, match="Params has the fields factor"):
        axpy(on(3), on(3), grid=1, n=3)


def test_results_do_not_share_memory():
    shared = on(6, pellucid.int32)
    with pytest.raises(ArgumentError, match="low, high share memory"):
        kernels.compile(SPLIT)(on(6, pellucid.int64), shared, shared, grid=6)


def test_without_a_reference_it_runs_on_webgpu_only():
    plain = kernels.compile(AXPY, name="plain")
    x = pellucid.ones(3, device="cpu")
    with pytest.raises(DeviceError, match="plain: a shader runs on webgpu only"):
        plain(x, x.clone(), grid=1, n=3, factor=1)
    assert plain(on(3) + 1, on(3), grid=1, n=3, factor=1).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        (3, ArgumentError, "source is a int"),
        ("fn main() {}", KernelError, "has no entry point"),
        ("@compute @workgroup_size(1) fn main() {}", KernelError, "declares no buffer that it writes into"),
        (AXPY.replace("factor", "grid"), KernelError, "the name grid is taken"),
        (AXPY.replace("factor: f32", "factor: vec4<f32>"), KernelError, "factor of Params is a vec4<f32>"),
        (AXPY.replace("factor: f32", "factor: f16"), KernelError, "factor of Params has type f16"),
    ],
)
def test_texts_that_are_no_kernel(source, error, said):
    with pytest.raises(error, match=said):
        kernels.compile(source)


def test_an_error_in_the_shader_is_told_and_ends_nothing():
    wrong = kernels.compile(AXPY.replace("params.factor", "params.factr"), name="wrong")
    out = on(3)
    with pytest.raises(KernelError, match="wrong"):
        wrong(out + 1, out, grid=1, n=3, factor=1).tolist()
    assert (on(3) + 1).tolist() == [1, 1, 1]


def test_the_shaders_of_the_package_can_be_read():
    found = kernels.names()
    assert found == sorted({*found})
    assert {"shape/triangle", "recurrence/scan_gradient", "matmul/quant/direct"} <= {*found}
    for name in found:
        text = kernels.source(name)
        assert "@compute" in text, name
        assert "fn main(" in text, name
    for name in ("shape/triangel", "parts/half", "../setup", 3):
        with pytest.raises(ArgumentError, match=r"^kernels\.source: there is no shader"):
            kernels.source(name)
    with pytest.raises(ArgumentError, match="Give 'shape/triangle'"):
        kernels.source("shape/triangel")
