"""What does a person type? Thin, lazy skins over the library."""
