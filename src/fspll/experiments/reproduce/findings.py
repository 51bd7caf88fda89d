"""What a reproduction found, in sentences that are computed from its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fspll._common.words import spoken
from fspll.experiments.reproduce.comparisons import (
    Count,
    above_ceiling,
    best_settings,
    compare,
    counts,
    differences,
    mean_gain,
    same_order,
)
from fspll.experiments.reproduce.published import (
    BEST_MANIFOLD_WEIGHT,
    METHODS,
    N_SHOT,
    N_WAY,
    NOISE_GAINS,
    R,
    best_n_neighbors,
)
from fspll.experiments.reproduce.results import (
    DEFAULT,
    DEFAULT_PLUS,
    MAML_TOTAL,
    PHOTO_FEATURES,
    Outcome,
    Row,
    in_order,
    label,
)
from fspll.experiments.reproduce.tables import share, signed

_SHOWN = 6


def findings(outcome: Outcome) -> list[str]:
    """Return the findings of an outcome, the most important first."""
    if not outcome.measured:
        return ["Nothing has been measured yet."]
    found = []
    if outcome.experiment == "noise":
        found += _gains(outcome)
    elif outcome.experiment == "parameters":
        found += _peaks(outcome)
    else:
        found += _winners(outcome)
    near = _nearness(outcome)
    found = found + near if differences(outcome) else near + found
    return found + _ceiling(outcome) + missing(outcome)


def headline(outcome: Outcome) -> list[tuple[str, str]]:
    """Return figures to see first: a value and its meaning."""
    shown = []
    if outcome.experiment in ("omniglot", "mini-imagenet"):
        rivals = ("PN", "MAML", "FsPLL-nM")
        shown += [
            (f"{c.above} of {c.settings}", f"settings with FsPLL above {c.other[0]}")
            for c in counts(compare(outcome, "FsPLL"))
            if c.other[0] in rivals
        ]
        won, total = best_settings(outcome, DEFAULT)
        if total:
            shown.append((f"{won} of {total}", f"settings with {DEFAULT} above all others"))
    same, total = same_order(outcome)
    if total and outcome.experiment == "omniglot":
        shown.append((f"{same / total:.0%}", "of pairs of methods ordered as in the paper"))
    above = above_ceiling(outcome)
    if above:
        shown.append((str(len(above)), "printed figures above the ceiling"))
    return shown


def _winners(outcome: Outcome) -> list[str]:
    found = []
    for row in ("FsPLL", "FsPLL+", DEFAULT):
        tallies = counts(compare(outcome, row))
        if row == "FsPLL+":  # the paper tests it; its rivals are those that know as much
            tallies = [c for c in tallies if c.other[0].endswith("+")]
        elif row == "FsPLL":
            ours = (DEFAULT, MAML_TOTAL)
            tallies = [
                c for c in tallies if not c.other[0].endswith("+") and c.other[0] not in ours
            ]
        if tallies and row != DEFAULT:
            found.append(f"{row} is above {_tallied(tallies)}.")
    won, total = best_settings(outcome, DEFAULT)
    if total:
        words = f"{DEFAULT}, our own method, is above every other one in {won} of {total} settings"
        rivals = [c for c in counts(compare(outcome, DEFAULT)) if c.other[0] != DEFAULT_PLUS]
        lost = [c for c in rivals if c.above < c.settings]
        if lost:
            words += "; not always above " + spoken(
                [f"{label(c.other)} ({c.above} of {c.settings})" for c in lost]
            )
        found.append(words + ".")
    precise = mean_gain(outcome, (DEFAULT, ""), (DEFAULT_PLUS, ""))
    if precise is not None:
        found.append(
            f"{DEFAULT} minus the same method on a network that was trained on true labels "
            f"({DEFAULT_PLUS}), on the same tasks: {signed(precise[0])} on average over "
            f"{precise[1]} settings."
        )
    return found + _adapting(outcome)


def _adapting(outcome: Outcome) -> list[str]:
    """Return what adapting a frozen encoder to the meta-training classes adds to each method."""
    raw, adapted = PHOTO_FEATURES
    parts = []
    for name, features in in_order(outcome.rows()):
        gain = mean_gain(outcome, (name, adapted), (name, raw)) if features == raw else None
        if gain is not None:
            parts.append(f"{name} {signed(gain[0])}")
    if not parts:
        return []
    return [
        "Adapting the photo encoder to the meta-training classes, from candidate sets, adds on "
        f"average over settings: {', '.join(parts)}."
    ]


def _tallied(tallies: Sequence[Count]) -> str:
    """Return tallies with equal counts together: "PN and MAML in 24 of 24 settings, ..."."""
    same: dict[tuple[int, int], list[Count]] = {}
    for tally in tallies:
        same.setdefault((tally.above, tally.settings), []).append(tally)
    parts = []
    for above, settings in sorted(same, reverse=True):
        here = same[above, settings]
        sure = sum(c.surely_above for c in here)
        each = above * len(here)
        chance = "always" if sure == each else f"in {sure} of these {each} comparisons"
        words = f"{spoken(_names(c.other for c in here))} in {above} of {settings} settings"
        parts.append(f"{words} (p < .001 {chance})" if above else words)
    return "; above ".join(parts)


def _names(rows: Iterable[Row]) -> list[str]:
    """Return names of rows, many-shot methods with both kinds of features under one name."""
    kinds: dict[str, list[str]] = {}
    for name, features in rows:
        kinds.setdefault(name, []).append(features)
    return [
        name
        if kind == [""]
        else f"{name} (both features)"
        if len(kind) > 1
        else label((name, kind[0]))
        for name, kind in kinds.items()
    ]


def _nearness(outcome: Outcome) -> list[str]:
    gaps = [d for d in differences(outcome) if d.row[1] != "untrained"]
    if not gaps:
        if outcome.experiment in ("omniglot", "noise"):
            return [f"These tasks are of {outcome.dataset}, for which the paper prints nothing."]
        return [
            f"These tasks are of {outcome.dataset}. The paper prints no numbers for this "
            "experiment, only curves, so no figure of its own stands beside ours."
        ]
    listed = ", ".join(f"{label(d.row)} {signed(d.mean)}" for d in gaps)
    words = [f"Ours minus the paper's, on average over settings: {listed}."]
    parts = []
    for features in ("trained", "untrained"):
        same, total = same_order(outcome, features)
        if total and any(row[1] == features for row in outcome.rows()):
            parts.append(
                f"{same} of {total} ({same / total:.0%}) with the many-shot methods on {features} "
                "features"
            )
    if not parts and outcome.experiment != "noise":
        same, total = same_order(outcome)
        parts = [f"{same} of {total} ({same / total:.0%})"] if total else []
    if parts:
        words.append(f"Pairs of methods that stand in the paper's order: {'; '.join(parts)}.")
    return words


def _ceiling(outcome: Outcome) -> list[str]:
    above = above_ceiling(outcome)
    if not above:
        return []
    above.sort(key=lambda e: e.ceiling.mean - e.paper.mean)
    listed = "; ".join(
        f"{e.row} at {e.condition} ({share(e.paper.mean)} in print, at most "
        f"{share(e.ceiling.mean)} ± {share(e.ceiling.half_width)} here)"
        for e in above[:_SHOWN]
    )
    more = f"; and {len(above) - _SHOWN} more" if len(above) > _SHOWN else ""
    sure = sum(e.beyond_chance for e in above)
    stand = "1 printed figure stands" if len(above) == 1 else f"{len(above)} printed figures stand"
    words = (
        f"{stand} above the ceiling, the best share of right labels that candidate sets allow "
        f"anyone to expect, {sure or 'none'} of them by more than chance: {listed}{more}."
    )
    if sure:
        words += " There the paper's sets cannot have held r distinct wrong labels drawn evenly."
    return [words]


def _gains(outcome: Outcome) -> list[str]:
    cells = outcome.measured
    found = []
    for condition in outcome.conditions():
        for (better, worse), gain in NOISE_GAINS.items():
            both = [cells.get(((name, ""), condition)) for name in (better, worse)]
            if both[0] is not None and both[1] is not None:
                ours = float(np.mean(both[0].query)) / max(float(np.mean(both[1].query)), 1e-9) - 1
                found.append(
                    f"{better} improves on {worse} by {ours:.0%} ({condition}); the paper "
                    f"says {gain:.0%}."
                )
        pair = [cells.get(((name, ""), condition)) for name in ("FsPLL+", "FsPLL++")]
        if pair[0] is not None and pair[1] is not None:
            gap = float(np.mean(pair[0].query) - np.mean(pair[1].query))
            found.append(
                f'FsPLL+ minus FsPLL++ is {signed(gap)}; the paper calls the two "similar".'
            )
    return found


def _peaks(outcome: Outcome) -> list[str]:
    found = []
    for name, letter in (("n_neighbors", "k"), ("manifold_weight", "λ")):
        by_row: dict[Row, list[str]] = {}
        for (row, r, _, n_shot), curve in outcome.swept(name).items():
            best = max(curve, key=lambda value: curve[value].mean)
            usual = best_n_neighbors(n_shot) if letter == "k" else BEST_MANIFOLD_WEIGHT
            words = f"{best:g} for r = {r} ({share(curve[best].mean)}"
            if usual == best:
                words += ", the paper's choice"
            elif usual in curve:
                words += f"; the paper's choice, {usual:g}, gives {share(curve[usual].mean)}"
            by_row.setdefault(row, []).append(words + ")")
        found += [
            f"The best {letter} of {label(row)} is {', '.join(by_row[row])}."
            for row in in_order(by_row)
        ]
    return found


def missing(outcome: Outcome) -> list[str]:
    """Return what was asked for and is not there, and what the paper has and was not asked for."""
    found = []
    if outcome.missing:
        there = len(outcome.measured)
        found.append(
            f"Not finished: {outcome.missing} of {there + outcome.missing} cells are still to be "
            "measured, shown as –."
        )
    found += _partly_run(outcome)
    if outcome.experiment == "omniglot" and outcome.is_omniglot:
        cells = outcome.measured
        names = {row[0] for row, _ in cells}
        rows = [name for name in METHODS if name not in names]
        settings = {(p.r, p.n_way, p.n_shot) for _, p in cells}
        n_all = len(R) * len(N_WAY) * len(N_SHOT)
        n_there = sum((r, n, k) in settings for r in R for n in N_WAY for k in N_SHOT)
        if rows:
            found.append(f"Rows of the paper that were not run: {', '.join(rows)}.")
        if n_there < n_all:
            found.append(f"{n_there} of the paper's {n_all} settings were run.")
    return found


def _partly_run(outcome: Outcome) -> list[str]:
    """Return which rows a profile runs in some of the settings only."""
    if outcome.missing:  # which of them are still to come is not known here
        return []
    total = len(outcome.conditions())
    times: dict[int, list[str]] = {}
    for row in in_order(outcome.rows()):
        n = sum(other == row for other, _ in outcome.measured)
        if 0 < n < total:
            times.setdefault(n, []).append(label(row))
    return [
        f"Run in {n} of {total} settings only, to save time: {', '.join(names)}."
        for n, names in times.items()
    ]


def features_note(rows: Sequence[Row]) -> str:
    """Return what the words in brackets after a row's name stand for, "" where no row has any."""
    words = []
    if any(row[1] in ("trained", "untrained") for row in rows):
        words.append(
            "The many-shot methods get features: (trained) those of the network that was "
            "meta-trained on the same candidate sets as FsPLL's, (untrained) those of a random "
            "network. The paper does not say which it used; its figure stands beside both."
        )
    if any(row[1] in PHOTO_FEATURES for row in rows):
        words.append(
            "Rows on the features of a frozen encoder, which was trained on ImageNet, are not to "
            "be compared with those that learn from the pixels of the meta-training classes alone: "
            "(photo encoder) as it is, (adapted photo encoder) with a head fitted to candidate "
            "sets of the meta-training classes."
        )
    return " ".join(words)
