//! The time of everything except local steps: planning, storing and reading cells,
//! computing figures and claims, writing pages.
//!
//! `cargo bench --bench pipeline`, or `make bench`.

#[path = "bars/manifest.rs"]
#[allow(dead_code)]
mod manifest;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use exactfed::evidence::analyse;
use exactfed::manifest::Source;
use exactfed::plan::Plan;
use exactfed::runner::{self, Done, Prepared, Silent, prepare};
use exactfed::store::{Results, Status, Store, provenance};
use exactfed::{report, trace};
use manifest::Manifest;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

/// The default formats of reports.
const PAGES: [report::Format; 2] = [report::Format::Html, report::Format::Md];

/// `steps` × `offsets` cells of ten clients, H = 1.
fn manifest(steps: u64, offsets: u64, rounds: u64, replicates: u64) -> Source {
    let base = Manifest {
        starts: offsets,
        step_sizes: steps,
        points: rounds.min(200),
        spacing: "linear",
        ..Manifest::one(10, 1, rounds)
    };
    let more = r#"
[[algorithm.scafflsa]]
step-size = 0.01
local-steps = 1

[[figure.convergence]]
panels = ["offset"]
theory = ["exact-bias"]
"#;
    let replicates = format!("replicates = {replicates}");
    let text = base.text().replace("replicates = 1", &replicates) + more;
    Source { name: "short.toml".into(), text, ..Source::default() }
}

fn plan(source: &Source) -> Plan {
    exactfed::evidence::plan("short".into(), source.clone())
        .unwrap_or_else(|_| panic!("the manifest is sound"))
}

fn prepared(plan: &Plan) -> Vec<Prepared<'_>> {
    let cells: Vec<_> = plan.cells.iter().collect();
    prepare(&plan.folder(), &cells).unwrap_or_else(|_| panic!("every instance has a solution"))
}

/// Runs `cells` on this thread and passes each to `keep`.
fn run(cells: &[Prepared<'_>], keep: impl Fn(Done<'_>) + Sync) {
    let all = runner::run(cells, 1, &Silent, |done| {
        keep(done);
        Ok::<(), ()>(())
    });
    assert!(all.is_ok_and(|failed| failed.is_empty()));
}

/// A cell of one round, from the manifest to the digest, without the Parquet file.
fn overhead(c: &mut Criterion) {
    let mut group = c.benchmark_group("pipeline");
    let source = manifest(25, 10, 1, 1);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store::open(folder.path()).expect("an empty folder");
    group.bench_function("overhead of a short cell", |b| {
        b.iter_custom(|times| {
            let (mut elapsed, mut cells) = (Duration::ZERO, 0);
            while cells == 0 || (cells as u64) < times {
                let begin = Instant::now();
                let plan = plan(&source);
                let ready = prepared(&plan);
                assert!(ready.iter().all(|cell| {
                    store.status(&plan.experiment, &cell.cell.id) == Status::Missing
                }));
                run(&ready, |done| {
                    let identity = done.cell.identity.canonical().to_string();
                    black_box((trace::digest(&done.traces), identity));
                });
                elapsed += begin.elapsed();
                cells += plan.cells.len();
            }
            elapsed.mul_f64(times as f64 / cells as f64)
        });
    });
    group.finish();
}

/// A store in this folder with all cells of a plan.
fn stored(folder: &Path, plan: &Plan) -> Store {
    let store = Store::open(folder).expect("an empty folder");
    store.create().expect("a folder that can be written");
    store.write_experiment(plan).expect("a folder that can be written");
    let (ready, from) = (prepared(plan), provenance());
    let clients = ready[0].clients();
    run(&ready, |done| {
        store.write(plan, done.cell, clients, &done.traces, done.elapsed, &from).expect("stored");
    });
    store
}

fn parts(c: &mut Criterion) {
    let mut group = c.benchmark_group("pipeline");
    let source = manifest(100, 10, 1, 1);
    let cells = plan(&source).cells.len() as u64;
    group.throughput(Throughput::Elements(cells));
    group.sample_size(10);
    group.bench_function("plan, a cell", |b| b.iter(|| plan(&source)));
    group.throughput(Throughput::Elements(1));
    let source = manifest(1, 1, 200, 10);
    let plan = plan(&source);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = stored(folder.path(), &plan);
    let (cell, from) = (&plan.cells[0], provenance());
    let traces = store.read("short", &cell.id).expect("it is whole").expect("it is there").traces;
    group.bench_function("store a cell of 10 × 201 rows", |b| {
        b.iter(|| store.write(&plan, cell, 10, &traces, Duration::ZERO, &from));
    });
    group.bench_function("read a cell of 10 × 201 rows", |b| {
        b.iter(|| store.read("short", &cell.id).expect("it is whole"));
    });
    let analysed = |source: &Source, store: &Store| {
        let plan = self::plan(source);
        analyse(&plan, store).expect("results are whole").cells.len()
    };
    group.bench_function("analyse two cells with their theory", |b| {
        b.iter(|| analysed(&source, &store));
    });
    let many = manifest(100, 10, 1, 2);
    let many_folder = tempfile::tempdir().expect("a temporary folder");
    let many_plan = self::plan(&many);
    let many_store = stored(many_folder.path(), &many_plan);
    group.throughput(Throughput::Elements(many_plan.cells.len() as u64));
    group.bench_function("analyse a thousand short cells, a cell", |b| {
        b.iter(|| analysed(&many, &many_store));
    });
    group.throughput(Throughput::Elements(1));
    let experiment = analyse(&plan, &store).expect("results are whole");
    let reports = folder.path().join("reports");
    group.bench_function("write the pages of two cells", |b| {
        b.iter(|| {
            let pages = report::Writer::new(&reports, &PAGES)?;
            pages.index(vec![pages.page(&experiment)?], &[])
        });
    });
    group.finish();
}

criterion_group!(benches, overhead, parts);
criterion_main!(benches);
