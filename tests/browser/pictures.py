"""`python -m tests.browser.pictures`: puts the best of the screenshots, made small, into docs/pictures."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TAKEN, SHOWN = ROOT / "build" / "screenshots", ROOT / "docs" / "pictures"
BEST = {
    "1280/story-09-what-the-database-holds.png": "the-page.png",
    "390/story-04-the-card.png": "the-card.png",
    "390/edit-07-what-the-edit-would-do.png": "an-edit.png",
    "390/story-06-nothing-ran.png": "nothing-ran.png",
    "390/story-07-41-are-proposed.png": "41-are-proposed.png",
}
COLOURS = 96  # a page has few, but for the edges of its letters


def main() -> None:
    """Write them anew; a picture that is not there is an error that says how it is taken."""
    from PIL import Image

    missing = [name for name in BEST if not (TAKEN / name).exists()]
    if missing:
        sys.exit(f"{TAKEN} lacks {missing[0]}: run `make screenshots` and let every test of it pass.")
    SHOWN.mkdir(parents=True, exist_ok=True)
    for taken, shown in BEST.items():
        with Image.open(TAKEN / taken) as picture:
            few = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
            few.save(SHOWN / shown, optimize=True)
    print(f"{len(BEST)} pictures are in {SHOWN}, all that were taken in {TAKEN}.")


if __name__ == "__main__":
    main()
