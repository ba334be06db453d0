"""Telemetry: what layers give while a network runs, what a network is made of, what an object can do."""
