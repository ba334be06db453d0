"""Tests that share one Chromium: a package, whose fixtures end with it."""
