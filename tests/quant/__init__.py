"""Weight formats. A package, so that no module of the same name elsewhere on the path stands for it."""
