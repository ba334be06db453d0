"""Errors of wgpu-py as this library's."""

from __future__ import annotations

import functools

import wgpu

from ..errors import DeviceError
from .host import AFTER_LOSS


def failure_text(error: Exception, label: str = "") -> str:
    """What `failure` says of an error of wgpu: the words by which the kinds are told apart come first."""
    if "device is lost" in str(error):
        return "lost: the GPU device went away"
    return f"validation: {label}{error}"


def failure_of_source(error: Exception, label: str, source: str) -> str:
    """The same of an error in the text of a kernel, whose lines follow with their numbers."""
    lines = "\n".join(f"{n:4} {line}" for n, line in enumerate(source.splitlines(), 1))
    return f"{failure_text(error, f'{label}: ')}\n{lines}"


def typed(method):
    """What wgpu raises from a call of the host as this library's error."""

    @functools.wraps(method)
    def call(self, *args):
        try:
            return method(self, *args)
        except wgpu.GPUError as error:
            raise refused(error) from None

    return call


def refused(error: Exception) -> DeviceError:
    """The error that is raised for one of wgpu."""
    text = failure_text(error)
    return DeviceError(f"device webgpu: {text}{f'. {AFTER_LOSS}' if text.startswith('lost') else ''}")
