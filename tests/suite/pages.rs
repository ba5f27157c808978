//! What the pages say, as snapshots, and what they must hold.

use crate::support::markup::tags;
use crate::support::{
    Bench, DIVERGING, GARNET, LOGISTIC, QUADRATIC, SMALL, edited, files_with, root,
};
use std::fs;

fn reported(name: &str) -> Bench {
    let bench = Bench::of_smoke(&[name]);
    bench.report();
    bench
}

/// More clients and heterogeneity than the base.
const WIDER: &[(&str, &str)] = &[
    ("dimension = 2, clients = 2", "dimension = 3, clients = 4"),
    ("to = 1.0", "to = 1.5"),
    ("noise = 0.1", "gradient-heterogeneity = 1.0, hessian-heterogeneity = 0.3, noise = 1.0"),
];

/// The page of the base with changes, and more at its end.
fn page_of(changes: &[(&str, &str)], more: &str) -> String {
    let bench = Bench::ran(&(edited(QUADRATIC, changes) + more));
    bench.report();
    bench.read("reports/m/report.md")
}

#[test]
fn markdown_of_a_page_with_divergence() {
    let bench = reported("diverging");
    insta::assert_snapshot!("diverging_md", bench.read("reports/smoke/diverging/report.md"));
    insta::assert_snapshot!("diverging_csv", bench.read("reports/smoke/diverging/summary.csv"));
    insta::assert_snapshot!("index_md", bench.read("reports/README.md"));
}

#[test]
fn markdown_of_a_page_with_theory() {
    let bench = reported("garnet");
    insta::assert_snapshot!("garnet_md", bench.read("reports/smoke/garnet/report.md"));
}

/// A page stands alone: nothing is fetched, everything it links is there.
#[test]
fn pages_are_whole() {
    let bench = reported("garnet");
    let unescaped = |page: &str| bench.read(page).replace("&#x2f;", "/");
    for page in ["index.html", "smoke/garnet/report.html"] {
        let text = unescaped(&format!("reports/{page}"));
        let outside = ["2000/svg", "1998/Math/MathML"].iter().fold(text.clone(), |text, name| {
            text.replace(&format!("http://www.w3.org/{name}"), "")
        });
        assert!(!outside.contains("http:") && !outside.contains("https:"), "{page}");
        assert!(text.len() < 3_000_000);
        let folder = std::path::Path::new(page).parent().unwrap();
        for link in text.split(" href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { page.into() } else { folder.join(file) };
            let file = format!("reports/{}", file.display());
            assert!(bench.path(&file).exists(), "{page}: {link}");
            let there = || unescaped(&file).contains(&format!(" id=\"{anchor}\""));
            // A fragment with an equals sign is a view of the page.
            let is_view = anchor.contains('=');
            assert!(anchor.is_empty() || is_view || there(), "{page}: {link}");
        }
    }
    let index = unescaped("reports/index.html");
    assert!(index.contains("href=\"smoke/garnet/report.html\""));
    let svg = bench.read("reports/smoke/garnet/figures/convergence.svg");
    assert_eq!(svg.matches("<g class=\"panel\"").count(), 6);
    assert!(
        svg.contains("class=\"series theory\"") && !svg.contains("NaN") && !svg.contains("inf")
    );
}

/// The elements of a page with what names them; of drawings, formulas, scripts and the
/// bodies of tables only that they are there.
fn structure(page: &str) -> String {
    const CLOSED: [&str; 5] = ["svg", "math", "script", "style", "tbody"];
    const VOID: [&str; 3] = ["meta", "input", "br"];
    const NAMES: [&str; 7] =
        ["id", "class", "role", "scope", "tabindex", "aria-label", "aria-labelledby"];
    let (mut out, mut open, mut tags) = (String::new(), Vec::new(), tags(page).into_iter());
    while let Some(tag) = tags.next() {
        if let Some(closed) = tag.name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "after {}", tag.name);
        } else if !tag.name.starts_with('!') {
            let value = |key| tag.value(key).map(|value| format!(" {key}=\"{value}\""));
            let names: String = NAMES.into_iter().filter_map(value).collect();
            out += &format!("{}{}{names}\n", "  ".repeat(open.len()), tag.name);
            if CLOSED.contains(&tag.name) {
                let close = format!("/{}", tag.name);
                tags.find(|tag| tag.name == close).expect("it is closed");
            } else if !VOID.contains(&tag.name) {
                open.push(tag.name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    out
}

#[test]
fn structure_of_the_pages() {
    let bench = reported("diverging");
    let of = |page: &str| structure(&bench.read(&format!("reports/{page}")));
    insta::assert_snapshot!("diverging_html", of("smoke/diverging/report.html"));
    insta::assert_snapshot!("index_html", of("index.html"));
    let bench = Bench::ran(SMALL);
    bench.report();
    insta::assert_snapshot!("claims_html", structure(&bench.read("reports/claims.html")));
}

#[test]
fn a_figure_that_is_gone_is_swept_away() {
    let bench = reported("diverging");
    bench.write(DIVERGING, bench.read(DIVERGING).replace("band = \"ci95\"", "id = \"other\""));
    bench.compute(&[DIVERGING]);
    bench.report();
    assert!(bench.path("reports/smoke/diverging/figures/other.svg").exists());
    assert!(!bench.path("reports/smoke/diverging/figures/convergence.svg").exists());
}

#[test]
fn missing_cells_are_said_in_words() {
    let bench = Bench::with_smoke(&["garnet"]);
    bench.compute(&[GARNET, "--shard", "1/4"]);
    bench.report();
    for page in ["report.md", "report.html"] {
        let text = bench.read(&format!("reports/smoke/garnet/{page}"));
        assert!(text.contains("27 of 36 cells have no results yet"), "{page}");
    }
}

#[test]
fn the_analysis_text_takes_its_numbers_from_the_results() {
    let bench = Bench::with_smoke(&["garnet"]);
    let base = fs::read_to_string(crate::support::smoke("garnet.toml")).unwrap();
    let run_with = |text: &str| {
        let text = format!("seed = 7\nanalysis = '''{text}'''");
        bench.write(GARNET, base.replace("seed = 7", &text));
        bench.run(&["run", GARNET, "--quiet"])
    };
    let cell = "cell('FedLSA', local_steps=1, clients=3, heterogeneity='two')";
    let text =
        format!("Error {{{{ mean({cell}) }}}}, ratio {{{{ ratio({cell}, {cell}) }}}}.\n\nNext.");
    run_with(&text).expect(0);
    bench.report();
    let page = bench.read("reports/smoke/garnet/report.html");
    assert!(
        page.contains("ratio 1.00.</p>")
            && page.contains("<p>Error ")
            && page.contains("], ratio")
            && page.contains("<p>Next.</p>"),
        "{page}"
    );
    run_with("{{ mean(cell('FedLSA')) }}").expect(2).warns("names 12 cells, not one");
    run_with("{{ mean(").expect(2);
}

/// The reports under version control are of the manifests beside them: whoever
/// edits a manifest runs `make reproduce` before committing.
#[test]
fn committed_reports_hold_their_manifests() {
    let files = files_with(&root().join("experiments"), "toml");
    for manifest in &files {
        let below = manifest.strip_prefix(root().join("experiments")).unwrap().with_extension("");
        let page = root().join("reports").join(below).join("report.md");
        let page = fs::read_to_string(&page).unwrap_or_else(|e| panic!("{page:?}: {e}"));
        let text = fs::read_to_string(manifest).unwrap();
        assert!(page.contains(&text), "{manifest:?} is not the manifest of its report");
    }
    assert_eq!(files.len(), 113, "a new experiment is counted here");
}

/// What is kept of theory beside results changes no page: neither when it is there,
/// nor when it is damaged or gone.
#[test]
fn kept_theory_changes_no_page() {
    let bench = Bench::with_smoke(&["garnet"]);
    let asks = "theory = [\"exact-moments\", \"exact-bias\"]";
    bench.write(GARNET, edited(&bench.read(GARNET), &[("theory = [\"exact-bias\"]", asks)]));
    bench.compute(&[GARNET]);
    let pages = || {
        bench.report();
        bench.read("reports/smoke/garnet/report.md")
            + &bench.read("reports/smoke/garnet/report.html")
            + &bench.read("reports/smoke/garnet/figures/convergence.svg")
    };
    let kept = || -> Vec<String> {
        let files = bench.contents("results/.moments").into_keys();
        files.map(|file| format!("results/.moments/{file}")).collect()
    };
    let first = pages();
    let files = kept();
    assert!(first.contains("infinite replicates") && !files.is_empty());
    assert!(first == pages(), "kept");
    for (i, file) in files.iter().enumerate() {
        let mut bytes = bench.read_bytes(file);
        match i % 3 {
            0 => *bytes.last_mut().unwrap() ^= 0x40,
            1 => bytes.truncate(bytes.len() / 2),
            _ => bytes.clear(),
        }
        bench.write(file, bytes);
    }
    assert!(first == pages(), "damaged");
    let (one, other) = (bench.read_bytes(&files[0]), bench.read_bytes(&files[1]));
    assert!(one != other);
    bench.write(&files[0], other);
    bench.write(&files[1], one);
    assert!(first == pages(), "another cell's");
    files.iter().for_each(|file| fs::remove_file(bench.path(file)).unwrap());
    assert!(first == pages(), "gone");
    assert_eq!(kept(), files);
}

/// Cells of other runs of a manifest stay in the results: the page says so, with what a choice
/// among them means, and tells them from cells of other settings.
#[test]
fn other_numbers_of_replicates_are_reported() {
    let bench = Bench::new();
    let manifest = bench.bring("all-atoms");
    let report = || {
        bench.report();
        ["report.md", "report.html"]
            .map(|page| bench.read(&format!("reports/smoke/all-atoms/{page}")))
    };
    let run = |more: &[&str]| bench.compute(&[&[manifest.as_str()], more].concat());
    run(&[]);
    for page in report() {
        assert!(!page.contains("optional stopping") && !page.contains("of other settings"));
    }
    for replicates in ["3", "5"] {
        run(&["--replicates", replicates]);
    }
    run(&["--set", "seed=8"]);
    run(&["--set", "budget.rounds=4"]);
    run(&[]);
    let cells = bench.digests("results").len() / 5;
    for page in report() {
        let text = "The results contain 2 further sets of these cells with other numbers of \
                    replicates: 3, 5 and 1 further set of these cells with the noise of seed 8.";
        assert!(page.contains(text) && page.contains("(optional stopping)"), "{page}");
        let text = format!("The results also contain {cells} cells of other settings");
        assert!(page.contains(&text), "{text}");
    }
}

/// One run has a mean and no interval: nothing that is written holds what is no number, nor
/// an interval of dashes.
#[test]
fn a_single_run_has_no_interval() {
    let bench = Bench::with_smoke(&["garnet", "logistic"]);
    bench.compute(&[GARNET, LOGISTIC, "--replicates", "1"]);
    bench.run(&["report", "--format", "html,md,latex", "--quiet"]);
    let mut looked = 0;
    for file in bench.files_below("reports") {
        let text = fs::read_to_string(&file).unwrap();
        // Scripts speak of numbers that are none.
        let scripts = text.split("<script").skip(1).filter_map(|s| s.split("</script>").next());
        let shown = scripts.fold(text.clone(), |text, script| text.replace(script, ""));
        for wrong in ["NaN", "[–", "–]", "[nan", "nan]"] {
            assert!(!shown.contains(wrong), "{}: {wrong}", file.display());
        }
        looked += 1;
    }
    assert!(looked > 20, "{looked} files");
    bench.run(&["diff", "results", "results"]).expect(0);
}

/// One run of what is not random ranks the algorithms; two that are 0 but for rounding tie.
#[test]
fn exact_runs_have_a_winner() {
    let exact = ("replicates = 2", "replicates = 1\noracle = \"exact\"");
    let each = "[{ step-size = 0.1, local-steps = 5 }]";
    let entries = format!("algorithm = {{ fedavg = {each}, scaffold = {each} }}\n");
    let changes = [WIDER, &[exact, ("rounds = 20", "rounds = 3000")]].concat();
    let page = page_of(&changes, &entries);
    let table = page.split("## Ranking").nth(1).unwrap().split("\n## ").next().unwrap();
    assert!(table.lines().any(|line| line.starts_with("| Scaffold | ")), "{table}");
    assert!(table.contains("the 0 comparisons of this page"), "{table}");
}

/// Runs that start at the limit of their mean end above it, which is no defeat.
#[test]
fn runs_from_their_limit_are_ranked() {
    let many = ("replicates = 2", "replicates = 20");
    let each = "[{ step-size = 0.1, local-steps = 2 }]";
    let entries = format!("algorithm = {{ fedavg = {each}, scaffold = {each} }}\n");
    let changes = [many, ("offset = 1.0", "limit = true"), ("rounds = 20", "rounds = 50")];
    let page = page_of(&[WIDER, &changes].concat(), &entries);
    assert!(page.contains("## Ranking") && !page.contains("above the start"), "{page}");
    assert!(page.contains("for the 1 comparison of this page"), "{page}");
}

/// The first order of a covariance is not that of a bias, and a prediction that is 0 but for
/// rounding is compared with nothing.
#[test]
fn predictions_are_of_the_quantity_that_is_shown() {
    let changes = [
        ("replicates = 2", "replicates = 4"),
        ("clients = 2", "clients = 3"),
        ("noise = 0.1", "gradient-heterogeneity = 1.0, noise = 1.0"),
        ("offset = 1.0", "offset = 0.0"),
        ("rounds = 20", "rounds = 200"),
    ];
    let more = "record = { burn-in = 0.5, averages = [\"bias\", \"covariance\"] }\n\
        algorithm.scaffold = [{ step-size = [0.05, 0.1], local-steps = 3 }]\n\
        [[figure.scaling]]\nid = \"variance\"\nx = \"step-size\"\ny = \"variance\"\n\
        theory = [\"first-order\", \"closure\"]\n";
    let page = page_of(&changes, more);
    assert!(page.contains("First order: tr (γ/N) X with A X + X Aᵀ = C"), "{page}");
    assert!(page.contains("from averages over the rounds after the burn-in"), "{page}");
    assert!(!page.contains("Where the first order of the bias holds"), "{page}");
}

/// A page cites the registered sources that its manifest names, and the claims page those of all
/// claims.
#[test]
fn sources_are_cited_with_authors_year_and_link() {
    let cited = ("seed = 1", "source = \"RR, Theorem 3; our choice\"\nseed = 1");
    let claim = "algorithm.fedavg = [{ step-size = 0.1, local-steps = 2 }]\n\
        [[claim.less]]\nid = \"c\"\nstatement = \"s\"\nsource = \"BOOK, (5.26)\"\n\
        left = { label = \"FedAvg\" }\nvalue = 1.0\n";
    let bench = Bench::ran(&(edited(QUADRATIC, &[cited]) + claim));
    let _ = bench.run(&["report", "--quiet"]);
    let link = "https://arxiv.org/abs/2412.01389";
    let page = bench.read("reports/m/report.md");
    assert!(
        page.contains(
            "## Source\n\nMangold et al. 2025 (RR), Theorem 3; our choice.\n\n- RR: P. Mangold, "
        ),
        "{page}"
    );
    let arxiv = "[arXiv:2412.01389](https://arxiv.org/abs/2412.01389)";
    assert!(
        page.contains(&format!("Extrapolation”, {arxiv}. The paper in the proceedings")),
        "{page}"
    );
    assert!(page.contains("````bibtex\n@misc{mangold2025refined,\n"), "{page}");
    assert!(!page.contains("SCAFFLSA:"), "{page}");
    let page = bench.read("reports/m/report.html").replace("&#x2f;", "/");
    assert!(page.contains(&format!("<a href=\"{link}\">Refined Analysis")), "{page}");
    assert!(page.contains("<code>@misc{mangold2025refined,\n"), "{page}");
    for page in ["reports/claims.md", "reports/claims.html"] {
        let page = bench.read(page);
        let foot = page.split("Sources").nth(1).unwrap();
        assert!(foot.contains("BOOK: S. Vlaski and A. H. Sayed (2023). Federated Learning."));
    }
}
