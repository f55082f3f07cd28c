"""Services that tests talk to over real sockets."""
