"""`TEXTS`: what a tokenizer is tried on, and `AROUND`: how its own added tokens are put into texts."""

from __future__ import annotations

AROUND = ("{0}", "a{0}b", " {0} ", "x  {0}\n{1} y", "{0}{0}", "the {0}s{1}.", "\t{0}\u00a0", "{0}\u0301", "É{0}é")

_LATIN = (
    "Hello world",
    "The quick brown fox jumps over the lazy dog.",
    "it's they're we've I'm you'll he'd IT'S They'Re don’t",
    "naïve café Straße Ærøskøbing œuvre ſ ß ẞ",
    "İstanbul ıspanak IĞDIR",
    "Zażółć gęślą jaźń; příliš žluťoučký kůň",
    "Tiếng Việt có dấu: ngữ nghĩa",
    "camelCaseWords PascalCase snake_case kebab-case SCREAMING_SNAKE",
    "e.g. Mr. Smith, Ph.D., U.S.A. — “quoted” ‘single’ «guillemets»",
    "a", "A", "é", " a", "a ", " a ", "ab", "the", " the", "The", " The",
    "antidisestablishmentarianism", "Donaudampfschifffahrtsgesellschaftskapitän",
    "x" * 97, "ab" * 150, "word" * 60, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ha" * 33 + "!",
)  # fmt: skip

_SCRIPTS = (
    "Привет, мир! Съешь же ещё этих мягких французских булок",
    "Ελληνικά: ὦ ἄνδρες Ἀθηναῖοι ΣΊΣΥΦΟΣ σίσυφος",
    "東京タワーは高いです。カタカナ ひらがな ﾊﾝｶｸ",
    "你好,世界!这是一个测试。繁體中文也要測試",
    "abc你好def 東京abc",
    "한국어 문장입니다. 안녕하세요",
    "각각",
    "नमस्ते दुनिया क्षत्रिय",
    "বাংলা ভাষা தமிழ் மொழி తెలుగు ಕನ್ನಡ മലയാളം",
    "สวัสดีชาวโลก ภาษาไทย", "ພາສາລາວ ភាសាខ្មែរ မြန်မာဘာသာ",
    "مرحبا بالعالم", "العَرَبِيَّةُ مع تشكيل ـــ", "שלום עולם שָׁלוֹם", "السلام 123 עליכם abc",
    "فارسی می‌خواهم", "ქართული ენა", "Հայերեն լեզու", "አማርኛ ቋንቋ", "བོད་སྐད།", "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ", "ⵜⴰⵎⴰⵣⵉⵖⵜ", "ᚠᚢᚦᚨᚱᚲ",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝐛𝐨𝐥𝐝 𝟙𝟚𝟛", "𐍈𐌰𐌹𐍂𐌱𐌰𐌽", "𠮷野家 𪚥", "Ⓐⓑ ㈱ ㌔ ㎏ ½ ⅔ Ⅷ ①②③", "ﬁne ﬂow eﬃcient ﷺ",
)  # fmt: skip

_MARKS = (
    "e\u0301 is é", "n\u0303o an\u0303o", "A\u030a \u00c5 \u212b", "\u1e9b\u0323", "q\u0307\u0323 q\u0323\u0307",
    "\u0301", "\u0301a", " \u0308", "a\u0300\u0301\u0302\u0303\u0304", "Z̷̢̛a̸͕l̵̰g̶̘o̷", "\u0958 \u0915\u093c",
    "\u1100\u1161\u11a8 \uac01", "o\u0302\u0323 ộ \u1ed9", "ﾊﾞ バ ハ\u3099", "i\u0307 İ", "ς Σ σ",
    "\u0344 \u0308\u0301", "≮ <\u0338", "\u2126 Ω \u212a K",
)  # fmt: skip

_EMOJI = (
    "😀", "👍🏽 👍 👍🏿", "👨‍👩‍👧‍👦 family", "🏳️‍🌈🏴‍☠️", "🇩🇪🇫🇷🇯🇵", "❤️ ❤ ♥︎", "1️⃣2️⃣#️⃣", "🧑🏻‍🚀🧑🏿‍💻", "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "text😀text", "😀😀😀😀", " 😀 ", "\U0001fae0\U0001faf6", "♠♣♥♦ ☀☁☂ ✓✗",
)  # fmt: skip

_SPACES = (
    "", " ", "  ", "   ", "    ", "     ", " " * 7, " " * 16, " " * 33, " " * 100,
    "\n", "\n\n", "\n\n\n", "\n" * 9, "\r\n", "\r\n\r\n", "\r", "\r\r\n", "\t", "\t\t", "\t\t\t\t\t", " \n ", "\n \n",
    "a  b", "a   b    c", "a \n b", "a\n\n\nb", "a\r\nb\r\n\r\nc", "a\tb\t\tc", "a \t b", " \t\n\r ", "a\n", "\na",
    "  leading", "trailing  ", "    four\n        eight", "x\n  \n  y", "tab\tthen  spaces ", "a\u00a0b\u00a0\u00a0c",
    "a\u2003b\u2009c\u200ad", "a\u3000b\u3000\u3000c", "a\u2028b\u2029c\x85d", "a\u1680b\u205fc\u202fd", "a\vb\fc",
    "\u00a0", "\u3000", "a\u200bb\u200cc\u200dd\u2060e\ufefff", "\ufeffstart", "\u2581", "a\u2581b", "\u2581\u2581the",
    "the\u2581", "Hello  \u2581 world", "...   ", "   ...", " !", "!  \n", " 1", "  1  2 ", "\n1\n", " \u0301 ",
)  # fmt: skip

_CONTROLS = (
    "\0", "a\0b", "\x01\x02\x03", "\x1b[31mred\x1b[0m", "\x7f", "a\x80b\x9fc", "\x1c\x1d\x1e\x1f", 
    "\u200e\u200f\u202a\u202e",
    "\u00ad soft\u00adhyphen", "\ufffd", "\ufffe\uffff", "\ue000\uf8ff", "\U000f0000\U0010ffff", "\u0378 unassigned",
    "\ufff9\ufffb", "\b\a",
)  # fmt: skip

_NUMBERS = (
    "0", "7", "42", "123", "1234", "12345", "1234567890", "1,234,567.89", "3.14159", "-273.15", "1e-10", "0x1F 0b101",
    "2026-11-30T17:28:29Z", "192.168.0.1", "+49 (0)30 123456", "50% $9.99 €5 £6 ¥7", "1/2", "①2③", "١٢٣ १२३ ๑๒๓ 123",
    "x1 y22 z333 w4444", "1st 2nd 3rd 4th", "²³¹ ₁₂", "9" * 50, "1 2  3   4", "v1.2.3-rc.4", "１２３",
)  # fmt: skip

_CODE = (
    "def f(x):\n    return x ** 2\n", "if (a && b || !c) { d++; }", "#include <stdio.h>\nint main(void) { return 0; }",
    "SELECT * FROM t WHERE a = 'b' AND c <> 1;", "<div class=\"x\">\n\t<p>Hi &amp; bye</p>\n</div>", "a->b::c.d[e]",
    "{\"k\": [1, 2.5, null, true], \"s\": \"\\u00e9\\n\"}", "https://example.org/a?b=c&d=%20e#f", "me@example.org",
    "C:\\dir\\file.txt /usr/bin/env ~/.config", "x = y  # comment", "'''doc'''\n\"\"\"doc\"\"\"",
    "```python\npass\n```",
    "==== ---- **** ////", "!?!?...,,,;;;:::", "()[]{}<>", "(a)(b) [c] {d}", "a_b__c___d", "$x @y #z %w ^v &u *t",
    "\\alpha \\frac{1}{2} $E=mc^2$", "λx.x → ∀y∃z ⊢ ∑∫√", "i++ ++i i+=1 i<<=2", "$$$ ''' ``` \"\"\" ``x''",
    "-- --- ---- –—―", "/* c */ // d\n", "\n\n\tfor i in range(10):\n\t\tprint(i)\n\n", ".,!", "a.b.c", "l'été d'or",
)  # fmt: skip

_SPECIAL = (
    "<s>", "</s>", "<unk>", "<pad>", "a<s>b</s>c", "<|endoftext|>", "x<|endoftext|>y",
    "<|im_start|>user\nhi<|im_end|>\n",
    "[CLS] a [SEP] b [MASK] [UNK] [PAD]", "[INST] hi [/INST]", "<bos><eos>", "<|eot_id|>", "<|", "|>", "<0x0A>", "<0x",
    "<think>\nso\n</think>", "<mask> <mask>", "[unused1] ##ing ##", "<extra_id_0>", "<|begin_of_text|>Hi", "[PAD1]",
)  # fmt: skip

_LONG = (
    "One line and another.\nA second line, with  two spaces; 東京 and 42.\n\n\tThen a tab… and the end 😀.\n" * 4,
    "мир" * 60, "東京" * 80, "á" * 100, "a\u0301" * 60, "😀" * 40, "- " * 60, "." * 120, "=" * 64, "#" * 33 + " x",
)  # fmt: skip

TEXTS = (
    *_LATIN, *_SCRIPTS, *_MARKS, *_EMOJI, *_SPACES, *_CONTROLS, *_NUMBERS, *_CODE, *_SPECIAL, *_LONG
)  # fmt: skip
