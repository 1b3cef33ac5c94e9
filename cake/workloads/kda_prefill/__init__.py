"""Kimi Delta Attention over whole sequences."""
