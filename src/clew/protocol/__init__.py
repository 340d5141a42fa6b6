"""What servers and daemons say to one another."""
