"""Optimizers and learning rate schedules: PyTorch's ``torch.optim``."""

from ..tensors.absent import refuse_others
from . import lr_scheduler, swa_utils
from .adagrad import Adadelta, Adagrad, RMSprop
from .adam import Adam, Adamax, AdamW, NAdam, RAdam
from .eight_bit import Adam8bit, AdamW8bit
from .kfac import KFAC
from .lbfgs import LBFGS
from .matrix import Adafactor, Muon
from .optimizer import Optimizer, SparseAdam
from .sgd import ASGD, SGD, Rprop

__all__ = [
    "ASGD", "KFAC", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "Adam8bit", "AdamW",
    "AdamW8bit", "Adamax", "Muon", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SparseAdam",
    "lr_scheduler", "swa_utils",
]  # fmt: skip

refuse_others("torch.optim", globals())
