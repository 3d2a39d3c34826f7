"""What an answer may be: an expression, a schema, choices or a grammar, as masks over the vocabulary."""
