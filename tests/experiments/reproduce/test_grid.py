"""Grids, profiles and keys: what is asked for, with which budget, under which name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fspll._common.errors import InputError
from fspll.experiments.reproduce.grid import EXPERIMENTS, TABLE, grid
from fspll.experiments.reproduce.jobs import NetworkJob
from fspll.experiments.reproduce.profiles import PROFILES, find_profile
from fspll.metalearning import REGIMES


def test_every_method_of_a_profile_sees_about_as_many_images():
    profile = PROFILES["cpu"]
    for regime in ("fspll", "fspll-nm", "pn", "precise", "leave-one-out", "maml", "maml+"):
        plan = profile.plan(regime, 1)
        adapts = REGIMES.get(regime).learner.adapts
        support = plan.n_shot * (3 * plan.inner_steps if adapts else 1)
        passes = plan.n_way * (support + plan.n_query)
        seen = plan.total_steps * plan.tasks_per_step * passes
        assert seen == pytest.approx(profile.images, rel=0.01), regime
        assert plan.rate(plan.epochs - 1) == pytest.approx(plan.learning_rate / 4)


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
    assert replace(slow, maml_tasks=99).for_photos().tasks_for("MAML") == 8


def test_photos_have_a_budget_of_their_own(source, profile):
    shorter = replace(profile, epochs=4, photo_epochs=2)
    (cell,) = grid("mini-imagenet", shorter, source, rows=["PN"])
    assert cell.job.network.plan.epochs == 2
    (cell,) = grid("mini-imagenet", replace(shorter, photo_epochs=0), source, rows=["PN"])
    assert cell.job.network.plan.epochs == 4


def test_unknown_profiles_list_the_known():
    with pytest.raises(InputError, match="quick, cpu, paper"):
        find_profile("huge")


def test_the_omniglot_grid_is_the_papers_table(source):
    small = replace(PROFILES["cpu"], photo_ways=(4, 5), photo_shots=(2, 3), photo_rs=(1, 2, 3))
    asked = grid("omniglot", small, source)
    assert len(asked) == 3 * 2 * 2 * len(TABLE)
    networks = {cell.job.network for cell in asked}
    # fspll, fspll-nm, pn, maml and leave-one-out for every r; precise, maml+ and untrained; none
    assert len(networks) == 5 * 3 + 3 + 1
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
