"""Training by preferences and rewards: DPO and GRPO. TRL's names."""

from .dpo import DPOConfig, DPOTrainer, dpo_loss
from .grpo import GRPOConfig, GRPOTrainer, grpo_loss

__all__ = ["DPOConfig", "DPOTrainer", "GRPOConfig", "GRPOTrainer", "dpo_loss", "grpo_loss"]
