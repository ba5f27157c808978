//! What the pages say, as snapshots, and what they must hold.

mod support;

use support::Bench;

fn reported(name: &str) -> Bench {
    let bench = Bench::new();
    let manifest = bench.bring(&format!("{name}.toml"));
    bench.run(&["run", &manifest, "--quiet"]).expect(0);
    bench.run(&["report", "--quiet"]).expect(0);
    bench
}

/// The page of a manifest.
fn page_of(text: &str) -> String {
    let bench = Bench::new();
    bench.write("m.toml", text);
    bench.run(&["run", "m.toml", "--quiet"]).expect(0);
    bench.run(&["report"]).expect(0);
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
    for page in ["index.html", "claims.html", "disagreements.html", "smoke/garnet/report.html"] {
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
            assert!(anchor.is_empty() || there(), "{page}: {link}");
        }
    }
    let index = unescaped("reports/index.html");
    assert!(index.contains("href=\"smoke/garnet/report.html#convergence\""));
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
    let (mut out, mut open, mut rest) = (String::new(), Vec::new(), page);
    while let Some((_, after)) = rest.split_once('<') {
        let (tag, after) = after.split_once('>').expect("a tag ends");
        rest = after;
        let name = tag.split_whitespace().next().unwrap_or_default();
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "after {tag}");
            continue;
        }
        if name.starts_with('!') {
            continue;
        }
        let value = |key: &str| {
            let found = tag.split_once(&format!(" {key}=\""))?.1.split('"').next()?;
            Some(format!(" {key}=\"{found}\""))
        };
        let names = ["id", "class", "role", "scope", "tabindex", "aria-label", "aria-labelledby"];
        let names: String = names.into_iter().filter_map(value).collect();
        out += &format!("{}{name}{names}\n", "  ".repeat(open.len()));
        if CLOSED.contains(&name) {
            rest = rest.split_once(&format!("</{name}>")).expect("it is closed").1;
        } else if !VOID.contains(&name) {
            open.push(name);
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
    insta::assert_snapshot!("claims_html", of("claims.html"));
}

#[test]
fn a_figure_that_is_gone_is_swept_away() {
    let bench = reported("diverging");
    let manifest = "experiments/smoke/diverging.toml";
    bench.write(manifest, &bench.read(manifest).replace("band = \"ci95\"", "id = \"other\""));
    bench.run(&["run", manifest, "--quiet"]).expect(0);
    bench.run(&["report", "--quiet"]).expect(0);
    assert!(bench.path("reports/smoke/diverging/figures/other.svg").exists());
    assert!(!bench.path("reports/smoke/diverging/figures/convergence.svg").exists());
}

#[test]
fn missing_cells_are_said_in_words() {
    let bench = Bench::new();
    let manifest = bench.bring("garnet.toml");
    bench.run(&["run", &manifest, "--quiet", "--shard", "1/4"]).expect(0);
    bench.run(&["report", "--quiet"]).expect(0);
    for page in ["report.md", "report.html"] {
        let text = bench.read(&format!("reports/smoke/garnet/{page}"));
        assert!(text.contains("27 of 36 cells have no results yet"), "{page}");
    }
}

#[test]
fn the_analysis_text_takes_its_numbers_from_the_results() {
    let bench = Bench::new();
    let manifest = bench.bring("garnet.toml");
    let base = std::fs::read_to_string(support::smoke("garnet.toml")).unwrap();
    let run_with = |text: &str| {
        let text = format!("seed = 7\nanalysis = '''{text}'''");
        bench.write(&manifest, &base.replace("seed = 7", &text));
        bench.run(&["run", &manifest, "--quiet"])
    };
    let cell = "cell('FedLSA', local_steps=1, clients=3, heterogeneity='two')";
    let text =
        format!("Error {{{{ mean({cell}) }}}}, ratio {{{{ ratio({cell}, {cell}) }}}}.\n\nNext.");
    run_with(&text).expect(0);
    bench.run(&["report", "--quiet"]).expect(0);
    let page = bench.read("reports/smoke/garnet/report.html");
    assert!(
        page.contains("ratio 1.00.</p>")
            && page.contains("<p>Error ")
            && page.contains("], ratio")
            && page.contains("<p>Next.</p>"),
        "{page}"
    );
    let said = run_with("{{ mean(cell('FedLSA')) }}").expect(2);
    assert!(said.err.contains("names 12 cells, not one"), "{}", said.err);
    run_with("{{ mean(").expect(2);
}

/// The reports under version control are of the manifests beside them: whoever
/// edits a manifest runs `make reproduce` before committing.
#[test]
fn committed_reports_hold_their_manifests() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    manifests(&root.join("experiments"), &mut files);
    for manifest in &files {
        let below = manifest.strip_prefix(root.join("experiments")).unwrap().with_extension("");
        let page = root.join("reports").join(below).join("report.md");
        let page = std::fs::read_to_string(&page).unwrap_or_else(|e| panic!("{page:?}: {e}"));
        let text = std::fs::read_to_string(manifest).unwrap();
        assert!(page.contains(&text), "{manifest:?} is not the manifest of its report");
    }
    assert_eq!(files.len(), 44, "a new experiment is counted here");
}

fn manifests(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            manifests(&path, found);
        } else if path.extension().is_some_and(|e| e == "toml") {
            found.push(path);
        }
    }
}

/// What is kept of theory beside results changes no page: neither when it is there,
/// nor when it is damaged or gone.
#[test]
fn kept_theory_changes_no_page() {
    let bench = Bench::new();
    let manifest = bench.bring("garnet.toml");
    let asks = "theory = [\"exact-moments\", \"exact-bias\"]";
    let text = bench.read(&manifest).replace("theory = [\"exact-bias\"]", asks);
    assert!(text.contains(asks));
    bench.write(&manifest, &text);
    bench.run(&["run", &manifest, "--quiet"]).expect(0);
    let pages = || {
        bench.run(&["report", "--quiet"]).expect(0);
        bench.read("reports/smoke/garnet/report.md")
            + &bench.read("reports/smoke/garnet/report.html")
            + &bench.read("reports/smoke/garnet/figures/convergence.svg")
    };
    let kept = || -> Vec<String> {
        let cells = std::fs::read_dir(bench.path("results/smoke/garnet")).unwrap();
        let name = |cell: std::fs::DirEntry| {
            let id = cell.file_name().to_string_lossy().into_owned();
            format!("results/smoke/garnet/{id}/theory.columns")
        };
        let all = cells.map(|cell| name(cell.unwrap())).filter(|f| bench.path(f).exists());
        let mut all: Vec<String> = all.collect();
        all.sort();
        all
    };
    let first = pages();
    let files = kept();
    assert!(first.contains("infinite replicates") && !files.is_empty());
    assert!(first == pages(), "kept");
    for (i, file) in files.iter().enumerate() {
        let mut bytes = std::fs::read(bench.path(file)).unwrap();
        match i % 3 {
            0 => *bytes.last_mut().unwrap() ^= 0x40,
            1 => bytes.truncate(bytes.len() / 2),
            _ => bytes.clear(),
        }
        std::fs::write(bench.path(file), bytes).unwrap();
    }
    assert!(first == pages(), "damaged");
    let (one, other) = (bench.read_bytes(&files[0]), bench.read_bytes(&files[1]));
    assert!(one != other);
    std::fs::write(bench.path(&files[0]), other).unwrap();
    std::fs::write(bench.path(&files[1]), one).unwrap();
    assert!(first == pages(), "another cell's");
    files.iter().for_each(|file| std::fs::remove_file(bench.path(file)).unwrap());
    assert!(first == pages(), "gone");
    assert_eq!(kept(), files);
}

/// Cells of other runs of a manifest stay in the results: the page says so, with what a choice
/// among them means, and tells them from cells of other settings.
#[test]
fn other_numbers_of_replicates_are_told() {
    let bench = Bench::new();
    let manifest = bench.bring("all-atoms.toml");
    bench.bring_folder("data");
    let report = || {
        bench.run(&["report", "--quiet"]).expect(0);
        ["report.md", "report.html"]
            .map(|page| bench.read(&format!("reports/smoke/all-atoms/{page}")))
    };
    let run = |more: &[&str]| {
        let all = [&["run", &manifest, "--quiet"], more].concat();
        bench.run(&all).expect(0);
    };
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
    let cells = bench.run(&["digest"]).expect(0).out.lines().count() / 5;
    for page in report() {
        let told = "The results contain 2 further sets of these cells with other numbers of \
                    replicates (3, 5) and 1 further set of these cells with other seeds (8).";
        assert!(page.contains(told) && page.contains("(optional stopping)"), "{page}");
        let told = format!("The results also contain {cells} cells of other settings");
        assert!(page.contains(&told), "{told}");
    }
}

/// One run has a mean and no interval: nothing that is written holds what is no number, nor
/// an interval of dashes.
#[test]
fn a_single_run_has_no_interval() {
    let bench = Bench::new();
    for name in ["garnet.toml", "logistic.toml"] {
        let manifest = bench.bring(name);
        bench.run(&["run", &manifest, "--replicates", "1", "--quiet"]).expect(0);
    }
    bench.run(&["report", "--format", "html,md,latex", "--quiet"]);
    let mut looked = 0;
    for file in bench.files_below("reports") {
        let text = std::fs::read_to_string(&file).unwrap();
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
    let text = "title = \"t\"\nseed = 1\nreplicates = 1\noracle = \"exact\"\n\
        [problem.quadratic]\ndimension = 3\nclients = 4\nspectrum = { from = 0.5, to = 1.5 }\n\
        gradient-heterogeneity = 1.0\nhessian-heterogeneity = 0.3\nnoise = 1.0\n[start]\n\
        offset = 1.0\n\
        [budget]\nrounds = 3000\n[[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 5\n\
        [[algorithm.scaffold]]\nstep-size = 0.1\nlocal-steps = 5\n";
    let page = page_of(text);
    let table = page.split("## Ranking").nth(1).unwrap().split("\n## ").next().unwrap();
    assert!(table.lines().any(|line| line.starts_with("| Scaffold | ")), "{table}");
    assert!(table.contains("the 0 comparisons of this page"), "{table}");
}

/// Runs that start at the limit of their mean end above it, which is no defeat.
#[test]
fn runs_from_their_limit_are_ranked() {
    let text = "title = \"t\"\nseed = 1\nreplicates = 20\n\
        [problem.quadratic]\ndimension = 3\nclients = 4\nspectrum = { from = 0.5, to = 1.5 }\n\
        gradient-heterogeneity = 1.0\nhessian-heterogeneity = 0.3\nnoise = 1.0\n[start]\n\
        limit = true\n[budget]\nrounds = 50\n[[algorithm.fedavg]]\nstep-size = 0.1\n\
        local-steps = 2\n[[algorithm.scaffold]]\nstep-size = 0.1\nlocal-steps = 2\n";
    let page = page_of(text);
    assert!(page.contains("## Ranking") && !page.contains("above the start"), "{page}");
    assert!(page.contains("for the 1 comparison of this page"), "{page}");
}

/// The first order of a covariance is not that of a bias, and a prediction that is 0 but for
/// rounding is compared with nothing.
#[test]
fn predictions_are_of_the_quantity_that_is_shown() {
    let text = "title = \"t\"\nseed = 1\nreplicates = 4\n\
        [problem.quadratic]\ndimension = 2\nclients = 3\nspectrum = { from = 0.5, to = 1.0 }\n\
        gradient-heterogeneity = 1.0\nnoise = 1.0\n[start]\noffset = 0.0\n[budget]\nrounds = 200\n\
        [record]\nburn-in = 0.5\naverages = [\"bias\", \"covariance\"]\n\
        [[algorithm.scaffold]]\nstep-size = [0.05, 0.1]\nlocal-steps = 3\n\
        [[figure.scaling]]\nid = \"variance\"\nx = \"step-size\"\ny = \"variance\"\n\
        theory = [\"first-order\", \"closure\"]\n";
    let page = page_of(text);
    assert!(page.contains("First order: tr (γ/N) AC"), "{page}");
    assert!(page.contains("from averages over the rounds after the burn-in"), "{page}");
    assert!(!page.contains("Where the first order of the bias holds"), "{page}");
}

/// A page cites the registered sources that its manifest names, and the claims page those of all
/// claims.
#[test]
fn sources_are_cited_with_authors_year_and_link() {
    let bench = Bench::new();
    let text = "title = \"t\"\nsource = \"RR, Theorem 3; our choice\"\nseed = 1\nreplicates = 2\n\
        [problem.quadratic]\ndimension = 2\nclients = 2\nspectrum = { from = 0.5, to = 1.0 }\n\
        noise = 1.0\n[start]\noffset = 1.0\n[budget]\nrounds = 5\n[[algorithm.fedavg]]\nstep-size = 0.1\n\
        local-steps = 2\n[[claim.less]]\nid = \"c\"\nstatement = \"s\"\nsource = \"BOOK, (5.26)\"\n\
        left = { label = \"FedAvg\" }\nvalue = 1.0\n";
    bench.write("m.toml", text);
    bench.run(&["run", "m.toml", "--quiet"]).expect(0);
    let _ = bench.run(&["report", "--quiet"]);
    let link = "https://openreview.net/forum?id=YxgThbmXgN";
    let page = bench.read("reports/m/report.md");
    assert!(page.contains("\nSource: RR, Theorem 3; our choice.\n\n- RR: P. Mangold, "), "{page}");
    assert!(page.contains(&format!("]({link}). AISTATS.\n")), "{page}");
    assert!(!page.contains("SCAFFLSA:"), "{page}");
    let page = bench.read("reports/m/report.html").replace("&#x2f;", "/");
    assert!(page.contains(&format!("<a href=\"{link}\">Refined Analysis")), "{page}");
    for page in ["reports/claims.md", "reports/claims.html"] {
        let page = bench.read(page);
        let foot = page.split("Sources").nth(1).unwrap();
        assert!(foot.contains("BOOK: S. Vlaski and A. H. Sayed (2023). Federated Learning."));
    }
}
