"""Between Nova's objects and the algorithms; with filters/ and weighers/ all that imports Nova."""
