"""Write those files of this folder that other programs make: pandas, openpyxl, csv, LibreOffice.

``python tests/annotations/everyday/make.py`` writes them again. They are in the repository, so that
the tests need neither the programs nor their versions; LibreOffice (``soffice``, Debian's package
libreoffice-calc) is started headless and skipped where it is not installed. All other files were
typed.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent / "files"
FILES = ["a.png", "b.png", "c.png", "d.png"]
CELLS = ["cat|lynx", "dog", "cat|dog", "lynx"]
LISTS = [cell.split("|") for cell in CELLS]
FRENCH = [["Gâteau, crème", "Tarte"], ["Tarte"], ["Éclair", "Gâteau, crème"], ["Éclair"]]


def by_pandas() -> None:
    import pandas

    frame = pandas.DataFrame({"file": FILES, "candidates": CELLS})
    lists = pandas.DataFrame({"file": FILES, "candidates": LISTS})
    sets = pandas.DataFrame({"file": FILES, "candidates": [set(one) for one in LISTS]})
    frame.to_csv(HERE / "pandas_index.csv")
    frame.set_index("file").rename_axis(None).to_csv(HERE / "pandas_names_in_index.csv")
    lists.to_csv(HERE / "pandas_lists.csv", index=False)
    sets.to_csv(HERE / "pandas_sets.csv", index=False)
    frame.to_csv(HERE / "pandas_utf16.tsv", sep="\t", index=False, encoding="utf-16")
    marks = frame["candidates"].str.get_dummies("|").add_prefix("label_")
    marks.insert(0, "file", FILES)
    marks.to_csv(HERE / "pandas_dummies.csv", index=False)
    frame.to_json(HERE / "pandas_columns.json")
    lists.to_json(HERE / "pandas_records.json", orient="records")
    lists.to_json(HERE / "pandas_lines.jsonl", orient="records", lines=True)
    frame.set_index("file")["candidates"].to_json(HERE / "pandas_series.json")
    frame.to_parquet(HERE / "pandas.parquet", index=False)
    lists.set_index("file").to_parquet(HERE / "pandas_lists.parquet")
    lists.to_feather(HERE / "pandas_lists.feather")
    frame.to_excel(HERE / "pandas_index.xlsx")


def by_openpyxl() -> None:
    import openpyxl

    def write(name: str, **sheets: list[list[object]]) -> None:
        book = openpyxl.Workbook()
        book.remove(book.active)
        for title, rows in sheets.items():
            sheet = book.create_sheet(title)
            for row in rows:
                sheet.append(row)
        book.save(HERE / name)

    table = [["file", "candidates"], *map(list, zip(FILES, CELLS, strict=True))]
    write("openpyxl_two_sheets.xlsx", Labels=table, Notes=[["who", "when"], ["Ann", "May"]])
    write("openpyxl_notes_first.xlsx", Notes=[["who", "when"], ["Ann", "May"]], Labels=table)
    write("openpyxl_title.xlsx", Labels=[["Animals of March"], [], *table])
    marks = [[file, *("x" if c in one else None for c in ("cat", "dog", "lynx"))]
             for file, one in zip(FILES, LISTS, strict=True)]  # fmt: skip
    write("openpyxl_marks.xlsx", Labels=[["file", "cat", "dog", "lynx"], *marks])
    lines = [[file, "\n".join(one)] for file, one in zip(FILES, LISTS, strict=True)]
    write("openpyxl_line_breaks.xlsx", Labels=[["Picture", "Candidates"], *lines])
    write(
        "openpyxl_merged.xlsx",
        Labels=[["file", "rater", "label"], ["a.png", 1, "cat"], [None, 2, "lynx"]],
    )
    write("openpyxl_formula.xlsx", Labels=[["file", "label"], ["a.png", "cat"], ["b.png", "=B2"]])


def by_csv() -> None:
    rows = list(zip(FILES, (", ".join(one) for one in LISTS), strict=True))
    for name, options in {
        "python_quote_all.csv": {"quoting": csv.QUOTE_ALL},
        "python_excel_tab.csv": {"dialect": "excel-tab"},
    }.items():
        with (HERE / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, **options).writerows([("file", "candidates"), *rows])


def by_libreoffice() -> None:
    program = shutil.which("soffice")
    if program is None:
        sys.exit("LibreOffice is not installed: its files are left as they are")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "cakes.csv")
        with source.open("w", newline="", encoding="utf-8") as file:
            rows = zip(FILES, *zip(*(([*one, ""])[:2] for one in FRENCH), strict=True), strict=True)
            csv.writer(file).writerows([("fichier", "label_1", "label_2"), *rows])
        formula = Path(folder, "formula.csv")
        formula.write_text(
            'file,label,more\na.png,"=""c""&""at""",cat\nb.png,=C2,cat\nc.png,dog,cat\n'
        )
        # Filter 44 is CSV: separator 59 (;) or 9 (tab), quote 34, character set 1 (cp1252),
        # 76 (UTF-8) or 65535 (UTF-16).
        text = "csv:Text - txt - csv (StarCalc)"
        for made, kind, given in (
            ("libreoffice.xlsx", "xlsx", source),
            ("libreoffice.ods", "ods", source),
            ("libreoffice.xls", "xls", source),
            ("libreoffice_formula.xlsx", "xlsx", formula),
            (
                "libreoffice_semicolons_cp1252.csv",
                f"{text}:59,34,1",
                source,
            ),
            ("libreoffice_tabs_utf8.csv", f"{text}:9,34,76", source),
            ("libreoffice_utf16.csv", f"{text}:44,34,65535", source),
        ):
            out = Path(folder, "out")
            reading = ["--infilter=CSV:44,34,76,1,,1033,false,true,false,false,false,-1,true"]
            profile = f"-env:UserInstallation=file://{folder}/profile"
            call = [program, profile, "--headless", *reading, "--convert-to", kind]
            subprocess.run([*call, "--outdir", out, given], check=True, capture_output=True)
            (written,) = out.iterdir()
            shutil.move(written, HERE / made)


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    by_pandas()
    by_openpyxl()
    by_csv()
    by_libreoffice()
