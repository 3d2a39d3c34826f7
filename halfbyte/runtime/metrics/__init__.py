"""What the engine counts about itself, and when it did what."""
