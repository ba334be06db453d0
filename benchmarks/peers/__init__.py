"""Pellucid and other libraries on the same rows: `scripts/bench --peers`, docs/performance.md."""
