"""Rows as what is shown of them."""
