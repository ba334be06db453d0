"""Recurrences along time: RNN, LSTM and GRU layers, selective scan, gated delta rule."""
