"""What open pages cost, and how soon they have what is durable."""
