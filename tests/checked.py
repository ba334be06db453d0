"""Tests that mean nothing under PELLUCID_CHECK=1, where ops and replays do more than they would."""

import os

import pytest

IS_CHECKED = os.environ.get("PELLUCID_CHECK") == "1"


def unchecked(why: str) -> pytest.MarkDecorator:
    """Leave a test, or those of a module, out of a checked run."""
    return pytest.mark.skipif(IS_CHECKED, reason=f"not under PELLUCID_CHECK=1: {why}")


def leave_out_checked(why: str) -> None:
    """The same from within a test."""
    if IS_CHECKED:
        pytest.skip(f"not under PELLUCID_CHECK=1: {why}")
