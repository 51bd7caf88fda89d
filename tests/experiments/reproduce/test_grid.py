"""Grids, profiles and keys: what is asked for, with which budget, under which name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fspll._common.errors import InputError
from fspll.experiments.reproduce.grid import EXPERIMENTS, TABLE, grid, missing_encoder
from fspll.experiments.reproduce.jobs import NetworkJob
from fspll.experiments.reproduce.profiles import PROFILES, Budget, find_profile
from fspll.metalearning import REGIMES
from fspll.rectifiers.registry import DEFAULT


def test_without_budgets_of_their_own_all_methods_see_about_as_many_images():
    profile = replace(PROFILES["cpu"], budgets=())
    for regime in ("fspll", "fspll-nm", "pn", "precise", "leave-one-out", "maml", "maml+"):
        plan = profile.plan(regime, 1)
        adapts = REGIMES.get(regime).learner.adapts
        support = plan.n_shot * (3 * plan.inner_steps if adapts else 1)
        passes = plan.n_way * (support + plan.n_query)
        seen = plan.total_steps * plan.tasks_per_step * passes
        assert seen == pytest.approx(profile.images, rel=0.01), regime
        assert plan.rate(plan.epochs - 1) == pytest.approx(plan.learning_rate / 4)


def test_maml_steps_farther_where_a_task_has_more_classes():
    steps, rates = zip(
        *(PROFILES["cpu"].adaptation("maml+", n) for n in (5, 10, 20, 30)), strict=True
    )
    assert set(steps) == {10}
    assert rates == pytest.approx([rates[0] * n / 5 for n in (5, 10, 20, 30)])


def test_the_papers_profile_has_the_papers_budget():
    profile = PROFILES["paper"]
    plan = profile.plan("fspll", 2)
    assert (plan.n_tasks, plan.epochs, plan.fresh, plan.halve_every) == (100, 200, False, 20)
    assert (plan.learning_rate, plan.n_way, plan.n_shot, plan.n_query) == (1e-3, 30, 5, 15)
    assert profile.n_tasks == 100
    for regime in ("leave-one-out", "maml"):
        assert (profile.plan(regime, 1).n_tasks, profile.plan(regime, 1).epochs) == (100, 200)


def test_slow_rows_may_solve_the_first_tasks_only(source, profile):
    slow = replace(profile, maml_tasks=3)
    asked = grid("mini-imagenet", slow, source, rows=["MAML", "PN", "MAML+"])
    assert {cell.row: cell.job.n_tasks for cell in asked} == {"PN": 8, "MAML": 3, "MAML+": 3}
    assert replace(slow, maml_tasks=99).for_photos().tasks_for(adapts=True) == 8


def test_photos_have_a_budget_of_their_own(source, profile):
    shorter = replace(profile, epochs=4, photo_epochs=2)
    (cell,) = grid("mini-imagenet", shorter, source, rows=["PN"])
    assert cell.job.network.plan.epochs == 2
    (cell,) = grid("mini-imagenet", replace(shorter, photo_epochs=0), source, rows=["PN"])
    assert cell.job.network.plan.epochs == 4


def test_a_network_may_have_a_budget_of_its_own(source, profile):
    longer = Budget("pn", images=6 * profile.images)
    longest = Budget("pn", r=2, settings=(("epochs", 9), ("learning_rate", 0.5), ("patience", 0)))
    plan = replace(profile, budgets=(longer, longest)).plan
    assert [plan("pn", r).epochs for r in (0, 1, 2)] == [6, 6, 9]
    assert [plan("pn", r).learning_rate for r in (1, 2)] == [3e-4, 0.5]
    assert [plan("pn", r).halve_every for r in (1, 2)] == [2, 3]
    assert plan("fspll", 2).epochs == 1
    # Photos have their own.
    shape = replace(profile, budgets=(longer,))
    assert grid("mini-imagenet", shape, source, rows=["PN"])[0].job.network.plan.epochs == 1
    shape = replace(profile, photo_budgets=(longer,))
    assert grid("mini-imagenet", shape, source, rows=["PN"])[0].job.network.plan.epochs == 6


def test_budgets_count_for_the_papers_profile_too():
    paper = replace(PROFILES["paper"], budgets=(Budget("pn", images=120_000),))
    assert (paper.plan("pn", 1).epochs, paper.plan("fspll", 1).epochs) == (2, 200)


def test_maml_may_be_trained_and_adapted_by_the_number_of_classes(source, profile):
    many = replace(
        profile,
        photo_ways=(4, 5),
        photo_budgets=(Budget("maml", settings=(("first_order", True), ("inner_steps", 3))),),
        photo_maml_test=(("", 5, 7, 0.5), ("maml+", 0, 2, 3.0)),
        maml_per_way=True,
    )
    asked = grid("mini-imagenet", many, source, rows=["MAML", "MAML+", "PN"])
    jobs = {(cell.row, cell.condition.n_way): cell.job for cell in asked}
    steps = {
        key: (job.method.steps, job.method.rate_factor)
        for key, job in jobs.items()
        if "M" in key[0]
    }
    assert steps == {
        ("MAML", 4): (1, 1.0),
        ("MAML", 5): (7, 0.5),
        ("MAML+", 4): (2, 3.0),
        ("MAML+", 5): (2, 3.0),
    }
    assert [jobs["MAML", n].network.label for n in (4, 5)] == ["maml-r1-4way", "maml-r1-5way"]
    assert jobs["MAML", 4].network.plan.first_order
    assert not jobs["MAML+", 4].network.plan.first_order
    assert jobs["PN", 4].network == jobs["PN", 5].network
    one = replace(many, maml_per_way=False)
    asked = grid("mini-imagenet", one, source, rows=["MAML"])
    assert {cell.job.network.label for cell in asked} == {"maml-r1-5way"}
    other = replace(asked[0].job, method=replace(asked[0].job.method, rate_factor=2.0))
    assert other.key != asked[0].job.key


def test_settings_of_maml_are_no_part_of_other_networks(source, profile):
    pn, maml = (profile.plan(name, 1) for name in ("pn", "maml"))
    assert NetworkJob(source, replace(pn, inner_rate=0.1)).key == NetworkJob(source, pn).key
    assert NetworkJob(source, replace(maml, inner_rate=0.1)).key != NetworkJob(source, maml).key


def test_settings_with_many_samples_have_fewer_tasks(source, profile):
    few = replace(profile, photo_shots=(2, 3), many_shots=3, many_shot_tasks=5)
    few = replace(few, photo_maml_samples=8)
    asked = grid("mini-imagenet", few, source, rows=["MAML", "PN"])
    assert {(cell.row, cell.condition.n_shot): cell.job.n_tasks for cell in asked} == {
        ("MAML", 2): 8,
        ("PN", 2): 8,
        ("PN", 3): 5,  # and MAML not at all
    }


def test_our_default_is_tried_on_both_kinds_of_networks(source, profile):
    asked = grid(
        "mini-imagenet", profile, source, rows=["fspll default", "fspll default+", "FsPLL+"]
    )
    jobs = {cell.row: cell.job for cell in asked}
    assert jobs["fspll default"].method == jobs["fspll default+"].method
    assert jobs["fspll default"].method.identity()["method"] == DEFAULT
    assert jobs["fspll default"].network.plan.regime == "leave-one-out"
    assert jobs["fspll default+"].network == jobs["FsPLL+"].network


def test_photos_have_rows_on_a_frozen_encoder(source, profile):
    frozen = replace(profile, photo_encoder="omniglot-conv4")
    asked = [cell for cell in grid("mini-imagenet", frozen, source) if "encoder" in cell.features]
    assert [cell.row for cell in asked] == [
        *("fspll default", "FsPLL", "PL-AGGD", "PALOC", "PL-ECOC", "PL-LEAF"),
        *("fspll default", "FsPLL", "PL-AGGD", "PALOC", "PL-ECOC", "PL-LEAF"),
    ]
    raw, adapted = asked[0].job.network, asked[-1].job.network
    assert (raw.label, adapted.label) == ("omniglot-conv4", "omniglot-conv4-head-r1")
    assert adapted.base == raw
    assert (raw.settings["plan"], adapted.settings["plan"]["r"]) == (None, [1])
    assert not any("encoder" in cell.features for cell in grid("omniglot", frozen, source))
    assert not any("encoder" in cell.features for cell in grid("mini-imagenet", profile, source))


def test_rows_are_left_out_where_the_encoder_is_not_installed(source, profile, monkeypatch):
    frozen = replace(profile, photo_encoder="efficientnet-lite0")
    monkeypatch.setattr("fspll.embeddings.encoders.photos._BUILDER", "no_such_package")
    assert "fspll[photos]" in missing_encoder("mini-imagenet", frozen, source)
    assert missing_encoder("omniglot", frozen, source) == ""
    assert not any("encoder" in cell.features for cell in grid("mini-imagenet", frozen, source))


def test_unknown_profiles_list_the_known():
    with pytest.raises(InputError, match="quick, cpu, paper"):
        find_profile("huge")


def test_the_omniglot_grid_is_the_papers_table(source):
    small = replace(PROFILES["cpu"], photo_ways=(4, 5), photo_shots=(2, 3), photo_rs=(1, 2, 3))
    asked = grid("omniglot", small, source)
    rows = [row for row in TABLE if row.network in ("", "untrained") or row.network in REGIMES]
    assert len(asked) == 3 * 2 * 2 * len(rows)
    networks = {cell.job.network for cell in asked}
    # Some have a network for every r; precise, maml+ and untrained serve all; the ceiling has none.
    per_r = {"fspll", "fspll-nm", "pn", "maml", "maml-total", "leave-one-out"} & set(REGIMES)
    assert len(networks) == len(per_r) * 3 + 3 + 1
    assert len({cell.job.key for cell in asked}) == len(asked)
    names = {(cell.row, cell.features) for cell in asked}
    for method in ("PL-AGGD", "PALOC", "PL-ECOC", "PL-LEAF"):
        assert {(method, "trained"), (method, "untrained")} <= names


def test_rows_with_precise_labels_say_so_in_their_tasks(source, profile):
    settings = {cell.row: cell.job.setting for cell in grid("noise", profile, source)}
    assert settings["FsPLL+"].r == settings["PN"].r == 2
    assert settings["FsPLL++"].r == settings["PN++"].r == 0


def test_tasks_that_the_data_cannot_fill_are_refused(source, profile):
    wide = replace(profile, photo_ways=(11,))
    with pytest.raises(InputError, match="11-way 3-shot tasks cannot be drawn from tiny_photos"):
        grid("mini-imagenet", wide, source)


def test_parameters_vary_one_at_a_time(source):
    conditions = [cell.condition for cell in grid("parameters", PROFILES["quick"], source)]
    assert all((p.n_neighbors is None) != (p.manifold_weight is None) for p in conditions)
    assert {p.manifold_weight for p in conditions} >= {0.0, 0.5, 1.0}
    assert {p.n_neighbors for p in conditions} >= {1, 9, 20}


def test_a_grid_can_be_narrowed(source, profile):
    wide = replace(profile, photo_ways=(4, 5), photo_rs=(1, 2))
    asked = grid("mini-imagenet", wide, source, rows=["PN"], rs=[2], n_ways=[5])
    assert [(c.row, c.condition.r, c.condition.n_way) for c in asked] == [("PN", 2, 5)]
    with pytest.raises(InputError, match="no row 'NP'"):
        grid("mini-imagenet", wide, source, rows=["NP"])
    with pytest.raises(InputError, match="nothing of the grid is left"):
        grid("mini-imagenet", wide, source, rs=[9])
    with pytest.raises(InputError, match=f"{', '.join(EXPERIMENTS)} or all"):
        grid("all-of-it", wide, source)


def test_keys_depend_on_settings_and_pixels_not_on_folders(source, profile, tmp_path):
    def key(where=source, shape=profile, **options):
        return grid("mini-imagenet", shape, where, rows=["PN"], **options)[0].job.key

    moved = tmp_path / "elsewhere" / "tiny_photos"
    moved.parent.mkdir()
    (tmp_path / "tiny_photos").rename(moved)
    again = replace(source, root=str(moved))
    assert key(again) == key(again)
    first = key(again)
    assert key(again, seed=1) != first
    assert key(again, replace(profile, epochs=2)) != first
    assert key(again, replace(profile, photo_tasks=99)) == first  # tasks can be added later
    assert key(replace(again, size=17)) != first


def test_networks_are_named_for_people_and_apart(source, profile, tmp_path):
    job = NetworkJob(source, profile.plan("fspll", 2))
    assert job.key.startswith("fspll-r2-")
    assert job.folder(tmp_path).parent == tmp_path / "networks"
    assert NetworkJob(source, profile.plan("fspll", 2, seed=1), 1).key != job.key
    assert NetworkJob(source, None).label == "untrained"
