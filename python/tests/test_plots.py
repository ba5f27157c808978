"""Plots, pages, notebooks and diffs."""

from __future__ import annotations

import csv
from pathlib import Path

import exactfed as ef
import numpy as np
import pytest
from conftest import MANIFEST, ROOT
from matplotlib import pyplot
from matplotlib.colors import to_hex


def rows(file: Path) -> list[dict[str, str]]:
    with file.open() as lines:
        return list(csv.DictReader(lines))


@pytest.fixture(scope="module")
def page(results: ef.Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return results.report(tmp_path_factory.mktemp("reports"), ["html", "md", "pdf"])


def test_curves_are_those_of_the_page(results: ef.Results, page: Path) -> None:
    assert page.name == "report.html" and page.is_file()
    assert results.figures[0] == "curves" and {"over-gamma", "map"} <= set(results.figures)
    for name in ("curves", "over-gamma"):
        expected: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for row in rows(page.parent / "figures" / f"{name}.csv"):
            point = (float(row["x"]), float(row["y"]))
            expected.setdefault((row["panel"], row["series"]), []).append(point)
        figure = results.plot(name)
        found = {}
        for axes in figure.axes:
            for line in axes.lines:
                found[axes.get_title(loc="left"), line.get_label()] = np.asarray(line.get_xydata())
        assert found.keys() == expected.keys()
        for key, points in expected.items():
            drawn = ~np.isnan(found[key][:, 1])
            assert found[key][drawn].tolist() == np.array(points)[drawn].tolist(), key
        svg = (page.parent / "figures" / f"{name}.svg").read_text().lower()
        for line in figure.axes[0].lines:
            color = to_hex(line.get_color())
            rgb = ",".join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))
            assert color in svg or rgb in svg.replace(" ", ""), color
        pyplot.close(figure)


def test_predictions_and_bands_are_drawn(results: ef.Results) -> None:
    figure = results.plot("curves")
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert any(label.startswith("infinite replicates") or "for" in label for label in labels)
    assert figure.axes[0].collections, "bands"
    styles = {line.get_linestyle() for line in figure.axes[0].lines}
    assert len(styles) > 1, "predictions are dashed"
    pyplot.close(figure)


def test_bands_over_instances_are_those_of_the_page(tmp_path: Path) -> None:
    """Of several instances with several runs each, bands are over the instances."""
    manifest = ROOT / "tests" / "manifests" / "instances.toml"
    results = ef.run(manifest, out=tmp_path / "results")
    page = results.report(tmp_path / "reports", ["html"])
    for name in ("std", "sem", "ci95", "quantiles"):
        bands: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for row in rows(page.parent / "figures" / f"{name}.csv"):
            assert row["n"] == "5", "instances, not their 20 runs"
            ends = (float(row["low"]), float(row["high"]))
            bands.setdefault(row["panel"], {}).setdefault(row["series"], []).append(ends)
        figure = results.plot(name)
        for axes in figure.axes:
            wanted = bands[axes.get_title(loc="left")]
            bottom, top = axes.get_ylim()
            assert len(axes.collections) == len(wanted) == 2
            for collection, ends in zip(axes.collections, wanted.values(), strict=True):
                drawn = {float(y) for y in collection.get_paths()[0].vertices[:, 1]}
                clipped = np.clip(np.array(ends), bottom, top).ravel()
                assert set(clipped.tolist()) <= drawn, name
        pyplot.close(figure)


def test_maps_are_those_of_the_page(results: ef.Results, page: Path) -> None:
    figure = results.plot("map")
    assert len(figure.axes[0].patches) >= len(rows(page.parent / "figures" / "map.csv")) == 4
    pyplot.close(figure)


def test_sizes_and_axes(results: ef.Results, tmp_path: Path) -> None:
    widths = {"column": 3.25, "text": 6.75, "89mm": 89 / 25.4, 5: 5.0}
    for width, inches in widths.items():
        figure = results.plot(width=width)
        assert figure.get_size_inches()[0] == pytest.approx(inches)
        figure.savefig(tmp_path / "figure.pdf")
        pyplot.close(figure)
    own, axes = pyplot.subplots(1, 2)
    assert results.plot("curves", ax=axes) is own and axes[0].lines
    with pytest.raises(ValueError, match="2 panels"):
        results.plot("curves", ax=axes[0])
    pyplot.close(own)
    with pytest.raises(ValueError, match="column, text"):
        results.plot(width="wide")
    with pytest.raises(ef.ExactfedError, match=r'no figure "other" .*curves'):
        results.plot("other")


def test_other_quantities(results: ef.Results) -> None:
    figure = results.plot("curves", x="local_steps")
    assert "local steps" in figure.axes[0].get_xlabel()
    assert max(figure.axes[0].lines[0].get_xdata()) == 2000
    over = results.plot(x="local-steps", y="sq-error")
    assert len(over.axes) == 1
    setting = results.plot(x="step-size")
    assert set(setting.axes[0].lines[0].get_xdata()) == {0.02, 0.05}
    with pytest.raises(ef.ManifestError, match="nonsense"):
        results.plot("curves", y="nonsense")
    pyplot.close("all")


def test_other_quantities_of_a_dict_with_figures(tmp_path: Path) -> None:
    """A dict has its figures on one line each, and a text may have them so too."""
    manifest = {
        "title": "Figures in a dict",
        "seed": 1,
        "replicates": 3,
        "problem": {
            "quadratic": {
                "dimension": 2,
                "clients": 4,
                "noise": 1.0,
                "spectrum": {"from": 0.5, "to": 1.0},
            }
        },
        "start": {"offset": 1.0},
        "budget": {"rounds": 20},
        "algorithm": {"fedavg": {"step-size": [0.05, 0.1], "local-steps": 4}},
        "figure": {
            "convergence": [{"id": "plot"}, {"id": "other", "x": "gradients"}],
            "scaling": {"id": "over-gamma", "x": "step-size"},
        },
    }
    results = ef.run(manifest, out=tmp_path / "results")
    over_setting = results.plot(x="step-size")
    assert set(over_setting.axes[0].lines[0].get_xdata()) == {0.05, 0.1}
    over_cost = results.plot(x="local-steps", y="sq-error")
    assert max(over_cost.axes[0].lines[0].get_xdata()) == 80
    pyplot.close("all")


@ef.algorithm("Heavy ball", kind="plot-heavy-ball")
def heavy_ball(clients, theta, gamma, H, momentum=0.9):  # type: ignore[no-untyped-def]
    velocity = np.zeros(clients.dim)
    while True:
        ends = clients.local_steps(theta, gamma, H)
        velocity = momentum * velocity + clients.mean(ends) - theta
        theta = theta + velocity
        yield theta


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_a_logarithmic_axis_begins_at_the_first_point_that_is_on_it(
    tmp_path: Path, scale: str
) -> None:
    """Costs begin at 0, where matplotlib would begin a line at the left edge."""
    text = MANIFEST[: MANIFEST.index("[[figure")]
    text += f'[[figure.convergence]]\nid = "cost"\nx = "communications"\nscale-x = "{scale}"\n'
    results = ef.run(text, out=tmp_path / "results", replicates=2)
    page = results.report(tmp_path / "reports", ["html"])
    expected: dict[str, list[list[float]]] = {}
    for row in rows(page.parent / "figures" / "cost.csv"):
        point = [float(row["x"]), float(row["y"])]
        if scale == "linear" or point[0] > 0:
            expected.setdefault(row["series"], []).append(point)
    [axes] = results.plot("cost").axes
    assert axes.get_xscale() == scale and axes.get_yscale() == "log"
    for line in axes.lines:
        values = np.asarray(line.get_xydata())
        drawn = values[~np.isnan(values).any(axis=1)]
        assert drawn.tolist() == expected[line.get_label()], line.get_label()
        assert (drawn[0, 0] > 0) == (scale == "log")
    assert len(axes.lines) == 8
    pyplot.close("all")


def test_what_is_not_above_0_is_not_on_a_logarithmic_axis(results: ef.Results) -> None:
    from exactfed._plot import draw

    data = results._figure("curves", None, None)
    for panel in data["body"]["plot"]["panels"]:
        for series in panel:
            series["y"][1], series["y"][2] = 0.0, -1.0
    for axes in draw(data, ax=None, width=6.0, height=None, legend=False).axes:
        assert axes.get_yscale() == "log"
        for line in axes.lines:
            y = np.asarray(line.get_ydata(), dtype=float)
            assert np.isnan(y[1:3]).all() and y[0] > 0
    pyplot.close("all")


def test_what_a_plot_leaves_out_is_said(tmp_path: Path) -> None:
    entries = """
[[algorithm.fedavg]]
step-size = [0.05, 0.1]
local-steps = 10

[[algorithm.plot-heavy-ball]]
step-size = [0.05, 0.1, 50.0]
local-steps = 10
momentum = [0.0, 0.5]
"""
    text = MANIFEST.split("[[algorithm")[0].replace("replicates = 8", "replicates = 2") + entries
    results = ef.run(text, out=tmp_path / "results")
    with pytest.warns(ef.ExactfedWarning) as caught:
        figure = results.plot(x="momentum")
    (warning,) = caught
    assert warning.filename == __file__
    said = str(warning.message)
    assert (
        "2 of 5 curves without the setting `momentum` (FedAvg, γ = 0.05; FedAvg, γ = 0.1)" in said
    )
    assert "1 of 5 curves with runs that diverged (Heavy ball, γ = 50)" in said
    drawn = [line for line in figure.axes[0].lines if len(line.get_xdata())]
    assert [set(line.get_xdata()) for line in drawn] == [{0.0, 0.5}] * 2, "0 has its place"
    own = text + '[[figure.scaling]]\nid = "logarithmic"\nx = "momentum"\n'
    with pytest.warns(ef.ExactfedWarning, match="2 of 8 points, .* not above 0"):
        ef.run(own, out=tmp_path / "results").plot("logarithmic")
    with pytest.warns(ef.ExactfedWarning, match="60 of 108 cells, since"):
        sizes = np.linspace(0.01, 0.05, 102).tolist()
        many = ef.run(text, out=tmp_path / "many", set={"algorithm.fedavg.step-size": sizes})
        many.plot(x="gradients", y="sq-error")
    pyplot.close("all")


def test_theory_that_there_is_none_of_is_said(tmp_path: Path) -> None:
    text = """
    title = "t"
    seed = 1
    replicates = 2
    problem.logistic = { dimension = 2, records = 10, clients = 2, l2 = 0.1, data = DATA }
    start.zero = true
    budget.rounds = 5
    algorithm.fedavg = [{ step-size = 0.1, local-steps = 2 }]
    figure.convergence = [{ id = "curves", theory = ["exact-moments"] }]
    claim.matches = [{ id = "m", statement = "s", CLAIM }]
    """.replace("CLAIM", 'of = {}, metric = "sq-error", prediction = "exact-moments", margin = 0.5')
    text = text.replace("DATA", "{ heterogeneous = { spread = 1.0, perturbation = 1.0 } }")
    results = ef.run(text, out=tmp_path / "results", name="m")
    why = "exact moments of 1 of 1 cell: the field of the problem is not linear"
    with pytest.warns(ef.ExactfedWarning, match=why):
        pyplot.close(results.plot())
    unknown = "nothing is known of the exact moments here: the field of the problem is not linear"
    with pytest.warns(ef.ExactfedWarning, match=rf"is not tested \(FedAvg: {unknown}\)"):
        page = results.report(tmp_path / "reports", ["md"])
    assert f"Not drawn: {why}." in page.read_text()
    with pytest.warns(ef.ExactfedWarning, match="there is nothing to rank"):
        assert len(results.ranking()) == 0


def test_a_cost_that_an_algorithm_does_not_have_is_said(tmp_path: Path) -> None:
    @ef.algorithm("Gradients alone", kind="plot-gradients-alone")
    def gradients(clients, theta, gamma, H):  # type: ignore[no-untyped-def]
        while True:
            theta = theta - gamma * clients.mean(clients.fields(theta))
            yield theta

    entries = "".join(
        f"[[algorithm.{kind}]]\nstep-size = 0.05\nlocal-steps = 10\n"
        for kind in ("fedavg", "plot-gradients-alone")
    )
    text = MANIFEST.split("[[algorithm")[0].replace("local-steps = 2000", "rounds = 20") + entries
    results = ef.run(text, out=tmp_path, replicates=2)
    with pytest.warns(ef.ExactfedWarning, match="1 of 2 curves where `local-steps` stays 0 .Grad"):
        figure = results.plot(x="local-steps")
    assert [line.get_label() for line in figure.axes[0].lines] == ["FedAvg"]
    pyplot.close("all")


@pytest.mark.filterwarnings("error")
def test_a_quantity_has_any_of_its_names(results: ef.Results) -> None:
    for names in [
        ("bytes", "bytes-sent", "bytes_sent", "bytes sent"),
        ("vectors-sent", "vectors_sent"),
    ]:
        figures = [results.plot(x=name, width="column") for name in names]
        ends = {max(figure.axes[0].lines[0].get_xdata()) for figure in figures}
        assert len(ends) == 1 and {f.axes[0].get_xlabel() for f in figures} == {
            names[0].split("-")[0] + " sent"
        }
    pyplot.close("all")


@pytest.mark.filterwarnings("error")
def test_colours_panels_and_dashes_show_settings(results: ef.Results) -> None:
    figure = results.plot(x="bytes", hue="step_size", style="local-steps", col="label")
    left, right = figure.axes
    assert [axes.get_title(loc="left") for axes in (left, right)] == ["FedAvg", "Scaffold"]
    assert left.get_xlim() == right.get_xlim() and left.get_ylim() == right.get_ylim()
    for axes in (left, right):
        looks = [(line.get_color(), line.get_linestyle()) for line in axes.lines]
        assert len(looks) == len(set(looks)) == 4
        assert len({color for color, _ in looks}) == len({dash for _, dash in looks}) == 2
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["γ = 0.02", "γ = 0.05", "H = 10", "H = 100"]

    by_algorithm = results.plot(style="local-steps")
    assert len({line.get_color() for line in by_algorithm.axes[0].lines}) == 2
    over = results.plot(x="step-size", hue="local-steps", style="label").axes[0]
    assert {tuple(line.get_xdata()) for line in over.lines} == {(0.02, 0.05)}
    both = results.plot(hue="label", style="label", col="local-steps")
    assert [text.get_text() for text in both.legends[0].get_texts()] == ["FedAvg", "Scaffold"]
    assert [axes.get_title(loc="left") for axes in both.axes] == ["H = 10", "H = 100"]
    with pytest.raises(ef.ExactfedError, match="allowed: label, step-size, local-steps"):
        results.plot(hue="noise")
    with pytest.raises(ef.ExactfedError, match=r"allowed: label, local-steps\)"):
        results.plot(x="step-size", col="step-size")
    with pytest.raises(ef.ExactfedError, match='leave out "curves"'):
        results.plot("curves", hue="label")
    pyplot.close("all")


@pytest.mark.filterwarnings("error")
def test_crowded_figures_are_readable_at_the_width_of_a_column(tmp_path: Path) -> None:
    figures = """
[[figure.convergence]]
id = "curves"

[[figure.convergence]]
id = "panels"
panels = ["local-steps", "step-size"]

[[figure.winners]]
id = "map"
x = "step-size"
y = "local-steps"
"""
    kinds = "".join(
        f"[[algorithm.{kind}]]\nlabel = {label!r}\n"
        "step-size = [0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05]\nlocal-steps = [10, 100]\n"
        for kind, label in [("fedavg", "FedAvg"), ("scaffold", "Scaffold as it was published")]
    )
    text = MANIFEST.split("[[algorithm")[0].replace("replicates = 8", "replicates = 2")
    results = ef.run(text + kinds + figures, out=tmp_path / "results")
    for name, width in [(name, w) for name in results.figures for w in ("column", "text", 1.6)]:
        figure = results.plot(name, width=width)
        figure.savefig(tmp_path / "figure.png")
        (legend,) = figure.legends
        below = legend.get_window_extent()
        assert below.x0 >= -1 and below.x1 <= figure.bbox.x1 + 1, (name, width)
        for axes in figure.axes:
            box = axes.get_window_extent()
            assert axes.get_tightbbox().y0 >= below.y1 - 1, (name, width)
            assert min(box.width, box.height) > 0.3 * figure.dpi, (name, width)
        pyplot.close(figure)
    with pytest.warns(ef.ExactfedWarning, match="height of 1 in has no room"):
        low = results.plot("panels", width="column", height=1.0)
    low.savefig(tmp_path / "figure.png")
    assert results.plot("panels", height=6.0).get_size_inches()[1] == pytest.approx(6.0)
    with pytest.raises(ValueError, match=r"width of 0.5 in"):
        results.plot(width=0.5)
    pyplot.close("all")


def test_notebooks_show_the_finding(results: ef.Results) -> None:
    html = results._repr_html_()
    assert "<svg" in html and "Scaffold ends below FedAvg" in html and "supported" in html
    assert "small" in repr(results)


def test_diffs(results: ef.Results, tmp_path: Path) -> None:
    same = ef.diff(results, results.path)
    assert same.verdict == "passes" and same.code == 0 and "bit-identical" in same.text
    assert same.frame().height == 0
    worse = ef.run(
        MANIFEST,
        out=tmp_path / "worse",
        name="small",
        set={"algorithm.fedavg.0.step-size": [0.04, 0.05]},
    )
    diff = ef.diff(results, worse)
    assert diff.verdict == "fails" and "iframe" in diff._repr_html_()
    changed = diff.frame()
    assert changed.height == 2 and set(changed["verdict"]) == {"worse"}
    assert (changed["low"] > 1).all() and (changed["ratio"] < changed["high"]).all()
    with pytest.raises(ef.ExactfedError, match="neither results"):
        (tmp_path / "empty").mkdir()
        ef.diff(results, tmp_path / "empty")
    with pytest.raises(ef.ExactfedError, match="fail-on"):
        ef.diff(results, results, fail_on=["nonsense"])


def test_costs_under_other_names_are_named(tmp_path: Path) -> None:
    # With a budget of local steps, cells would differ in their rounds.
    results = ef.run(MANIFEST.replace("local-steps = 2000", "rounds = 20"), out=tmp_path)
    for name, meant in [("rounds", "communications"), ("time", "seconds"), ("shoe_size", None)]:
        with pytest.raises(ef.ExactfedError) as caught:
            results.plot(x=name)
        text = str(caught.value)
        assert "costs are on this axis too: communications, local-steps" in text, text
        assert (f'did you mean "{meant}"?' in text) == (meant is not None), text
