"""Pages in a browser, what open ones cost, and the search."""
