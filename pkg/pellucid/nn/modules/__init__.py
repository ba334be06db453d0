"""Modules: layers, containers, losses."""
