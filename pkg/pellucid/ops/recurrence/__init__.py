"""Linear recurrences along time: selective scan, gated delta rule."""
