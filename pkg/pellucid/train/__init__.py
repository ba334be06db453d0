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
from .schedules import get_scheduler
from .state import EvalPrediction, PredictionOutput, TrainerControl, TrainerState, TrainOutput
from .trainer import Trainer

__all__ = [
    "DataCollatorForLanguageModeling", "DataCollatorForSeq2Seq", "DataCollatorWithPadding",
    "EarlyStoppingCallback", "EvalPrediction", "IA3Config", "LoraConfig", "PeftConfig", "PeftModel",
    "PredictionOutput", "ProgressCallback", "PromptTuningConfig", "TrainOutput", "Trainer", "TrainerCallback",
    "TrainerControl", "TrainerState", "TrainingArguments", "default_data_collator", "get_peft_model",
    "get_scheduler", "load_adapter", "load_adapter_async",
]  # fmt: skip
