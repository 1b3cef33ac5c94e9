"""Softmax along rows."""
