//! What the pages of a `diff` show, in HTML and Markdown: the order of the changes, their drawings, links and limits of
//! size.

use super::{json, pair, ran, recorded, reported, rewrite, scaled, verdicts, write_record};
use crate::support::Bench;
use crate::support::markup::{Tag, tags};
use exactfed::chart::style::color_name;
use exactfed::compare::SideRuns;
use exactfed::evidence::Color;
use exactfed::plan::CellId;
use exactfed::trace::TraceDigest;

#[test]
fn pages_are_escaped_and_whole_and_the_same_twice() {
    let bench = pair(&[("Small <b>", "<script>"), ("0.05", "0.09")]);
    let page = |format: &str| bench.run(&["diff", "a", "b", "--format", format]).out;
    let html = page("html");
    assert_eq!(html, page("html"));
    assert!(!html.contains("<script") && !html.contains("http:") || html.contains("w3.org"));
    let outside = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http:") && !outside.contains("https:") && !html.contains("NaN"));
    assert_eq!(html.matches("<figure>").count(), 3, "one figure a cell");
    assert_eq!(html.matches("<svg ").count(), 6, "two charts a cell");
    let md = page("md");
    assert_eq!(md, page("md"));
    assert!(md.contains("Fed \\| Avg") && md.contains("<details"), "{md}");
    let (first, folded) = md.split_once("<details").unwrap();
    assert_eq!(bars_of_fed_rows(first), [6], "{md}");
    assert_eq!(bars_of_fed_rows(folded), [10, 10], "{md}");
    bench.run(&["diff", "a", "b", "--format", "md", "--out", "diff.md"]);
    assert_eq!(bench.read("diff.md"), md);
}

/// How many bars that are not escaped each row of `Fed | Avg` has in a table of Markdown: one more than columns.
fn bars_of_fed_rows(markdown: &str) -> Vec<usize> {
    let rows = markdown.lines().filter(|line| line.starts_with("| ") && line.contains("Fed"));
    rows.map(|row| row.replace("\\|", "").matches('|').count()).collect()
}

/// A bench whose results in `b` have a cell that is a thousand times worse than in `a`, one that is a hundred times
/// better, and one whose runs contradict each other.
fn worse_better_and_undecided() -> Bench {
    let prox = "local-steps = 5\n\n[[algorithm.fedprox]]\nlabel = \"Prox\"\n\
                step-size = 0.05\nlocal-steps = 3\nproximal = 0.1\n";
    let bench = Bench::new();
    for side in ["a", "b"] {
        ran(&bench, side, &[("local-steps = [2, 5]", prox)], &[]);
    }
    rewrite(&bench, &|label, replicate, trace| {
        scaled("Scaffold", 1000.0)(label, replicate, trace);
        scaled("Prox", 0.01)(label, replicate, trace);
        scaled("Fed | Avg", [9.0, 0.3, 8.0, 0.2, 7.0, 0.1][replicate])(label, replicate, trace);
    });
    bench
}

/// The text after each `open`, up to the next `close`.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    text.split(open).skip(1).map(|rest| rest.split(close).next().unwrap()).collect()
}

#[test]
fn pages_begin_with_the_largest_changes() {
    let bench = worse_better_and_undecided();
    let found = json(&bench, "a", "b");
    let names: Vec<&str> = verdicts(&found).iter().map(|(_, name)| *name).collect();
    assert_eq!(names, ["Scaffold", "Fed | Avg", "Prox"], "by verdict");
    let html = bench.run(&["diff", "a", "b", "--format", "html"]).expect(1).out;
    let names = between(&html, "<h3 class=\"family-", "</h3>");
    assert_eq!(
        names,
        ["2\">Scaffold", "5\">Prox", "0\">Fed | Avg"],
        "changes before the undecided"
    );
    let title = "3 of 3 cells changed: the error of <span class=\"family-2\">Scaffold</span> rose 1\u{a0}000-fold, the error of <span class=\"family-5\">Prox</span> fell 100-fold";
    assert_eq!(between(&html, "<h1>", "</h1>"), [title]);
    let order = ["<h1>", "Fails:", "Largest changes", "<figure>", "Changed cells (", "Claims"];
    let places: Vec<usize> = order.iter().map(|mark| html.find(mark).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
    let md = bench.run(&["diff", "a", "b", "--format", "md"]).expect(1).out;
    let (first, folded) = md.split_once("<details").unwrap();
    let scaffold = first.find("| Scaffold |").unwrap();
    assert!(scaffold < first.find("| Prox |").unwrap() && !first.contains("| Fed"), "{md}");
    assert!(folded.contains("Fed \\| Avg"), "{md}");
}

/// The label, the colour and the dash pattern of each series of a drawing.
fn drawn(svg: &str) -> Vec<[String; 3]> {
    let mut series = tags(svg);
    series.retain(|tag| tag.value("class").is_some_and(|class| class.starts_with("series ")));
    let attributes = ["data-label", "data-color", "stroke-dasharray"];
    let values_of =
        |tag: &Tag<'_>| attributes.map(|name| tag.value(name).unwrap_or_default().to_owned());
    series.iter().map(values_of).collect()
}

#[test]
fn before_is_grey_and_dashed_under_after_in_its_familys_colour() {
    let bench = worse_better_and_undecided();
    let html = bench.run(&["diff", "a", "b", "--format", "html"]).expect(1).out;
    for (figure, family) in between(&html, "<figure>", "</figure>").iter().zip([2, 5, 0]) {
        let [curves, ratio] = &between(figure, "<svg ", "</svg>")[..] else { panic!("{figure}") };
        let [before, after] = &drawn(curves)[..] else { panic!("{curves}") };
        assert_eq!((&*before[0], &*before[1], &*after[0]), ("before", "none", "after"));
        let color = color_name(Color::of_family(family));
        assert_eq!(after[1], color, "the colour of the family");
        assert!(!before[2].is_empty() && after[2].is_empty(), "{before:?} {after:?}");
        let [ratio, one] = &drawn(ratio)[..] else { panic!("{ratio}") };
        assert_eq!((&*ratio[0], &ratio[1], &*one[0]), ("ratio", &after[1], "no change"));
    }
}

#[test]
fn what_did_not_change_is_one_line() {
    let bench = pair(&[]);
    let page_with = |part: &str| {
        let html = bench.run(&["diff", "a", "b", "--format", "html"]).out;
        assert!(html.contains(part), "{html}");
        html
    };
    let html = page_with("<h1>No cell changed</h1>");
    assert!(html.contains(">3 of 3 cells are bit-identical. No failures.<"), "{html}");
    assert!(!html.contains("<figure") && !html.contains("Largest changes"), "{html}");
    rewrite(&bench, &|label, replicate, trace| {
        scaled("Scaffold", [2.0, 0.5, 2.1, 0.4, 1.9, 0.6][replicate])(label, replicate, trace);
    });
    page_with("<h1>1 of 3 cells changed, none of them significantly</h1>");
    page_with("2 of 3 cells are bit-identical.");
    // A cell that did not change is damaged.
    let mut packs = bench.cells("b/small");
    packs.retain(|pack| {
        !String::from_utf8_lossy(&bench.read_bytes(pack)).contains("\"label\":\"Scaffold")
    });
    bench.damage(&packs[0]);
    let html = page_with("has no sound results</h1>");
    let lost = html.find("Cells without sound results").unwrap();
    assert!(lost < html.find("<figure").unwrap() && html.contains("1 of 3 cells is bit-identical"));
}

#[test]
fn changes_link_to_the_page_of_their_experiment() {
    let bench = reported();
    ran(&bench, "b", &[("0.05", "0.09")], &[]);
    bench.run(&["report", "b", "--out", "other", "--quiet"]);
    let links = |out: &[&str]| {
        let common = ["diff", "pages", "other", "--format", "html", "--fail-on", "none"];
        let printed = bench.run(&[&common[..], out].concat()).expect(0).out;
        let page = out.last().map_or(printed, |file| bench.read(file)).replace("&#x2f;", "/");
        between(&page, "<a href=\"", "\"").into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(links(&["--out", "diff.html"]), ["other/small/report.html"; 3]);
    assert_eq!(links(&["--out", "other/diff.html"]), ["small/report.html"; 3]);
    assert!(links(&["--out", "pages/diff.html"]).is_empty(), "the page is in no folder below");
    assert!(links(&[]).is_empty(), "there is no file that the link could be relative to");
}

#[test]
fn markdown_fits_a_comment() {
    let bench = reported();
    let mut kept = recorded(&bench);
    let cell = kept.cells.values().next().unwrap().clone();
    for side in ["x", "y"] {
        kept.cells.clear();
        for i in 0..1500 {
            let mut cell = cell.clone();
            let SideRuns::Done { digest, .. } = &mut cell.runs else { panic!() };
            *digest = TraceDigest::of(side);
            kept.cells.insert(CellId::of(&i.to_string()), cell);
        }
        write_record(&bench, side, &kept);
    }
    let output = bench.run(&["diff", "x", "y", "--format", "md"]).expect(0);
    assert!(output.out.chars().count() <= 65_536);
    assert!(output.out.contains("1500 same final errors"), "{}", &output.out[..400]);
    assert!(output.out.contains("of 1500 rows are left out: a comment holds 65 536 characters"));
}
