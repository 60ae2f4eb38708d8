"""Take the pictures of the demo page, light and dark, as PNG; needs chromium.

python docs/make_demo.py docs/images
"""

import sys
from pathlib import Path

if not __package__:  # run as a script
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import shutil
from io import BytesIO

from PIL import Image
from playwright.sync_api import sync_playwright

from benchmarks.demo_latency import PROGRAMS
from benchmarks.demo_load import server

SIZE = {"width": 1280, "height": 1080}
WORD = 7  # telescope, which has two heads to choose from


def main() -> None:
    program = next(filter(None, map(shutil.which, PROGRAMS)))
    with server() as (_, address), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, scheme in (("demo", "light"), ("demo-dark", "dark")):
            page = browser.new_page(viewport=SIZE, color_scheme=scheme)
            page.goto(address)
            page.locator("#timing:not(:empty)").wait_for()
            page.reload()  # the first picture of a browser takes longer than those after it
            page.locator("#timing:not(:empty)").wait_for()
            page.hover(f"#soft-arcs .word[data-word='{WORD}']")
            taken = Image.open(BytesIO(page.screenshot())).convert("RGB")
            few = taken.quantize(128, dither=Image.Dither.NONE)  # a third of the bytes
            few.save(Path(sys.argv[1]) / f"{name}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
