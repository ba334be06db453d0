"""Functions of `pellucid.fft`.

Written by `scripts/reference`; do not edit.
"""

__all__: list[str]
