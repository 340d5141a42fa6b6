"""The server's use cases: each is a function of the services, the actor who asks, and what is asked."""
