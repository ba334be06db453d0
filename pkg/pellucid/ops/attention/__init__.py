"""Attention, rotary positions, KV caches."""
