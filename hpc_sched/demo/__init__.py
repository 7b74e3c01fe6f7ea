"""The project's main job on a real Nova in one process, for someone without a cloud."""
