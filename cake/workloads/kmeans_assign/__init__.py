"""Nearest centroid of every point."""
