"""Tests that share one running REPL: a package, whose fixtures end with it."""
