"""The rows under PyTorch itself: what the same machine does without a browser, as a ceiling.

The programs are those of ours/rows.py, unchanged: they get PyTorch under Pellucid's name. Only the language
model is opened by transformers, from the same file.
"""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import assets
from . import native
from .ours import forms
from .ours.data import integers
from .ours.forms import Form, Row, Unavailable
from paths import WEIGHTS

# Rows whose compiled form says something and compiles within a minute.
COMPILED = ("chain", "block", "decode")


class PyTorch:
    """PyTorch on a device, under the name by which the rows know their library.

    Args:
        device: a device of PyTorch, ``cuda`` or ``cpu``.
        torch: the module ``torch``.
    """

    def __init__(self, device: str, torch: Any) -> None:
        self.torch, self.device = torch, device
        # The rows compute in float32, and so do the others.
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = False
        torch.set_default_device(device)
        sys.modules["pellucid"], sys.modules["pellucid.nn"] = torch, torch.nn
        forms.DEVICE = device
        from .ours.rows import ROWS

        self._rows = {**ROWS, "prefill": self._prefill, "decode": self._decode}
        self._model: Any = None

    def facts(self) -> dict[str, Any]:
        """The library, its version and the device."""
        where = self.torch.cuda.get_device_name() if self.device == "cuda" else self.device
        return {"library": f"PyTorch {self.torch.__version__}, {where}"}

    def numbers(self, output: Any) -> np.ndarray:
        """The values of a tensor, or of what was read already."""
        return self.torch.as_tensor(output, device="cpu").detach().numpy()

    def wait(self) -> None:
        """Until everything queued is done."""
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def forms(self, row: Row) -> dict[str, Form]:
        """The forms of a row that PyTorch has.

        Raises: Unavailable when the row needs what is not here.
        """
        made = self._rows[row["kind"]](row)
        wanted = {"eager", "captured"} if row["name"] in COMPILED else {"eager"}
        return {name: form for name, form in made.items() if name in wanted}

    def _prompts(self, row: Row) -> list[Any]:
        if self._model is None:
            # What transformers opens a GGUF with.
            missing = [name for name in ("transformers", "accelerate", "gguf") if find_spec(name) is None]
            if missing:
                raise Unavailable(f"not installed: {', '.join(missing)}")
            import transformers

            file = Path(assets.SMOLLM2_FILE).name
            if not (WEIGHTS / file).exists():
                raise Unavailable("the weights are not on this machine; scripts/setup fetches them")
            load: Any = transformers.AutoModelForCausalLM.from_pretrained
            self._model = load(WEIGHTS, gguf_file=file, dtype=self.torch.float32).to(self.device).eval()
        shape, made = (1, row["prompt"]), range(row["inputs"])
        return [self.torch.tensor(integers(shape, 40 + 100 * i, row["vocabulary"])) for i in made]

    def _prefill(self, row: Row) -> dict[str, Form]:
        ids = self._prompts(row)

        def unit(i: int) -> list[int]:
            with self.torch.no_grad():
                logits = self._model(ids[i], use_cache=True, logits_to_keep=1).logits
            return [logits[0, -1].argmax().item()]

        return {"eager": Form(unit, note="float32 weights")}

    def _decode(self, row: Row) -> dict[str, Form]:
        """New ids behind a prompt, by `generate`: its time less that of making the first id."""
        ids = self._prompts(row)

        def form(**options: Any) -> Form:
            def generate(new: int) -> Any:
                more = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0, **options}
                return self._model.generate(ids[0], min_new_tokens=new, max_new_tokens=new, **more)

            return Form(lambda _: generate(row["new"] + 1), before=lambda _: generate(1), follows=True)

        return {"eager": form(), "captured": form(cache_implementation="static")}


def run(rows: list[Row], options: argparse.Namespace) -> int:
    """Measure the rows under PyTorch.

    Returns: the exit status; 1 when a row failed, or none could be measured.

    Raises: SystemExit when there is no such device.
    """
    import torch

    if options.pytorch == "cuda" and not torch.cuda.is_available():
        raise SystemExit(f"bench: PyTorch {torch.__version__} finds no CUDA device here")
    return native.run(PyTorch(options.pytorch, torch), rows, options, "pytorch.json")
