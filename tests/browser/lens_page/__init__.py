"""Tests that share one lens page: a package, whose fixtures end with it."""
