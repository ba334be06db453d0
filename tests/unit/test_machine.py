"""What the scripts install, and what they leave alone."""

import sys

import pytest

import chromium
import machine


@pytest.fixture
def installed(monkeypatch):
    """Packages that would have come from apt, on a Linux machine without drivers."""
    packages = []
    monkeypatch.setattr(machine, "_apt", packages.extend)
    monkeypatch.setattr(machine.sys, "platform", "linux")
    monkeypatch.setattr(machine.glob, "glob", lambda pattern: [])
    monkeypatch.setattr(machine.ctypes.util, "find_library", lambda name: None)
    monkeypatch.setattr(chromium, "NAMES", ())
    monkeypatch.delenv("PELLUCID_CHROMIUM", raising=False)
    return packages


def test_everything_that_is_missing_comes_from_apt(installed):
    machine.browser()
    assert installed == ["chromium", "mesa-vulkan-drivers", "libvulkan1"]


def test_a_named_browser_installs_nothing(installed, monkeypatch):
    machine.browser(sys.executable)
    monkeypatch.setenv("PELLUCID_CHROMIUM", sys.executable)
    machine.browser()
    assert installed == []


def test_setup_leaves_the_named_browser_and_installs_drivers(installed, monkeypatch):
    monkeypatch.setenv("PELLUCID_CHROMIUM", sys.executable)
    machine.system()
    assert installed == ["mesa-vulkan-drivers", "libvulkan1"]


def test_a_name_of_no_program_is_refused_at_once(installed, monkeypatch):
    monkeypatch.setenv("PELLUCID_CHROMIUM", "/no/such/browser")
    for step in (machine.browser, machine.system):
        with pytest.raises(machine.SetupError, match="'/no/such/browser' is not a program"):
            step()
    assert installed == []
