"""Source text to Cake IR and back. The text is parsed, never executed."""
