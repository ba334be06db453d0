"""Names of PyTorch: what is there works as PyTorch's, what is missing says so, in every module."""

import http.server
import importlib
import subprocess
import sys
import textwrap
import threading
from functools import partial

import pytest
import torch

import pellucid
from pellucid.errors import ArgumentError, DeviceError, MissingError
from pellucid.tensors.absent import public
from pellucid.utils.compat import foreach, futures, hub, library
from pellucid.utils.compat.rooms import room

PLACES = [p for p in public() if p.startswith("torch.") and p.rpartition(".")[2][0].islower()]


def test_every_missing_name_says_so():
    """Of every module that is listed, in a process in which torch is Pellucid."""
    script = """
        import importlib, sys
        import pellucid
        from pellucid.tensors.absent import public
        pellucid.compat.install()
        quiet = []
        for place in sys.argv[1:]:
            try:
                module = importlib.import_module(place)
            except ModuleNotFoundError as error:
                quiet += [place] * ("PyTorch has this" not in str(error))
                continue
            for name in public()[place]:
                try:
                    getattr(module, name)
                except AttributeError as error:
                    quiet += [f"{place}.{name}"] * ("PyTorch has this" not in str(error))
        print(quiet)
    """
    words = [sys.executable, "-c", textwrap.dedent(script), *PLACES]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_layers_are_found_where_pytorch_has_them():
    script = """
        import pellucid
        pellucid.compat.install()
        from torch.nn.modules.activation import MultiheadAttention
        from torch.nn.modules.batchnorm import LazyBatchNorm1d
        from torch.nn.modules.rnn import LSTMCell
        from torch.cpu.amp import autocast
        from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
        import torch
        assert MultiheadAttention is torch.nn.MultiheadAttention
        try:
            torch.optim.adamw.adamw
        except AttributeError as error:
            assert "torch.optim.adamw.adamw: PyTorch has this" in str(error)
            several = [torch.ones(2, 2), torch.zeros(3)]
            flat = _flatten_dense_tensors(several)
            assert [tuple(t.shape) for t in _unflatten_dense_tensors(flat, several)] == [(2, 2), (3,)]
            print("done")
    """
    words = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "done", done.stderr


def test_what_is_printed_has_pytorchs_names():
    script = """
        import pellucid
        before = repr((pellucid.float32, pellucid.Size([1, 2]), pellucid.strided))
        pellucid.compat.install()
        import torch
        print(before, [torch.float32, torch.Size([1, 2]), torch.strided, torch.channels_last])
        print(torch.ones(1, dtype=torch.int32, device="cpu"), torch.ones(1, device="cpu").max(0))
    """
    words = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "(pellucid.float32, Size([1, 2]), pellucid.strided) "
        "[torch.float32, torch.Size([1, 2]), torch.strided, torch.channels_last]",
        "tensor([1], device='cpu', dtype=torch.int32) torch.return_types.max(",
        "values=tensor(1., device='cpu'),",
        "indices=tensor(0, device='cpu'))",
    ], done.stderr


def test_functions_of_several_tensors():
    """Those that ``torch._foreach_*`` has, also beside numbers and lists of them."""
    calls = {
        "mul": lambda t, xs: [(xs, 2.0), (xs, [2.0, 3.0]), (xs, xs[::-1])],
        "add": lambda t, xs: [(xs, xs, {"alpha": 2}), (xs, 1.0)],
        "sub": lambda t, xs: [(xs, xs)],
        "div": lambda t, xs: [(xs, 2.0)],
        "addcmul": lambda t, xs: [(xs, xs, xs, 0.5), (xs, xs, xs, [0.5, 2.0]), (xs, xs, xs, {"value": 3})],
        "addcdiv": lambda t, xs: [(xs, xs, xs)],
        "lerp": lambda t, xs: [(xs, [x + 1 for x in xs], 0.5), (xs, [x + 1 for x in xs], xs)],
        "clamp_min": lambda t, xs: [(xs, 1.0), (xs, xs[::-1])],
        "maximum": lambda t, xs: [(xs, 1.5), (xs, xs[::-1])],
        "pow": lambda t, xs: [(xs, 2.0)],
        "sqrt": lambda t, xs: [(xs,)],
        "neg": lambda t, xs: [(xs,)],
        "copy": lambda t, xs: [(xs, xs[::-1])],
        "zero": lambda t, xs: [(xs,)],
        "norm": lambda t, xs: [(xs,), (xs, 1)],
        "max": lambda t, xs: [(xs,)],
    }
    for name, given in calls.items():
        for end in ("", "_"):
            for k in range(len(given(torch, [torch.ones(1)] * 2))):
                found = []
                for lib in (torch, pellucid):
                    call = getattr(lib, f"_foreach_{name}{end}", None)
                    if call is None:
                        found.append(None)
                        continue
                    xs = [lib.tensor([1.0, 4.0], device="cpu"), lib.tensor([2.0, 3.0], device="cpu")]
                    args = given(lib, xs)[k]
                    named = args[-1] if isinstance(args[-1], dict) else {}
                    made = call(*(a for a in args if not isinstance(a, dict)), **named)
                    assert all(x is y for x, y in zip(made, xs, strict=True)) == bool(end)
                    found.append([x.tolist() for x in made])
                assert found[0] == found[1], (name, end, k)
    xs = [pellucid.tensor([1.0, 2.0], device="cpu")]
    assert [x.tolist() for x in pellucid._foreach_pow(2.0, xs)] == [[2.0, 4.0]]
    assert {name for name in dir(torch) if name.startswith("_foreach_")} - {"_foreach_powsum"} == {
        *foreach.FUNCTIONS
    }


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:.*CUDA is not available:UserWarning")
def test_mixed_precision_of_one_device():
    """``torch.cuda.amp`` and ``torch.cpu.amp``, whose names take no device."""
    for lib, cpu, cuda in (
        (torch, torch.cpu.amp, torch.cuda.amp),
        (pellucid, room("cpu.amp"), room("cuda.amp")),
    ):
        x = lib.ones(2, 2, device="cpu")
        with cpu.autocast():
            assert (x @ x).dtype is lib.bfloat16
        with cuda.autocast(False), cpu.autocast(True, lib.float16):
            assert (x @ x).dtype is lib.float16
        with pytest.warns(UserWarning, match="cuda|CUDA"), cuda.autocast():
            assert (x @ x).dtype is lib.float32
        scaler = cuda.GradScaler(1024.0, enabled=False)
        assert scaler.scale(x) is x
        assert isinstance(scaler, lib.amp.GradScaler)

        class Twice(lib.autograd.Function):
            @staticmethod
            @cuda.custom_fwd
            def forward(ctx, x):
                return x * 2

            @staticmethod
            @cuda.custom_bwd
            def backward(ctx, g):
                return g * 2

        y = lib.ones(1, requires_grad=True, device="cpu")
        Twice.apply(y).backward()
        assert y.grad.item() == 2
    assert room("cpu.amp").GradScaler(2.0).get_scale() == 2.0


def test_modules_by_device():
    of = pellucid.get_device_module
    assert not of("cuda").is_available()
    assert of("cpu").is_available()
    assert of("cpu").current_device() == torch.cpu.current_device()
    assert of(pellucid.device("webgpu")) is pellucid.webgpu
    assert room("cuda").get_rng_state_all() == []


def test_storages():
    x = pellucid.arange(6, dtype=pellucid.float32, device="cpu")[2:]
    y = torch.arange(6, dtype=torch.float32)[2:]
    typed, bytes_of = x.storage(), x.untyped_storage()
    assert typed.tolist() == [*range(6)]
    assert (typed.size(), len(typed), typed.nbytes(), typed.element_size()) == (6, 6, 24, 4)
    assert bytes_of.tolist() == y.untyped_storage().tolist()
    assert typed.data_ptr() == bytes_of.data_ptr() == bytes_of._cdata
    assert typed[1] == 1.0
    assert isinstance(bytes_of, pellucid.UntypedStorage)
    assert isinstance(typed, pellucid.TypedStorage)
    assert typed.dtype is pellucid.float32
    assert [pellucid.is_storage(found) for found in (typed, bytes_of, x)] == [True, True, False]


# torch.library


def test_an_operator_by_its_schema():
    made = library.Library("schemas", "DEF")
    made.define("scaled(Tensor x, Tensor? w=None, int[2] k=[1, 2], *, float e=1e-5, str s='none') -> Tensor")

    @library.impl(made, "scaled", "CompositeImplicitAutograd")
    def scaled(x, w, k, *, e, s):
        return x * k[0] if w is None else x * w, e, s

    call = room("ops").schemas.scaled
    x = pellucid.ones(2, device="cpu")
    assert call(x)[0].tolist() == [1.0, 1.0]
    assert call.default(x, k=[3], e=2.0, s="a")[1:] == (2.0, "a")
    assert call(x, x + 1)[0].tolist() == [2.0, 2.0]
    with pytest.raises(TypeError):
        call(x, x, [1], 1.0)


def test_arguments_by_keyword_have_derivatives():
    library.define("keywords::f", "(Tensor x, *, float k=2.0) -> Tensor")
    library.impl("keywords::f", "default", lambda x, *, k: x * k)

    def keep(ctx, inputs, keyword_only_inputs, output):
        ctx.k = keyword_only_inputs["k"]

    library.register_autograd("keywords::f", lambda ctx, g: g * ctx.k, setup_context=keep)
    x = pellucid.ones(2, device="cpu", requires_grad=True)
    out = pellucid.ops.keywords.f(x, k=5.0)
    out.sum().backward()
    assert (out.tolist(), x.grad.tolist()) == ([5.0, 5.0], [5.0, 5.0])
    with pytest.raises(ArgumentError, match="keywords::f is declared already"):
        library.define("keywords::f.other", "(Tensor x) -> Tensor")
    with pytest.raises(MissingError, match=r"torch\.library\.register_autograd"):
        library.Library("keywords", "IMPL").impl("f", lambda x: x, "Autograd")
    with pytest.raises(AttributeError, match="no operator is declared"):
        _ = pellucid.ops.nothing


def test_functions_by_device():
    library.define("devices::f", "(Tensor x) -> Tensor")
    with pytest.raises(MissingError, match="devices::f: no function computes it on cpu"):
        room("ops").devices.f(pellucid.ones(1, device="cpu"))
    library.register_kernel("devices::f", "cuda")(lambda x: x)
    library.impl("devices::f", "cpu", lambda x: x + 1)
    assert room("ops").devices.f(pellucid.ones(1, device="cpu")).tolist() == [2.0]
    library.register_autograd("devices::f", lambda ctx, g: g * 5)
    x = pellucid.ones(1, device="cpu", requires_grad=True)
    room("ops").devices.f(x).sum().backward()
    assert x.grad.tolist() == [5.0]
    with pytest.raises(ArgumentError, match="no operator 'devices::g' is declared"):
        library.register_autograd("devices::g", lambda ctx, g: g)
    with pytest.raises(ArgumentError, match="kind must be"):
        library.Library("devices", "USE")


def test_an_operator_for_other_devices_has_one_here():
    @library.custom_op("elsewhere::f", mutates_args=(), device_types="cuda")
    def f(x: pellucid.Tensor) -> pellucid.Tensor:
        raise AssertionError("not here")

    f.register_kernel("cpu")(lambda x: x * 3)
    assert f(pellucid.ones(1, device="cpu")).tolist() == [3.0]


def test_texts_of_a_schema_may_have_commas():
    schema = """f(Tensor x, str a="b, c", str d='e(, f', int[2] k=[1, 2], *, str g="\\"h,") -> Tensor"""
    for name, lib, call in (("commas", torch.library, torch), ("commas", library, None)):
        made = lib.Library(name, "DEF")
        made.define(schema)

        @lib.impl(made, "f", "CPU")
        def f(x, a="b, c", d="e(, f", k=(1, 2), *, g='"h,'):
            return x + len(f"{a}{d}{list(k)}{g}")

        x = (call or pellucid).zeros(1, device="cpu")
        op = call.ops.commas.f if call else library.namespace("commas").f
        assert op(x).tolist() == [18.0]
        assert op(x, "i,", g="").tolist() == [13.0]


# torch.futures


def test_futures():
    for lib in (torch.futures, futures):
        first, seen = lib.Future(), []
        later = first.then(lambda f: f.value() + 1)
        every = lib.collect_all([first, later])
        first.add_done_callback(lambda f, seen=seen: seen.append(f.value()))
        assert not first.done()
        first.set_result(1)
        assert later.wait() == 2
        assert seen == [1]
        assert [f.wait() for f in every.wait()] == lib.wait_all([first, later]) == [1, 2]
        with pytest.raises(RuntimeError):
            first.set_result(2)
    with pytest.raises(DeviceError, match="nothing set its result"):
        futures.Future().wait()


def test_errors_of_functions_that_wait_for_a_future(caplog):
    """What waits by then has a RuntimeError; what else waits says it in a log, and the next is called."""
    for lib in (torch.futures, futures):
        first, seen = lib.Future(), []
        first.add_done_callback(lambda f: 1 / 0)
        first.add_done_callback(lambda f, seen=seen: seen.append(f.value()))
        first.set_result(1)
        assert seen == [1]
        with pytest.raises(RuntimeError, match="ZeroDivisionError: division by zero"):
            first.then(lambda f: 1 / 0).wait()
        other = lib.Future()
        later = other.then(lambda f: f.value())
        other.set_exception(KeyError("nothing"))
        with pytest.raises(KeyError):
            other.wait()
        with pytest.raises(RuntimeError, match="KeyError"):
            later.wait()
    assert "raised an error" in caplog.text


# torch.hub


@pytest.fixture
def server(tmp_path):
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *a: None})
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(tmp_path)))
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{found.server_port}"
    found.shutdown()
    found.server_close()


def test_a_state_by_its_address(server, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    torch.save({"weight": torch.arange(3.0)}, tmp_path / "net-00ff.pth")
    address = f"{server}/net-00ff.pth"
    assert hub.load_state_dict_from_url(address)["weight"].tolist() == [0.0, 1.0, 2.0]
    kept = tmp_path / "home" / "hub" / "checkpoints" / "net-00ff.pth"
    assert kept.read_bytes() == (tmp_path / "net-00ff.pth").read_bytes()
    with pytest.raises(RuntimeError, match=r'invalid hash value \(expected "00ff"'):
        hub.load_state_dict_from_url(address, str(tmp_path / "other"), check_hash=True)
    assert not (tmp_path / "other" / "net-00ff.pth").exists()
    hub.set_dir(tmp_path / "chosen")
    try:
        assert hub.get_dir() == str(tmp_path / "chosen")
    finally:
        hub._chosen.clear()


# torch.overrides


def test_what_dispatches():
    ours = pellucid.overrides
    assert pellucid.tensor in ours.get_ignored_functions()
    assert pellucid.add not in ours.get_ignored_functions()
    made = ours.get_testing_overrides()[pellucid.nn.functional.linear]
    assert made(1, 2) == -1
    assert ours.is_tensor_method_or_property(pellucid.Tensor.view)
    assert not ours.is_tensor_method_or_property(pellucid.nn.functional.linear)


def test_names_of_every_place_are_there_in_pytorch():
    for place in PLACES:
        module = importlib.import_module(place)
        assert all(hasattr(module, name) for name in public()[place]), place


@pytest.mark.parametrize(
    "args", [([1.0, 2.0, 3.0],), ([pellucid.ones(1, device="cpu")],)], ids=["too many", "too few"]
)
def test_lists_of_foreach_have_one_length(args):
    tensors = [pellucid.ones(2, device="cpu"), pellucid.ones(2, device="cpu")]
    with pytest.raises(ArgumentError, match=r"_foreach_mul_: lists of 2, \d values"):
        pellucid._foreach_mul_(tensors, *args)
    assert [t.tolist() for t in tensors] == [[1, 1], [1, 1]]
    with pytest.raises(ArgumentError, match="lists of 0 values"):
        pellucid._foreach_neg([])
