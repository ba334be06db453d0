"""Checkpoints of training runs: what they hold, where they lie, and that they are complete."""
