"""Pellucid and other libraries, the same rows in one browser: `scripts/bench --peers`, docs/performance.md."""
