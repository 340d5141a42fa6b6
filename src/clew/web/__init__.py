"""Pages: what needs a person, what runs, and why, rendered from the views of the API."""
