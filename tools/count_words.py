"""Words of prose in the documentation by section, and the three marks of /work/shared/READER.md section 2.
Code, literal blocks, options and tables count nothing. Usage: count_words.py [FOLDER]"""

import re, sys
from collections import Counter
from pathlib import Path

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
SKIP = {
    "code-block",
    "csv-table",
    "literalinclude",
    "math",
    "autosummary",
    "toctree",
    "include",
    "image",
    "raw",
    "testsetup",
    "list-table-",
}


def prose(text):
    if True:
        out, skip = [], None
        for line in text.splitlines():
            indent = len(line) - len(line.lstrip())
            if skip is not None:
                if not line.strip() or indent > skip:
                    continue
                skip = None
            m = re.match(r"\s*\.\. ([\w-]+)::", line)
            if m:
                if m[1] in SKIP:
                    skip = indent
                    continue
                line = line.split("::", 1)[1]
            elif re.match(r"\s*\.\. ", line) and not re.match(r"\s*\.\. \[", line):
                skip = indent
                continue
            if re.match(r"\s*(>>>|\.\.\. )", line) or re.match(r"\s*:[\w-]+:(\s|$)", line):
                continue
            out.append(line)
            if line.rstrip().endswith("::"):
                skip = indent
        text = "\n".join(out)
    text = re.sub(r"^[=\-~^\"*+#]{3,}$", "", text, flags=re.M)
    text = re.sub(r":\w+(?::\w+)?:`([^`<]*)(<[^>]*>)?`", r"\1", text)
    return text


def words(text):
    return re.findall(r"[A-Za-z][A-Za-z0-9'_-]*|\d[\d.,]*", text)


MARKS = {
    "that of": r"\b(that|those) of\b",
    "by/of/for what": r"\b(by|of|for|from|to|in|on|with) what\b",
    "So": r"(?:^|[.!?]\s+|\n\n)So\b",
    "numbers": r"(?<![\w.])\d[\d,.]*",
}
tot, table = Counter(), {}
for path in sorted((ROOT / "docs").rglob("*.rst")):
    rel = path.relative_to(ROOT / "docs")
    if (
        rel.parts[0] in ("auto_examples", "_build")
        or "generated" in rel.parts
        or rel.name == "sg_execution_times.rst"
    ):
        continue
    text = prose(path.read_text())
    sec = rel.parts[0] if len(rel.parts) > 1 else rel.name
    c = Counter(words=len(words(text)), **{k: len(re.findall(v, text)) for k, v in MARKS.items()})
    if "-v" in sys.argv:
        print(f"{c['words']:6d} {rel}")
    table.setdefault(sec, Counter()).update(c)
    tot.update(c)
for sec, c in table.items():
    print(f"{sec:25s}", *(f"{k} {v}" for k, v in c.items()))
w = tot["words"]
print("total", dict(tot), {k: round(1000 * tot[k] / w, 2) for k in MARKS})
