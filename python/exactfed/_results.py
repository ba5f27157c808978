"""Results of experiments."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._errors import ExactfedError, ExactfedWarning, ManifestError
from ._frames import Kind, to_frame
from ._manifest import manifest_name
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
    """The results of an experiment, as it was last run; made by :func:`run` and :func:`load`.

    They can be pickled, so that a task of joblib, Dask or multiprocessing can return them. A pickle
    has the manifest and the path of the results folder, and not the numbers: where it is unpickled,
    the folder must be at the same path, or this is an ExactfedError.

    Attributes
    ----------
    path
        The folder of the results.
    """

    def __init__(self, native: NativeResults, path: Path) -> None:
        self._native, self.path = native, path
        self._told_of_edges = False

    def __reduce__(self) -> tuple[Callable[[Path, str], Results], tuple[Path, str]]:
        # Processes may differ in their working directories.
        return _reopened, (self.path.absolute(), self._native.text())

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

        Of a claim on several cells, numbers are those of the cell that is nearest to the end of
        the region, or farthest beyond it. What is not known is null.

        Columns
        -------
        claim, statement, source
            The id, the sentence and the source of the claim.
        verdict, expected
            ``supported``, ``refuted``, ``inconclusive`` or ``not tested``, and what the manifest
            expects.
        as_expected
            Whether the verdict does not contradict what is expected.
        formula
            What is tested.
        value, low, high
            The estimate and the ends of its 95 % interval.
        region_low, region_high
            The ends of the region in which the claim holds.
        p
            The p-value after Holm's correction for all claims; null where the numbers are exact.
        replicates, tested
            The replicates, and the cells on which the claim is tested.
        nearest, weakest
            The cell of the numbers, and the cell that decides.
        """
        return to_frame(self._native.table("claims"), kind)

    def tuned(self, kind: Kind = "polars") -> Any:
        """What ``[tune]`` selected, one row for each algorithm at each point of the grid.

        Columns
        -------
        label
            The label of the algorithm.
        <setting>
            A column for each setting that distinguishes points of the grid, then one for each
            tuned setting with the selected value, an integer if all its candidates are written as
            whole numbers.
        at_edge
            Where the selected values are at the edge of what was tried, in words.
        tuning_value
            The mean of the runs by which they were selected.
        value, low, high
            The mean over fresh runs with the selected values, and its 95 % interval.
        runs
            The number of fresh runs.
        candidates, diverged, stopped
            The number of candidates, of those of which a run diverged, and of those that were
            stopped after their first runs.
        gain, gain_low, gain_high
            How many times larger the mean is with the values that are best for all algorithms
            together, and the 95 % interval of this ratio; of an accuracy, how many times larger
            the mean error rate is, 1 minus the accuracy.

        Raises
        ------
        ExactfedError
            If the manifest tunes nothing.

        Warns
        -----
        ExactfedWarning
            If a selected candidate is at the edge of what was tried; once, here or in
            :meth:`ranking`.
        """
        native = self._native.table("tuned")
        if native is None:
            raise ExactfedError(f"error: {self.experiment}: its manifest has no [tune]")
        self._tell_of_edges()
        return to_frame(native, kind)

    def _tell_of_edges(self) -> None:
        native = None if self._told_of_edges else self._native.table("tuned")
        self._told_of_edges = True
        rows = [] if native is None else to_frame(native).select("label", "at_edge").rows()
        edges = list(dict.fromkeys(f"{label}: {edge}" for label, edge in rows if edge))
        if edges:
            text = (
                "a better candidate may lie beyond the edge of what was tried; widen the range or "
                f"the values in [tune] ({'; '.join(edges[:6])}{'; …' if edges[6:] else ''})"
            )
            warnings.warn(text, ExactfedWarning, stacklevel=3)

    def frontier(self, kind: Kind = "polars") -> Any:
        """Every point of the manifest's frontiers, one row each.

        The columns are those of ``frontier.csv``, which docs/FORMAT.md describes.
        """
        return to_frame(self._native.table("frontier"), kind)

    def ranking(self, kind: Kind = "polars", *, all: bool = False) -> Any:
        """Which algorithm ranks first, one row for each point of the grid.

        With ``all=True`` there is one row for each algorithm at each point, from the best to the
        last. Means are those of the quantity that the manifest ranks by: ``metric`` of ``[tune]``,
        or else ‖θ − θ*‖². The best has the smallest mean, or the largest if the quantity is an
        accuracy; ratios then are of the error rate, 1 minus the accuracy. If the manifest has
        several instances, the ranking is by the geometric mean over them, and ``value`` is the
        arithmetic mean: the best algorithm may then have a larger ``value`` than another one.

        Columns
        -------
        <setting>
            A column for each setting that distinguishes points of the grid.
        best, leaders
            The algorithm with the best mean, and all that are not separated from it.
        value
            The mean of the best.
        runs, instances
            The number of runs of the best, and of instances if the manifest has several: the mean
            over the runs on each instance is then one number of the sample.
        next
            The algorithm with the next mean.
        ratio, low, high
            How many times larger that mean is, or of an accuracy that mean error rate, and the 95 %
            interval of this ratio; with several instances it is the geometric mean of their ratios.
            It is infinite where only the mean of the best is zero to rounding, and null where both
            are.
        separation
            ``larger`` where the ratio is significantly above 1 after Holm's correction, ``equal``
            where the means are equal but for rounding, ``both zero`` where both are zero to
            rounding, otherwise ``unclear``.
        diverged, ended
            The algorithms of which runs diverged, or ended before the cost at which the manifest
            compares; they are not ranked.

        Columns with ``all=True``
        -------------------------
        <setting>
            A column for each setting that distinguishes points of the grid.
        rank
            1 for the best; null for an algorithm that is not ranked.
        name, label, cell
            The algorithm with the settings that distinguish it at this point, its label, and the
            id of its cell.
        value, low, high
            The mean and its 95 % interval.
        runs, instances
            As above, of this algorithm.
        ratio, ratio_low, ratio_high
            How many times larger the mean, or of an accuracy the mean error rate, is than that of
            the best, with the 95 % interval of this ratio; null for the best. A pair of algorithms
            is compared on the same draws, so that the ratio may be clear where the intervals of the
            means overlap.
        separation
            ``best``; ``larger``, ``unclear``, ``equal`` or ``both zero`` as above; or why it is not
            ranked: ``diverged``, ``ended``, ``unreached`` where it is ranked by a cost until a
            target that a run does not reach, or ``above start`` where every mean of the point is
            above the error at the start.
        leads
            Whether it is the best or not separated from it.
        reached, median, median_low, median_high
            Where the manifest compares at a target (``at = { until = … }``): the number of runs
            that come to it, and the median over all runs of what they have paid by then, in which
            a run that does not come to it counts as one that pays more than any other. The 95 %
            interval is by order statistics, and null for fewer than six runs.

        Warns
        -----
        ExactfedWarning
            If there is nothing to rank, or, as in :meth:`tuned`, candidates are at an edge.
        """
        self._tell_of_edges()
        native = self._native.table("ranking_of_all" if all else "ranking")
        if len(native) == 0:
            text = "there is nothing to rank: no point of the grid has results of two algorithms"
            warnings.warn(text, ExactfedWarning, stacklevel=2)
        return to_frame(native, kind)

    def failures(self, kind: Kind = "polars") -> Any:
        """The cells that failed or are damaged.

        Columns
        -------
        cell, label
            The id of the cell and the label of its algorithm.
        reason
            Why it has no results.
        """
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
        hue: str | None = None,
        col: str | None = None,
        style: str | None = None,
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
            Other quantities for the axes, named as in manifests, frames or pages:
            ``"local-steps"``, ``"bytes"`` or ``"bytes-sent"`` and the other costs; or a setting
            for ``x``, over which the last errors are drawn. Without ``figure``, all cells of the
            last run are drawn, in one panel; of an experiment with ``[tune]`` the selected ones.
            Bands of these plots are the mean ± the standard deviation.
        hue, col, style
            Settings, or ``"label"`` for the algorithm, that these cells are drawn by:
            one colour, one panel, or one dash pattern and marker for each value. Curves that agree
            in all of these look alike. With ``style`` alone, colours show the algorithm.
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
        ExactfedError
            If there is no figure or no setting of this name; the text lists those that there are.

        Warns
        -----
        ExactfedWarning
            If curves or points are left out, with their names and numbers: runs have diverged, an
            algorithm has no setting ``x`` or none of the cost ``x``, a value has no place on the
            axes, or the figure has so many cells (more than 100 curves or 1000 points) that it
            shows a sample.
        """
        from ._plot import draw

        looks = {"hue": hue, "col": col, "style": style}
        looks = {key: name for key, name in looks.items() if name is not None}
        if looks and figure is not None:
            raise ExactfedError(
                f"error: {', '.join(looks)}: only plots of all cells have this: "
                f'leave out "{figure}"'
            )
        data = self._figure(figure, x, y, anew=bool(looks))
        if looks:
            from ._looks import by_settings

            by_settings(data, x, **looks)
        if data["left_out"]:
            missing = "; ".join(data["left_out"])
            text = f'the figure "{data["id"]}" leaves out {missing}'
            warnings.warn(text, ExactfedWarning, stacklevel=2)
        inches = _native.figure_inches(width) if isinstance(width, str) else float(width)
        return draw(data, ax=ax, width=inches, height=height, legend=legend)

    def _figure(
        self, figure: str | None, x: str | None, y: str | None, anew: bool = False
    ) -> dict[str, Any]:
        keys = {"x": x, "y": y}
        changes = {key: manifest_name(text) for key, text in keys.items() if text is not None}
        if not changes and not anew:
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
            is_cost = changes.get("x") is None or _native.quantity(changes["x"])
            kind = "convergence" if is_cost else "scaling"
            try:
                text = self._only_figure(kind, changes)
            except ManifestError as error:
                is_about_x = any(found.key.endswith(".x") for found in error.diagnostics)
                if x is not None and not is_cost and is_about_x:
                    error.args = (f"{error}\n{_costs_for(x)}",)
                raise
            if x is not None and not is_cost and text is not None:
                _refuse_other_name(x, text)
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

        ``formats`` are any of ``html``, ``md``, ``latex``, ``pdf``, ``png`` and ``svg``. The path
        of this experiment's page is returned, or of its folder where no format has a page.

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


# What other programs call the costs.
_OTHER_NAMES = {
    "round": "communications",
    "rounds": "communications",
    "communication-rounds": "communications",
    "iterations": "local-steps",
    "steps": "local-steps",
    "time": "seconds",
    "wall-clock": "seconds",
}


def _cost_meant_by(x: str) -> str | None:
    """The cost that other programs call so."""
    return _OTHER_NAMES.get(manifest_name(x).lower())


def _costs_for(x: str) -> str:
    """Which costs the x axis may have in place of a setting, for the end of a message."""
    meant = _cost_meant_by(x)
    hint = f'did you mean "{meant}"? ' if meant else ""
    return f"  = help: {hint}costs are on this axis too: {', '.join(_native.costs())}"


def _refuse_other_name(x: str, text: str) -> None:
    """Raise if ``x`` is another name of a cost, and a setting with one value in a figure (JSON)."""
    plot = json.loads(text)["body"].get("plot") or {}
    curves = [curve for panel in plot.get("panels", []) for curve in panel]
    places = {place for curve in curves for place in curve["x"]}
    if _cost_meant_by(x) is not None and len(places) == 1:
        raise ExactfedError(f'error: x = "{x}" has one value in all cells\n{_costs_for(x)}')


def _reopened(path: Path, text: str) -> Results:
    """The results that were pickled: those in this folder of the experiment in the text."""
    return Results(NativeResults.reopen(path, text), path)


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
