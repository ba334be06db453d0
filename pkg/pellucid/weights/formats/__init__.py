"""Formats of files of weights: each file here opens one, as steps that read its header alone."""
