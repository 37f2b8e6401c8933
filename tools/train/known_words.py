"""Writes the words that the model may use without being given them, for evaluate_visits.py: python known_words.py [--to FILE]

The first line is their number; each further line is a word, spelled as in the training text if it has unusual capitals, otherwise in
lower case.
"""

import argparse
import os

import evaluate_visits

FILE = os.path.join(os.path.dirname(__file__), "../../examples/models/wick-4.2m-words.txt")


def lines(words):
    """Returns one line per word, sorted; a word keeps its spelling if it is not one of the usual ones (small, Capital, CAPITALS)."""
    written = {}
    for word in sorted(words):
        written.setdefault(word.lower(), []).append(word)
    return [next((form for form in forms if form not in (small, small.capitalize(), small.upper())), small) for small, forms in sorted(written.items())]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", default=FILE)
    found = lines(evaluate_visits.written_words())
    with open(parser.parse_args().to, "w", encoding="utf-8") as file:
        file.write("\n".join([f"{len(found)} words", *found]) + "\n")


if __name__ == "__main__":
    main()
