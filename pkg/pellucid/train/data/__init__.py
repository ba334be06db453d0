"""Data for training: files and streams of examples, packing, labels by chat templates, batches."""
