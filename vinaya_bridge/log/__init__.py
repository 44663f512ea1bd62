"""The Vinaya Log: what a line is, and what it says."""
