"""Control: the server's use cases, for people and for daemons, one file each."""
