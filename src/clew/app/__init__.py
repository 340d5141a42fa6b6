"""The composition root: the only package that puts the parts together. Its modules load a lot; import them late."""
