"""The table of PyTorch's modules: every name is one of PyTorch's, every answer that of PyTorch without an
accelerator."""

import importlib
import importlib.util
import subprocess
import sys
import textwrap

import pytest
import torch

import pellucid
from pellucid.errors import MissingError, PellucidError
from pellucid.tensors.absent import INSTEAD, public
from pellucid.utils.compat.rooms import ROOMS, room

# What PyTorch answers otherwise where it has more, or asks for arguments.
OTHERWISE = {
    "backends.mkl", "backends.mkldnn", "backends.openmp", "backends.opt_einsum", "distributed", "jit",
    "backends.cpu", "backends.cuda", "backends.cudnn", "distributed.rpc", "compiler",
    "fx.experimental.symbolic_shapes", "_dynamo.utils",
}  # fmt: skip


def theirs(path: str):
    return importlib.import_module(f"torch.{path}".rstrip("."))


@pytest.mark.parametrize("path", ROOMS)
def test_every_name_is_one_of_pytorch(path):
    try:
        known = theirs(path)
    except ImportError:
        # Attributes that are no modules.
        known = torch
        for part in path.split("."):
            known = getattr(known, part)
    missing = [n for n in ROOMS[path].names(path) if not hasattr(known, n)]
    assert not missing


@pytest.mark.parametrize("path", [p for p in ROOMS if ROOMS[p].answers])
def test_every_answer_is_that_of_pytorch(path):
    for name, answer in ROOMS[path].answers.items():
        assert getattr(room(path), name)() == answer
        if path not in OTHERWISE and name not in ("isinstance", "is_distributed", "is_storage"):
            assert getattr(theirs(path), name)() == answer, name


def test_files_of_pytorch_open_where_it_would_write_them():
    assert room("export").load is pellucid.export.load
    assert room("onnx").load is pellucid.onnx.load
    with pytest.raises(MissingError, match=r"torch\.export\.export: .*Use torch\.export\.load for programs"):
        room("export").export(pellucid.nn.Linear(1, 1), ())


def test_what_would_compute_is_refused_at_the_call():
    with pytest.raises(
        MissingError, match=r"torch\.jit\.trace: PyTorch has this, Pellucid does not yet\. Use torch\.comp"
    ):
        room("jit").trace(lambda x: x, ())
    with pytest.raises(MissingError, match=r"torch\.cuda\.Stream: PyTorch has this"):
        pellucid.cuda.Stream()
    assert not isinstance(pellucid.ones(1), pellucid.fx.Proxy)
    assert room("jit").ignore(len) is len
    assert pellucid.compiler.allow_in_graph(len) is len
    with pellucid.backends.cuda.sdp_kernel(enable_flash=False):
        pass


@pytest.mark.parametrize(
    ("place", "name", "said"),
    [
        (pellucid, "quantize_per_tensor", r"torch\.quantize_per_tensor: PyTorch has this.*pellucid\.quant"),
        (pellucid, "onse", r"torch has no attribute 'onse'$|Did you mean"),
        (pellucid.nn, "Container", r"torch\.nn\..*: PyTorch has this, Pellucid does not yet"),
        (pellucid.nn, "Liner", r"torch\.nn has no attribute 'Liner'\. Did you mean 'Linear'\?"),
        (pellucid.ones(1), "to_sparse", r"torch\.Tensor\.to_sparse: PyTorch has this.*Use dense tensors"),
        (pellucid.cuda, "jiterator", r"torch\.cuda\.jiterator: PyTorch has this.*the device 'webgpu'"),
        (pellucid.cuda, "nonsense", r"torch\.cuda has no attribute"),
    ],
)
def test_a_missing_name_says_what_it_is(place, name, said):
    assert not hasattr(place, name)
    with pytest.raises(AttributeError, match=said):
        getattr(place, name)


def test_a_tensor_refuses_without_slower_reads():
    """CPython specializes no attribute of a class that has ``__getattr__``."""
    assert not any("__getattr__" in vars(cls) for cls in pellucid.Tensor.__mro__)
    assert "to_sparse" not in dir(pellucid.ones(1))
    assert not hasattr(pellucid.Tensor, "to_sparse")


def test_the_list_of_names_is_that_of_the_version_it_names():
    assert public()["version"] == {torch.__version__.partition("+")[0]}
    assert {"svd_lowrank", "Tensor", "cuda"} <= public()["torch"]
    assert all(text and not text.endswith(".") for text in INSTEAD.values())


def python(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_row_of_a_module_that_exists_has_its_names():
    for path, row in ROOMS.items():
        package = path.partition(".")[0]
        if package in ("nn", "optim", "autograd") and path.count(".") == 1:
            exists = importlib.util.find_spec(f"pellucid.{path}") is not None
            assert not exists or path in row.at.split(), path


def test_install_in_a_process_of_its_own():
    python(
        """
        import pellucid
        torch = pellucid.compat.install()
        assert pellucid.compat.install() is torch and pellucid.compat.is_installed()
        import importlib.metadata, importlib.util
        import torch.nn.functional as F
        from torch import nn, Tensor
        from torch.nn.modules.linear import Linear
        from torch.optim.adamw import AdamW
        from torch.utils._pytree import tree_map
        from torch.cuda.amp import GradScaler
        import torch.linalg, torch.fft, torch.special
        assert torch.linalg is pellucid.linalg and torch.linalg.__spec__.name.startswith("pellucid.")
        assert nn.Linear is Linear is pellucid.nn.Linear and F is pellucid.nn.functional
        assert AdamW is pellucid.optim.AdamW and torch.optim.AdamW is AdamW
        assert importlib.metadata.version("torch") == torch.__version__
        assert importlib.util.find_spec("torch").name == "torch"
        assert pellucid.nn.__spec__.name == "pellucid.nn"
        assert torch.nn.parallel.DistributedDataParallel.__name__ == "DistributedDataParallel"
        missing = torch.nn.LazyLinear
        assert not isinstance(nn.Linear(1, 1), (missing, torch.fx.GraphModule))
        try:
            missing(1)
        except pellucid.errors.MissingError as error:
            assert str(error).startswith("torch.nn.LazyLinear: PyTorch has this")
        assert torch.float32 is pellucid.float32 and "nn" in dir(torch)
        assert torch.distributions.normal.Normal is torch.distributions.Normal
        assert torch.distributions.kl.kl_divergence is torch.distributions.kl_divergence
        assert torch.nn.utils.clip_grad.clip_grad_norm_ is torch.nn.utils.clip_grad_norm_
        assert torch.optim.adam.Adam is torch.optim.Adam and not hasattr(torch.optim, "nonsense")
        from torch.nn.attention import SDPBackend, sdpa_kernel
        assert SDPBackend.MATH.name == "MATH" and sdpa_kernel is pellucid.nn.attention.sdpa_kernel
        assert issubclass(torch.OutOfMemoryError, torch.cuda.OutOfMemoryError)
        try:
            import torch.utils.cpp_extension
        except ModuleNotFoundError as error:
            assert "PyTorch has this" in str(error)
        try:
            import torch.nonsense
        except ModuleNotFoundError as error:
            assert "PyTorch has this" not in str(error)
        """
    )


def test_one_process_has_one_torch():
    assert sys.modules["torch"] is torch
    with pytest.raises(PellucidError, match="imported already"):
        pellucid.compat.install()
    assert not pellucid.compat.is_installed()
