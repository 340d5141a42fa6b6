"""The promises of a database as queries. Each module holds those about one kind of row."""
