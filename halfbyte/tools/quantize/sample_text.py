"""A text of many kinds, for measuring a model when nobody gives one of their own."""

TEXT = """\
The lighthouse keeper climbed the stairs before dawn, as he had every morning for thirty years. Fog lay on the water so
thick that the horn of the mail boat seemed to come from all sides at once. He trimmed the lamp, wrote the hour and the
wind into the log, and put the kettle on. "Nobody will thank you for a ship that did not sink," his father used to say,
and he had come to think of that as the nicest thing about the work.

# How to store bread

1. Let it cool on a rack for at least two hours; a warm loaf in a bag goes soggy.
2. Keep it cut side down on a board for the first day, then in a paper bag or a bread box.
3. Freeze what you will not eat within three days. Slice it first, and toast the slices straight from the freezer.

Do not put bread into the fridge: at about 4 degrees starch turns hard fastest.

def moving_average(values, width):
    \"\"\"Means of `width` neighbours; the result is shorter by width - 1.\"\"\"
    if width < 1 or width > len(values):
        raise ValueError(f"width must be from 1 to {len(values)}, not {width}")
    total = sum(values[:width])
    means = [total / width]
    for old, new in zip(values, values[width:]):
        total += new - old
        means.append(total / width)
    return means

Question: A train leaves at 9:40 and arrives at 13:05. How long does the journey take?
Answer: From 9:40 to 12:40 it is three hours, and from 12:40 to 13:05 another 25 minutes, so it takes 3 hours and 25
minutes.

{"city": "Lisbon", "country": "Portugal", "population": 545796, "rivers": ["Tagus"], "capital": true}

Water expands when it freezes because its molecules arrange themselves in an open lattice held by hydrogen bonds. Ice
is therefore about nine percent less dense than the liquid and floats. Lakes freeze from the top, and the layer of ice
keeps what lies below from the cold air, so that fish survive the winter. Most other substances shrink when they become
solid, and their crystals sink in the melt.

The Treaty of Westphalia, signed in 1648 in the towns of Osnabrück and Münster, ended the Thirty Years' War. Historians
disagree about how much it changed: the idea that it founded a system of sovereign states was read into it much later.

User: My laptop does not charge any more. What should I check first?
Assistant: Try another socket and, if you can, another charger. If the light on the plug stays dark, the charger or its
cable is broken. If it is lit but the battery does not fill, look for dust in the port, restart the computer, and see
whether the system reports the battery's health. A battery that holds less than half of its capacity is worn out.

Der Zug hatte wieder Verspätung, und auf dem Bahnsteig wurde es langsam kalt. Elle a ouvert la fenêtre pour écouter la
pluie tomber sur les toits du village. El mercado abre a las ocho, pero los buenos tomates se acaban antes de las diez.

SELECT author, COUNT(*) AS books FROM library WHERE year >= 1990 GROUP BY author HAVING books > 3 ORDER BY books DESC;

To prove that the square root of two is irrational, suppose it were a fraction p/q in lowest terms. Then p*p = 2*q*q, so
p is even; write p = 2r. It follows that q*q = 2*r*r, so q is even too, and the fraction was not in lowest terms. This
contradiction shows that no such fraction exists.

"You said the shop would be open," Mara said. "I said it might be," answered Jonas, who never promised anything on a
Monday. They walked back along the canal, past the barges with their pots of geraniums, and agreed that soup from a tin
was not the worst way for a day like this to end.
"""
