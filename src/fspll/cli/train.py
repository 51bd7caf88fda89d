"""``fspll train``: meta-train an embedding, under any regime."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fspll._common.errors import InputError, MissingPackageError
from fspll._common.words import counted
from fspll.cli.adapting import Earlier, adapt, check_options
from fspll.cli.console import err, note, one_voice, out
from fspll.cli.options import DataSetName, FeaturesColumns, Root, numbers

if TYPE_CHECKING:
    from fspll.datasets.base import ImageSet
    from fspll.metalearning.log import Report
    from fspll.metalearning.plan import TrainingPlan
    from fspll.metalearning.trainer import Observer


def train(
    context: typer.Context,
    folder: Path = typer.Option(..., "--out", help="Folder for the model, its log and its state."),
    dataset: DataSetName = "glyphs",
    root: Root = None,
    encoder: str | None = typer.Option(
        None,
        help="Adapt this encoder instead of training a network: a name of: fspll models; features, "
        "for vectors; or the path of a checkpoint. --dataset may then be a file of labels, too.",
    ),
    candidates: list[str] = typer.Option(
        [], help="With --encoder and a file of labels: the column of candidates."
    ),
    images: Path | None = typer.Option(
        None, help="With --encoder and a file of labels: the folder of the pictures."
    ),
    text: str | None = typer.Option(
        None, help="With --encoder and a file of labels: the column with the texts."
    ),
    features: Path | None = typer.Option(
        None, help="With --encoder and a file of labels: vectors, an .npy or .npz file or a table."
    ),
    features_columns: FeaturesColumns = None,
    regime: str = typer.Option("leave-one-out", help="What is learned from; see docs/method.md."),
    r: str = typer.Option("1", help="Extra labels per sample; several (0,1,2,3) take turns."),
    p: float = typer.Option(1.0, help="Share of ambiguous samples."),
    n_way: int = typer.Option(30, help="Classes per task (N1)."),
    n_shot: int = typer.Option(5, help="Support samples per class (K1)."),
    n_query: int | None = typer.Option(
        None, help="Queries per class; by default 15, or 1 when nothing is learned from them."
    ),
    n_tasks: int = typer.Option(100, "--tasks", help="Tasks per epoch (T)."),
    epochs: int = typer.Option(20, help="Rounds over the tasks."),
    fresh: bool = typer.Option(False, help="Draw new tasks every epoch instead of the same T."),
    update: str = typer.Option("task", help="One step per task or per epoch: task | epoch."),
    tasks_per_step: int = typer.Option(
        1, "--meta-batch", help="Tasks per step with --update task."
    ),
    optimizer: str = typer.Option("adam", help="adam or sgd."),
    learning_rate: float = typer.Option(1e-3, help="Learning rate of the optimizer."),
    halve_every: int = typer.Option(20, help="Epochs between halvings of the rate; 0 never."),
    metric: str = typer.Option("euclidean", help="euclidean or sqeuclidean."),
    architecture: str = typer.Option("conv4", help="Network, such as conv4 or resnet12."),
    held_out: int = typer.Option(
        0, help="Meta-training classes kept to choose the best epoch; a character counts once."
    ),
    patience: int = typer.Option(
        0, help="Stop after so many epochs without a better one; 0 never, needs --held-out."
    ),
    inner_steps: int = typer.Option(5, help="MAML: steps on the support set."),
    inner_rate: float = typer.Option(0.5, help="MAML: their learning rate."),
    first_order: bool = typer.Option(False, help="MAML: leave out second-order terms."),
    seed: int = typer.Option(0, help="Of the weights, the tasks and their candidate sets."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
    save_every: int = typer.Option(50, min=1, help="Steps between saves of the state."),
    restart: bool = typer.Option(
        False, help="Start over; an earlier model stays until the new one is complete."
    ),
    tensorboard: bool = typer.Option(False, help="Also write TensorBoard scalars."),
) -> None:
    """Meta-train an embedding network, or adapt an encoder to earlier tasks with --encoder.

    Ctrl-C stops training; the same command goes on.
    """
    from fspll.metalearning.ranks import join_ranks

    with join_ranks() as ranks, one_voice(ranks):
        given = check_options(context, encoder)
        extra = tuple(numbers(r, "--r"))
        if encoder is not None:
            if ranks.count > 1:
                raise InputError("--encoder takes one process: its head is computed in one step")
            earlier = Earlier(
                dataset, root, tuple(candidates), images, text, features, features_columns
            )
            adapt(context, given, earlier, encoder, folder, extra, device=device, restart=restart)
            return

        from fspll._common.devices import keep_freed_memory
        from fspll.datasets.registry import load_images
        from fspll.metalearning import REGIMES
        from fspll.metalearning.plan import TrainingPlan
        from fspll.metalearning.trainer import check_folder

        keep_freed_memory()
        if n_query is None:
            n_query = 15 if REGIMES.get(regime).reads_queries else 1
        if update not in ("task", "epoch"):
            raise InputError(f"--update is task or epoch, not {update!r}")
        plan = TrainingPlan(
            regime=regime,
            n_way=n_way,
            n_shot=n_shot,
            n_query=n_query,
            r=extra,
            p=p,
            n_tasks=n_tasks,
            fresh=fresh,
            epochs=epochs,
            tasks_per_step=n_tasks if update == "epoch" else tasks_per_step,
            optimizer=optimizer,
            learning_rate=learning_rate,
            halve_every=halve_every,
            metric=metric,
            architecture=architecture,
            held_out=held_out,
            patience=patience,
            seed=seed,
            inner_steps=inner_steps,
            inner_rate=inner_rate,
            first_order=first_order,
        )
        # Everything that can be checked is checked before the data set is loaded.
        check_folder(folder)
        ranks.check(plan.tasks_per_step)
        ranks.choose_device(device)
        writer = _summary_writer() if tensorboard else None
        data = load_images(dataset, "train", root=root)
        if data.note:
            note(f"training on {data.note}", context)
        observers = [] if writer is None else [_scalars(writer, folder / "tensorboard")]
        settings = {"device": device, "save_every": save_every, "restart": restart, "ranks": ranks}
        _run(data, plan, folder, observers, settings)


def _run(
    data: ImageSet,
    plan: TrainingPlan,
    folder: Path,
    observers: list[Observer],
    settings: dict[str, Any],
) -> None:
    """Train with a bar, and say how it ended."""
    from fspll.cli.progress import TrainingBar
    from fspll.metalearning.trainer import train as run

    taken: list[int] = []
    observers = [lambda report: taken.append(report.step), *observers]
    with TrainingBar(plan.total_steps) as bar:
        trained = run(data, plan, folder, observers=(bar.observe, *observers), **settings)
    if not trained.finished:
        step = f"step {trained.step} of {plan.total_steps}"
        err.print(f"stopped at {step}; run it again to go on", soft_wrap=True)
        raise typer.Exit(130)
    begins = "trained for" if taken else "nothing left to do after"
    steps = counted(trained.step, "step")
    out.print(f"{begins} {steps}: {trained.model}", soft_wrap=True, markup=False)
    if trained.best_epoch >= 0:
        out.print(f"best epoch {trained.best_epoch + 1}, held-out figure {trained.best_figure:.3f}")


def _summary_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingPackageError("tensorboard", "tensorboard", "--tensorboard") from None
    return SummaryWriter


def _scalars(make_writer: Any, folder: Path) -> Observer:
    """Return an observer that writes TensorBoard scalars, from the first step on."""
    made = cache(lambda: make_writer(str(folder)))

    def observe(report: Report) -> None:
        writer, figures = made(), report._asdict()
        for name in ("loss", "query_accuracy", "learning_rate", "held_out"):
            if figures[name] is not None:
                writer.add_scalar(name, figures[name], report.step)
        if report.step % 20 == 0 or report.step == report.total_steps:
            writer.flush()  # a killed or interrupted run keeps its curves

    return observe
