"""Ops: what a declaration says, the call path written from it, plans, launches, in-place forms."""
