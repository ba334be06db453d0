"""Sessions: generation as a tree of tokens, each of which can be returned to, branched from and paused in."""
