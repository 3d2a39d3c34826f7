"""A loaded model behind OpenAI's HTTP interface, and a page to talk with it."""
