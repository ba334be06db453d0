"""Training by preferences and rewards: DPO and GRPO. TRL's names."""
