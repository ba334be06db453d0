"""Views, slices, copies, joins and creation of tensors."""
