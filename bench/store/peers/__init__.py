"""The same jobs for Clew and for its peers, whose packages are installed apart from Clew's."""
