"""Ways in which grids learn: by batches, by targets, by ticks; what these cost, and how fast they adapt."""
