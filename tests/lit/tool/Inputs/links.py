"""Links of the Markdown files of a folder that lead nowhere, and commands of programs that no build makes."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
found = []
folders = ["compiler", "include", "runtime", "tests", "tools"]
for page in [root / "README.md", *root.glob("docs/*.md"), *root.glob("examples/**/*.md"), *root.glob("benchmarks/*.md"),
             *(page for folder in folders for page in (root / folder).rglob("README.md"))]:
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in target and not (page.parent / target).exists():
            found.append(f"{page.relative_to(root)}: there is no {target}")
    found += [f"{page.relative_to(root)}: {path} is not where builds put programs" for path in re.findall(r"build/bin/\w+", text)]
    headings = {re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-") for line in text.splitlines() if line.startswith("#")}
    found += [f"{page.relative_to(root)}: there is no heading #{name}" for name in re.findall(r"\]\(#([^)]+)\)", text) if name not in headings]
print("\n".join(found) or "links: all lead somewhere")
sys.exit(bool(found))
