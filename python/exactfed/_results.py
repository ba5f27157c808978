"""Results of experiments."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._errors import ExactfedError, ExactfedWarning
from ._frames import Kind, to_frame
from ._native import NativeResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Verification:
    """What running cells again has shown; true if all of them are bit-identical.

    ``different`` counts cells and caches of theory with other numbers, and ``not_comparable`` also
    the cells that were left out, since the code of their algorithm is not at hand.
    """

    text: str
    equal: int
    different: int
    not_comparable: int

    def __bool__(self) -> bool:
        return self.different == 0 and self.not_comparable == 0


class Results:
    """The results of an experiment, as it was last run; made by :func:`run` and :func:`load`."""

    def __init__(self, native: NativeResults, path: Path) -> None:
        self._native = native
        self.path = path
        """The folder of the results."""

    @property
    def experiment(self) -> str:
        """The name of the experiment."""
        return self._native.experiment

    def __repr__(self) -> str:
        return f"Results({self.experiment!r} in {str(self.path)!r})"

    def _repr_html_(self) -> str:
        return self._native.html()

    def _rows(self, earlier: bool) -> Any:
        frame, damaged = self._native.rows(earlier)
        for reason in damaged:
            warnings.warn(reason, ExactfedWarning, stacklevel=3)
        if frame is None:
            raise ExactfedError(f"error: {self.path}: no cell has results yet")
        if len(frame) == 0:
            raise ExactfedError(
                f"error: {self.path}: no cell of the last run has results yet; "
                "frame(earlier=True) has the rows of earlier runs"
            )
        return frame

    def frame(self, kind: Kind = "polars", *, earlier: bool = False) -> Any:
        """The rows of the experiment as it was last run: one per replicate and recorded round.

        Cells of earlier runs, which had other settings or other code of an algorithm, stay in the
        results folder. ``earlier=True`` adds their rows, with ``last_run`` false: these are all
        rows that ``exactfed export`` writes, and equal what polars and pandas read from its
        Parquet file, bit for bit. Of a tuned experiment, candidates and fresh runs are of the last
        run.

        Every setting in which cells differ is a typed column, so that a group-by over ``cell``, or
        over all settings and ``last_run``, mixes no cells. ``kind`` is ``"polars"`` or
        ``"pandas"``. docs/FORMAT.md describes the columns. Damaged cells are left out with a
        warning.
        """
        return to_frame(self._rows(earlier), kind)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows(earlier=False).__arrow_c_stream__(requested_schema)

    def claims(self, kind: Kind = "polars") -> Any:
        """The claims of the manifest, one row each.

        ``value`` is the estimate, ``low`` and ``high`` are the ends of its 95 % interval, and
        ``region_low`` and ``region_high`` those of the numbers for which the claim holds; of a
        claim on several cells these are of the cell ``nearest`` to the end of the region, or
        farthest beyond it, and ``weakest`` is the cell that decides. ``p`` is adjusted for all
        claims (Holm), and null where the numbers are exact. What is not known is null.
        """
        return to_frame(self._native.table("claims"), kind)

    def tuned(self, kind: Kind = "polars") -> Any:
        """What ``[tune]`` selected, one row for each algorithm at each point of the grid.

        ``value``, ``low`` and ``high`` are the mean over fresh runs and its 95 % interval, and
        ``runs`` is the number of these runs; ``gain`` says how many times larger the mean is with
        one value for all algorithms.

        Raises
        ------
        ExactfedError
            If the manifest tunes nothing.
        """
        native = self._native.tuned()
        if native is None:
            raise ExactfedError(f"error: {self.experiment}: its manifest has no [tune]")
        return to_frame(native, kind)

    def frontier(self, kind: Kind = "polars") -> Any:
        """Every point of the manifest's frontiers, as in ``frontier.csv``."""
        return to_frame(self._native.table("frontier"), kind)

    def ranking(self, kind: Kind = "polars") -> Any:
        """Which algorithm ranks first, one row for each point of the grid.

        ``value`` is the smallest mean, ``ratio`` says how many times larger that of ``next`` is,
        with the 95 % interval from ``low`` to ``high``; ``separation`` is ``larger`` where that is
        significant after Holm's correction, otherwise ``unclear`` or ``equal``. ``runs`` is the
        number of runs of the best; if the manifest has several ``instances``, the column of this
        name is their number, and the mean over the runs on each is one number of the sample.
        """
        return to_frame(self._native.table("ranking"), kind)

    def failures(self, kind: Kind = "polars") -> Any:
        """The cells that failed or are damaged, with the reasons."""
        return to_frame(self._native.failures(), kind)

    def digests(self) -> dict[str, str]:
        """The digest of each cell that has results, by its id."""
        return dict(self._native.digests())

    def verify(
        self,
        sample: int | None = 20,
        *,
        seed: int = 0,
        threads: int | None = None,
        run_code: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    ) -> Verification:
        """Run a sample of the stored cells again (all with ``None``) and compare the bits.

        Cached theory is computed again, too. Results run no code by themselves: cells of an
        algorithm that this process has not defined are left out and listed in the text.
        ``run_code`` names files of Python that define it. Nothing of them runs but what the hash
        in the ids of these cells covers (docs/EXTENDING.md).
        """
        if isinstance(run_code, bool):
            raise ExactfedError(
                "error: run_code must name the files that define the algorithms, such as "
                'run_code="momentum.py": results do not choose which code is run'
            )
        files = [run_code] if isinstance(run_code, (str, os.PathLike)) else list(run_code)
        return Verification(*self._native.verify(sample, seed, threads, files))

    @property
    def figures(self) -> list[str]:
        """The ids of the figures that the page shows."""
        return self._native.figures()

    def plot(
        self,
        figure: str | None = None,
        *,
        ax: Axes | Sequence[Axes] | None = None,
        x: str | None = None,
        y: str | None = None,
        width: str | float = "text",
        height: float | None = None,
        legend: bool = True,
    ) -> Figure:
        """Draw a figure with matplotlib: the values, colours, lines and markers of the page.

        Parameters
        ----------
        figure
            One of :attr:`figures`; by default the first.
        ax
            Axes to draw into, one for each panel; by default those of a new figure.
        x, y
            Other quantities for the axes, named as in manifests: ``"local-steps"``, ``"gradients"``
            and the other costs; or a setting for ``x``, over which the last errors are drawn.
            Without ``figure``, the cells of the last run are drawn, in one panel.
        width
            ``"column"`` (3.25 in) or ``"text"`` (6.75 in) of a paper with two columns, a length
            such as ``"89mm"``, or inches.
        height
            Height of a new figure in inches, with the legend; by default as high as its panels and
            its legend need. If they need more, a ExactfedWarning says how high the figure is.
        legend
            Whether to draw the legend.

        Raises
        ------
        ManifestError
            If the quantities are not recorded.

        Warns
        -----
        ExactfedWarning
            If curves or points are left out, with their names and numbers: runs have diverged, an
            algorithm has no setting ``x``, a value has no place on the axes, or the figure has so
            many cells (more than 100 curves or 1000 points) that it shows a sample.
        """
        from ._plot import draw

        data = self._figure(figure, x, y)
        if data["left_out"]:
            missing = "; ".join(data["left_out"])
            text = f'the figure "{data["id"]}" leaves out {missing}'
            warnings.warn(text, ExactfedWarning, stacklevel=2)
        inches = _native.figure_inches(width) if isinstance(width, str) else float(width)
        return draw(data, ax=ax, width=inches, height=height, legend=legend)

    def _figure(self, figure: str | None, x: str | None, y: str | None) -> dict[str, Any]:
        keys = {"x": x, "y": y}
        changes = {key: text.replace("_", "-") for key, text in keys.items() if text is not None}
        if not changes:
            known = self.figures
            if not known:
                raise ExactfedError(f"error: {self.experiment}: the page has no figure")
            text = self._native.figure(figure or known[0])
            if text is None:
                names = ", ".join(known)
                raise ExactfedError(f'error: there is no figure "{figure}" (allowed: {names})')
            return dict(json.loads(text))
        if figure is not None:
            paths = dict(self._native.figure_paths())
            if figure not in paths:
                names = ", ".join(paths)
                raise ExactfedError(
                    f'error: "{figure}" is no figure with other quantities (allowed: {names})'
                )
            sets = [f"{paths[figure]}.{key}={json.dumps(text)}" for key, text in changes.items()]
            text = self._native.other_figure(figure, sets)
        else:
            is_cost = changes.get("x") is None or _native.is_quantity(changes["x"])
            kind = "convergence" if is_cost else "scaling"
            text = self._only_figure(kind, changes)
            if text is not None and json.loads(text)["needs_linear_axis"]:
                text = self._only_figure(kind, {**changes, "scale-x": "linear"})
        if text is None:
            raise ExactfedError(f"error: {self.experiment}: there is nothing to draw")
        return dict(json.loads(text))

    def _only_figure(self, kind: str, keys: dict[str, str]) -> str | None:
        """A figure of this kind with these keys in place of the manifest's figures, as JSON."""
        lines = [f"{key} = {json.dumps(text)}" for key, text in keys.items()]
        entry = ", ".join(['id = "plot"', *lines])
        # A manifest may have written its figures in any form of TOML, which an override replaces.
        return self._native.other_figure("plot", [f"figure={{ {kind} = [{{ {entry} }}] }}"])

    def report(
        self,
        out: str | os.PathLike[str] = "reports",
        formats: Iterable[str] = ("html", "md"),
        *,
        figure_width: str = "text",
    ) -> Path:
        """Write the reports of the results folder, as ``exactfed report`` does.

        ``formats`` are any of ``html``, ``md``, ``latex``, ``pdf`` and ``png``. The path of this
        experiment's page is returned, or of its folder where no format has a page.

        Raises
        ------
        ExactfedError
            If the page cannot be written. Other experiments of the folder that cannot be reported
            are a warning.

        Warns
        -----
        ExactfedWarning
            For each claim that did not end as its manifest expects.
        """
        formats = list(formats)
        inches = _native.figure_inches(figure_width)
        failed, contradictions = self._native.report(out, formats, inches)
        for name, reason in failed:
            text = f"{name} cannot be reported: {reason}"
            if name == self.experiment:
                raise ExactfedError(f"error: {text}")
            warnings.warn(text, ExactfedWarning, stacklevel=2)
        for text in contradictions:
            warnings.warn(text, ExactfedWarning, stacklevel=2)
        folder = Path(out) / self.experiment
        pages = [f"report.{kind}" for kind in ("html", "md") if kind in formats]
        return folder / pages[0] if pages else folder


def load(
    results: str | os.PathLike[str] = "results",
    experiment: str | None = None,
) -> Results:
    """Open the results of an experiment in a results folder.

    Raises
    ------
    ExactfedError
        If the folder has several experiments and none is named (the text lists them), has none of
        this name, or was written by a version with another schema.
    """
    return Results(NativeResults(results, experiment), Path(results))
