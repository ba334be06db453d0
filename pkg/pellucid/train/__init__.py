"""Training: Trainer, data, adapters such as LoRA, DPO and GRPO. Hugging Face's names."""

from .adapters import (
    IA3Config,
    LoraConfig,
    PeftConfig,
    PeftModel,
    PromptTuningConfig,
    get_peft_model,
    load_adapter,
    load_adapter_async,
)
from .arguments import TrainingArguments
from .callbacks import EarlyStoppingCallback, ProgressCallback, TrainerCallback
from .data.collators import (
    DataCollatorForLanguageModeling,
    DataCollatorForSeq2Seq,
    DataCollatorWithPadding,
    default_data_collator,
)
from .data.files import CsvFiles, ImageFolder, JsonLines, TextFiles
from .data.instructions import conversation, encode_conversation, instruction_dataset
from .data.packing import PackedDataset
from .estimate import MemoryEstimate, estimate_memory
from .preference import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer
from .schedules import get_scheduler
from .state import EvalPrediction, PredictionOutput, TrainerControl, TrainerState, TrainOutput
from .trainer import Trainer
from .watching import WatchCallback, WeightHistograms

__all__ = [
    "CsvFiles",
    "DPOConfig",
    "DPOTrainer",
    "DataCollatorForLanguageModeling",
    "DataCollatorForSeq2Seq",
    "DataCollatorWithPadding",
    "EarlyStoppingCallback",
    "EvalPrediction",
    "GRPOConfig",
    "GRPOTrainer",
    "IA3Config",
    "ImageFolder",
    "JsonLines",
    "LoraConfig",
    "MemoryEstimate",
    "PackedDataset",
    "PeftConfig",
    "PeftModel",
    "PredictionOutput",
    "ProgressCallback",
    "PromptTuningConfig",
    "TextFiles",
    "TrainOutput",
    "Trainer",
    "TrainerCallback",
    "TrainerControl",
    "TrainerState",
    "TrainingArguments",
    "WatchCallback",
    "WeightHistograms",
    "conversation",
    "default_data_collator",
    "encode_conversation",
    "estimate_memory",
    "get_peft_model",
    "get_scheduler",
    "instruction_dataset",
    "load_adapter",
    "load_adapter_async",
]  # fmt: skip
