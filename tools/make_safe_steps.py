"""Write the guide's list of safe steps from the code's: python tools/make_safe_steps.py"""

from pathlib import Path

from skdp.around.steps import SAFE_STEPS

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "safe_steps.inc"


def main():
    lines = [f"* {how}" for _, how in SAFE_STEPS.table.values()]
    note = ".. Written by tools/make_safe_steps.py from skdp/around/steps.py; a test compares the two."
    PAGE.write_text("\n".join([note, "", *lines, ""]))


if __name__ == "__main__":
    main()
