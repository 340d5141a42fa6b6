"""The pages, one module each. Each has `add(site)`, which declares its routes."""
