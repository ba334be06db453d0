"""Functions of `pellucid.linalg`.

Written by `scripts/reference`; do not edit.
"""

__all__: list[str]
