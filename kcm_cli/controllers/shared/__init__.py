"""What several controllers have in common, below them and above the engine."""
