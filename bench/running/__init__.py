"""What a wake costs from the door to its end, in a server as people start it."""
