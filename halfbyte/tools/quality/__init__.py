"""What does quantization cost? Perplexity, divergence from a base model, and what two files hold."""
