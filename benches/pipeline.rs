//! The time of everything except local steps: planning, storing and reading cells,
//! computing figures and claims, writing pages.
//!
//! `cargo bench --bench pipeline`, or `make bench`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use driftbench::analysis::analyse;
use driftbench::manifest::Source;
use driftbench::plan::Plan;
use driftbench::runner::{self, Done, Prepared, Silent, prepare};
use driftbench::store::provenance::Provenance;
use driftbench::store::{Status, Store};
use driftbench::{report, trace};
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

/// The default formats of reports.
const PAGES: [report::Format; 2] = [report::Format::Html, report::Format::Md];

/// `steps` × `offsets` cells of ten clients, H = 1.
fn manifest(steps: usize, offsets: usize, rounds: usize, replicates: usize) -> Source {
    let list = |n: usize, scale: f64| {
        let all: Vec<String> = (1..=n).map(|i| format!("{}", i as f64 * scale)).collect();
        all.join(", ")
    };
    let text = format!(
        r#"title = "Short cells"
seed = 1
replicates = {replicates}
[problem.garnet]
states = 30
actions = 2
branching = 2
features = 8
discount = 0.95
clients = 10
heterogeneity = {{ perturbed = {{ kernel = 0.02, reward = 0.02 }} }}
[start]
offset = [{}]
[budget]
rounds = {rounds}
[record]
points = {}
[[algorithm.fedlsa]]
step-size = [{}]
local-steps = 1
[[algorithm.scafflsa]]
step-size = 0.01
local-steps = 1
[[figure.convergence]]
panels = ["offset"]
theory = ["exact-bias"]
"#,
        list(offsets, 0.01),
        rounds.min(200),
        list(steps, 1e-4)
    );
    Source { name: "short.toml".into(), text, ..Source::default() }
}

fn plan(source: &Source) -> Plan {
    Plan::new("short".into(), source.clone()).unwrap_or_else(|_| panic!("the manifest is sound"))
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
    let (ready, from) = (prepared(plan), Provenance::now());
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
    let (cell, from) = (&plan.cells[0], Provenance::now());
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
