"""Linear recurrences along time: selective scan."""
