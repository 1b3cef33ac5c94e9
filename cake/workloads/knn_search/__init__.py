"""The nearest database rows of every query."""
