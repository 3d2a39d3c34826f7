"""What is asked of every tokenizer and model."""

TEXTS = (
    "Hello, world!",
    "It's 7:45 p.m.; the quick brown fox didn't jump over 13 lazy dogs.",
    "  two spaces,\ttab,\n\n\nthree lines  \r\n and the end ",
    'def area(r: float) -> str:\n    return f"{3.14159 * r**2:>8.2f}"  # m²\n',
    "Größe, naïve, İstanbul, œuvre, Cafe\u0301",
    "Привет, мир! Γειά σου Κόσμε",
    "你好，世界。日本語のテキスト、한국어",
    "مرحبا שלום हिन्दी ภาษาไทย",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 😀😀",
    "1234567890 -42 1,000,000 0x1F ½ 10⁻³",
    "</s> <|endoftext|> [CLS] <start_of_turn>",
)
"""Scripts, emoji, code, numbers, every kind of white space, and control tokens spelt out, which are text here."""

PROMPT = "The quick brown fox jumps over the lazy dog, and on the next day both of them sleep until it rains."
