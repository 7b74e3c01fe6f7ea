"""Free slots that a plan breaks up, and what that costs it."""
