"""Count the words of the documentation and of README.md: ``python tools/count_words.py [FOLDER] [-v]``

Of the pages in docs/ the prose counts: titles, paragraphs, lists, captions and tables that are written as lists.
Code, formulas, csv tables, options and comments count nothing. Of README.md each word counts, code and tables too.

A line of the table is a section of docs/: its words, and per 1,000 of them the marks of the rules for writers
(CONTRIBUTING.md). ``-v`` prints each page too. `tests/test_documentation.py` holds the totals to their bounds.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# The content of these directives counts nothing.
WITHOUT_PROSE = {
    "autosummary", "code-block", "csv-table", "image", "include", "literalinclude", "math", "raw", "testsetup",
    "toctree",
}  # fmt: skip
APART = {"_build", "_templates", "auto_examples", "generated"}  # folders of docs/ that hold no page of a writer

WORD = re.compile(r"[A-Za-z][A-Za-z0-9'_-]*|\d[\d.,]*")
MARKS = {
    "that of": r"\b(that|those) of\b",
    "by/of/for what": r"\b(by|of|for|from|to|in|on|with) what\b",
    "So": r"(?:^|[.!?]\s+|\n\n)So\b",
    "numbers": r"(?<![\w.])\d[\d,.]*",
}


def prose(text: str) -> str:
    """Return the lines of reStructuredText that are read as sentences, with the texts of roles as words."""
    kept: list[str] = []
    example = False  # whether the line belongs to a doctest
    block = None  # the indentation of the directive or literal block that is being left out
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if block is not None:
            if not line.strip() or indent > block:
                continue
            block = None
        directive = re.match(r"\s*\.\. ([\w-]+)::", line)
        comment = re.match(r"\s*\.\. (?!\[)", line)
        if directive is not None and directive[1] not in WITHOUT_PROSE:
            # The title of a note, a figure or a table; names of modules and pictures are not read.
            line = "" if directive[1] in {"currentmodule", "picture"} else line.split("::", 1)[1]
        elif directive is not None or comment is not None:
            block = indent
            continue
        example = bool(re.match(r"\s*>>> ", line)) or (example and bool(line.strip()))  # with its output
        if example or re.match(r"\s*:[\w-]+:(\s|$)", line):
            continue
        kept.append(line)
        if line.rstrip().endswith("::"):
            block = indent
    text = re.sub(r"^[=\-~^\"*+#]{3,}$", "", "\n".join(kept), flags=re.MULTILINE)
    text = re.sub(r"`~[\w.]*\.(\w+)`", r"`\1`", text)  # a link that shows the last name only
    return re.sub(r":\w+(?::\w+)?:`([^`<]*)(<[^>]*>)?`", r"\1", text)


def counted(text: str) -> Counter[str]:
    """Return the number of words and of each mark in a reStructuredText."""
    text = prose(text)
    marks = {mark: len(re.findall(pattern, text)) for mark, pattern in MARKS.items()}
    return Counter(words=len(WORD.findall(text)), **marks)


def pages(root: Path = ROOT) -> Iterator[Path]:
    """Yield the pages of docs/, without those that a build writes."""
    for path in sorted((root / "docs").rglob("*.rst")):
        if not APART & set(path.relative_to(root).parts) and path.name != "sg_execution_times.rst":
            yield path


def counts(root: Path = ROOT) -> dict[str, Counter[str]]:
    """Return what `counted` finds on each page, by the page's name in docs/."""
    return {
        path.relative_to(root / "docs").as_posix(): counted(path.read_text(encoding="utf-8"))
        for path in pages(root)
    }


def words_of_readme(root: Path = ROOT) -> int:
    """Return the number of words of README.md, all of them."""
    return len((root / "README.md").read_text(encoding="utf-8").split())


def _line(name: str, found: Counter[str]) -> str:
    rates = (f"{1000 * found[mark] / max(1, found['words']):{len(mark)}.2f}" for mark in MARKS)
    return "  ".join((f"{name:28s}", f"{found['words']:6d}", *rates))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT, help="root of the repository")
    parser.add_argument("-v", "--verbose", action="store_true", help="print each page too")
    options = parser.parse_args()
    root = options.folder.resolve()
    by_page = counts(root)
    sections: dict[str, Counter[str]] = {}
    for page, found in by_page.items():
        sections.setdefault(page.partition("/")[0], Counter()).update(found)
    print("  ".join((f"{'per 1,000 words':28s}", " words", *MARKS)))
    if options.verbose:
        for page, found in by_page.items():
            print(_line(page, found))
        print()
    for section, found in sections.items():
        print(_line(section, found))
    print(_line("all of docs/", sum(by_page.values(), Counter())))
    print(f"{'README.md':28s}  {words_of_readme(root):6d}")


if __name__ == "__main__":
    main()
