"""Every weight format of the package: a file for each kind, and all of them are imported."""

from importlib import import_module
from pkgutil import iter_modules

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
