"""``make bench``: its arithmetic, its tables, and that nothing is left out in silence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import bench
from bench_parts import PARTS, page
from bench_parts.limits import Layer, Machine, roofline, step_layers
from bench_parts.rows import (
    SHARE,
    Limit,
    compare,
    growth,
    load,
    missing,
    point,
    take_turns,
    value,
)
from training import N_QUERY, N_SHOT, N_WAY, count_operations

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "results" / "bench.json"


def report_of(rows, name="classifier", end="done", **changes):
    about = {"processors": 2, "threads": 2, "instructions": "x", "versions": {"fspll": "1"}}
    part = {"end": end, "seconds": 30.0, "busy": 0.1, "rows": rows}
    return {"form": "full", "about": about, "parts": {name: part}} | changes


# -------------------------------------------------------------------- rows


def test_a_ratio_above_one_is_in_our_favor():
    seconds = compare("fit", "s", [2.0, 1.0], ("peer", [4.0, 5.0]))
    assert (seconds["ours"], seconds["theirs"], seconds["ratio"]) == (1.0, 4.0, 4.0)
    assert (seconds["ratio_low"], seconds["ratio_high"]) == (2.0, 5.0)
    rate = compare("encode", "pictures/s", [30.0, 20.0], ("peer", [10.0, 15.0]))
    assert (rate["ours"], rate["theirs"], rate["ratio"]) == (30.0, 15.0, 2.0)
    right = compare("labels", SHARE, 0.9, ("peer", 0.7))
    assert right["difference"] == pytest.approx(0.2)
    assert "ratio" not in right


def test_shares_of_a_limit_are_of_the_best():
    seconds = compare("fit", "s", [2.0, 4.0], ("peer", 10.0), limit=Limit("product rate", 1.0))
    assert (seconds["share"], seconds["their_share"]) == (0.5, 0.1)
    rate = compare("encode", "pictures/s", [30.0, 20.0], limit=Limit("product rate", 120.0))
    assert rate["share"] == 0.25


def test_contenders_take_turns_and_warm_up():
    calls = []
    clock = iter(range(100)).__next__
    work = {name: lambda name=name: calls.append(name) for name in "ab"}
    times = take_turns(work, 2, clock)
    assert "".join(calls) == "ababab"
    assert times == {"a": [1, 1], "b": [1, 1]}


def test_growth_is_the_power_of_the_work():
    points = [point("fit", "ours", "a", n, 5 * n**1.5) for n in (10, 100, 1000)]
    assert growth(points) == pytest.approx(1.5)


# -------------------------------------------------------------------- the roofline


def test_the_roofline_takes_the_slower_of_arithmetic_and_memory():
    machine = Machine(rate=100.0, bandwidth=10.0)
    assert Layer("", operations=500.0, traffic=20.0).seconds(machine) == 5.0
    assert Layer("", operations=500.0, traffic=80.0).seconds(machine) == 8.0
    assert roofline([Layer("", 500.0, 20.0), Layer("", 500.0, 80.0)], machine) == 13.0


def test_layers_by_hand():
    """One picture of 2x2 with one channel, and one block of two filters."""
    found = {layer.name: layer[1:] for layer in step_layers(1, 1, 2, width=2, blocks=1)}
    # Four pixels in, eight values out, two after the pool, eighteen weights; four bytes each.
    whole = 4 * (4 + 8 + 18)
    assert found == {
        "convolution 1": (2 * 4 * 2 * 9, whole),
        "statistics 1": (0, 32),
        "pool and norm 1": (0, 32 + 8),
        "sums of the gradient 1": (0, 16),
        "gradient of the map 1": (0, 64 + 8),
        "gradient of the weights 1": (2 * 4 * 2 * 9, whole),
    }


@pytest.mark.parametrize(("channels", "size"), [(1, 28), (3, 84)])
def test_layers_have_all_operations_of_a_step(channels, size):
    layers = step_layers(N_WAY * (N_SHOT + N_QUERY), channels, size)
    assert sum(layer.operations for layer in layers) == count_operations(channels, size)
    machine = Machine(1e11, 1e10)
    assert roofline(layers, machine) > count_operations(channels, size) / machine.rate


# -------------------------------------------------------------------- pages


ROWS = [
    compare("fit", "s", [2.0, 1.0], ("SVC", [4.0, 5.0]), work="9 samples"),
    compare("labels", SHARE, 0.75, ("SVC", 0.875), work="9 samples"),
    compare("step", "s", 2.0, limit=Limit("roofline", 0.5)),
    value("answers", "ms", 12.34),
    point("fit", "ours", "default", 10, 0.5),
    point("fit", "limit", "distances", 10, 0.1),
    missing("learn2learn", "No module named 'learn2learn'"),
]


def test_a_table_has_the_columns_that_are_filled():
    assert page.table(ROWS[:2]) == (
        "| what | work | ours | peer | peer's | times as fast, or difference |\n"
        "|---|---|---:|---|---:|---:|\n"
        "| fit | 9 samples | 1.00 s | SVC | 4.00 s | 4.00 (2.00–5.00) |\n"
        "| labels | 9 samples | 0.750 | SVC | 0.875 | −0.125 |\n"
    )
    assert "| step | 2.00 s | roofline | 0.500 s | 25% |" in page.table(ROWS[2:3])
    assert page.table(ROWS[3:]) == "| what | measured |\n|---|---:|\n| answers | 12.3 ms |\n"
    assert page.table(ROWS[4:]) == ""


def test_what_is_missing_or_stopped_is_on_the_page():
    text = page.page(report_of(ROWS, end="stopped after 9 s"))
    assert "Not measured: learn2learn (No module named 'learn2learn')." in text
    assert "The part ended early: stopped after 9 s." in text
    assert f"### {PARTS['classifier'].title}" in text
    assert "](bench.png)" in text
    assert "](bench-ratios.png)" in text
    assert "This is the short form" not in text
    assert "was not quiet" not in text
    assert "This is the short form" in page.page(report_of(ROWS, form="short"))


def test_the_page_of_the_docs_is_filled_between_its_marks():
    document = "Before\n\n<!-- bench -->\nold\n<!-- end bench -->\n\nAfter\n"
    filled = page.fill(document, report_of(ROWS))
    assert filled.startswith("Before\n\n<!-- bench -->\n2 processors")
    assert filled.endswith("<!-- end bench -->\n\nAfter\n")
    assert "](../results/bench.png)" in filled
    assert page.fill(filled, report_of(ROWS)) == filled
    with pytest.raises(ValueError, match="one pair of marks"):
        page.fill("no marks", None)


def test_plots_are_drawn_from_stored_rows(tmp_path):
    page.draw(report_of(ROWS), tmp_path / "bench")
    assert {path.name for path in tmp_path.iterdir()} == {"bench.png", "bench-ratios.png"}
    page.draw(report_of(ROWS[3:4]), tmp_path / "nothing")
    assert len(list(tmp_path.iterdir())) == 2


def test_what_was_measured_is_on_both_pages():
    document = bench.PAGE.read_text(encoding="utf-8")
    report = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else None
    assert page.fill(document, report) == document, "run `python benchmarks/bench.py --page`"
    if report is not None:
        assert report["form"] == "full"
        assert set(report["parts"]) == set(PARTS)
        assert MEASURED.with_suffix(".md").read_text(encoding="utf-8") == page.page(report)


# -------------------------------------------------------------------- parts


def test_every_part_can_be_found():
    for part in PARTS.values():
        source = (ROOT / "benchmarks" / "bench_parts" / f"{part.module}.py").read_text()
        assert f"\ndef {part.function}(short: bool) -> Iterator[Row]:" in source
    assert sum(part.seconds for part in PARTS.values()) < 75 * 60


def test_a_package_that_is_missing_is_named(monkeypatch):
    reasons = []
    assert load("json", reasons) is json
    assert load("no_such_peer.inside", reasons) is None
    assert reasons == [missing("no_such_peer", "No module named 'no_such_peer'")]
    monkeypatch.setitem(sys.modules, "cvxopt", None)  # as if it were not installed
    from bench_parts.methods import quadratic_programs

    rows = list(quadratic_programs(short=True))
    assert rows[0]["peer"] == "a loop over samples and columns"
    assert rows[-1]["missing"] == "cvxopt"


def test_data_that_is_missing_is_named(monkeypatch, tmp_path):
    from bench_parts.labelme import labelme
    from bench_parts.methods import lost

    monkeypatch.setenv("FSPLL_DATA", str(tmp_path))
    (row,) = labelme(short=True)
    assert row["reason"] == "labels.csv, truth.csv, images.zip not in $FSPLL_DATA/labelme"
    (row,) = lost(short=True)
    assert row["reason"] == "lost.mat is not in $FSPLL_DATA/pll"


def test_a_part_ends_at_its_limit():
    found = bench.run_part("machine", True, 0.05)
    assert found["end"] == "stopped after 0 s"
    assert found["rows"] == []


def test_the_short_form_of_a_part_writes_all_files(tmp_path):
    command = [sys.executable, bench.__file__, "--short", "--parts", "machine"]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "--short needs --out" in refused.stderr
    out = tmp_path / "new" / "bench"
    subprocess.run([*command, "--out", str(out)], check=True, capture_output=True)
    report = json.loads(out.with_suffix(".json").read_text())
    assert report["parts"]["machine"]["end"] == "done"
    assert all(row["value"] > 0 for row in report["parts"]["machine"]["rows"])
    assert "| product of 2048 x 2048 |" in out.with_suffix(".md").read_text()


def test_no_part_begins_after_the_time_is_used_up(tmp_path):
    report = bench.measure(["machine", "lost"], True, 0.0, tmp_path / "bench")
    assert report["parts"]["lost"]["rows"] == [
        missing(PARTS["lost"].title, "0 minutes were used up")
    ]
    # Parts that are measured later join those that are there.
    again = bench.measure(["app"], True, 0.0, tmp_path / "bench")
    assert list(again["parts"]) == ["machine", "lost", "app"]
