"""The network of a fabric: its links, what ranks send over them, and how long that takes."""
