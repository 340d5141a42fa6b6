"""Full-text search: how texts become words, how a query is read, and what of a found text is shown."""
