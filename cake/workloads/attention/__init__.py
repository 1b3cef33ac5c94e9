"""Attention of queries over keys and values."""
