"""What keeps isolated groups that are placed at the same moment from the same uplinks."""
