"""Namespaces besides `pellucid` and `nn.functional`, filled from the op table."""
