"""How fast agents answer through their providers, beside their own command lines."""
