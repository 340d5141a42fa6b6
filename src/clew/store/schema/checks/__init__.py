"""What a database promises, as questions it can be asked. Each file holds the promises of one kind of row."""
