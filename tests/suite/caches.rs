//! Caches with numbers that are not those of theory, and hashes that are right: anybody can
//! compute a hash, so pages may show what a forger wrote. `verify` names each such cache, and the
//! page that is computed without it is right.

use crate::support::{Bench, QUADRATIC, SMALL, edited, hash};
use exactfed::manifest::Source;
use exactfed::plan::Cell;
use exactfed::problem::Minimiser;
use exactfed::runner::{prepare, prepare_knowing};
use std::fs;
use std::path::{Path, PathBuf};

/// A frontier without cells, and claims about its points.
const FRONTIER: &str = include_str!("../browser/frontier.toml");
/// An instance in 40 unknowns, whose θ* is searched for and kept.
const OPTIMUM: &str = "title = \"Optimum\"
seed = 1
replicates = 2
[problem.synthetic]
alpha = 1.0
beta = 1.0
clients = 3
dimension = 10
classes = 4
records = { equal = 30 }
l2 = 0.01
[start]
zero = true
[budget]
rounds = 5
[[algorithm.fedavg]]
step-size = 0.05
local-steps = 2
";

/// Cells with a claim about one of them that takes exact moments.
fn moments() -> String {
    let one = "of = { label = \"FedAvg\", step-size = 0.05 }";
    edited(SMALL, &[("replicates = 4", "replicates = 20"), ("of = { label = \"FedAvg\" }", one)])
}

/// The first cached file in a folder.
fn cached(bench: &Bench, folder: &str, is_cache: impl Fn(&Path) -> bool) -> PathBuf {
    let files = bench.files_below(folder);
    files.into_iter().find(|file| is_cache(file)).expect("something is cached")
}

/// Writes other numbers into a cache, for the cell or key `of`, with the hash that they have.
fn forge(cache: &Path, of: Option<&str>, change: impl FnOnce(&mut Vec<f64>)) {
    let whole = fs::read(cache).unwrap();
    let bytes = &whole[..whole.len() - "# sha256 \n".len() - 64];
    let end = bytes.iter().position(|b| *b == b'\n').unwrap();
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut parts: Vec<&str> = head.split(' ').collect();
    assert_eq!((parts[0], parts.len()), ("exactfed-columns", 5));
    parts[2] = of.unwrap_or(parts[2]);
    let number = |b: &[u8]| f64::from_le_bytes(b.try_into().unwrap());
    let mut numbers: Vec<f64> = bytes[end + 1..].chunks_exact(8).map(number).collect();
    change(&mut numbers);
    let mut forged = (parts.join(" ") + "\n").into_bytes();
    forged.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
    let last = format!("# sha256 {}\n", hash(&forged));
    forged.extend(last.as_bytes());
    assert_ne!(forged, whole);
    fs::write(cache, forged).unwrap();
}

fn page(bench: &Bench) -> String {
    // The verdict of a claim may be other than expected.
    let code = bench.run(&["report", "--quiet"]).code;
    assert!([0, 1].contains(&code), "{code}");
    bench.read("reports/m/report.md")
}

/// `verify` names this file, whichever way it is asked, and finds nothing wrong without it; the
/// page is then what it was.
#[track_caller]
fn found(bench: &Bench, cache: &Path, first: &str) {
    let name = cache.file_name().unwrap().to_string_lossy().into_owned();
    for arguments in [&["verify", "--all"][..], &["verify"], &["verify", "--quiet"]] {
        let output = bench.run(arguments).expect(1);
        output.prints(&name).prints("is not what is computed now").prints("1 different");
    }
    fs::remove_file(cache).unwrap();
    bench.run(&["verify", "--all"]).expect(0);
    assert_eq!(page(bench), first);
}

#[test]
fn forged_moments_are_found() {
    let bench = Bench::ran(&moments());
    let first = page(&bench);
    assert!(first.contains("**supported**"), "{first}");
    let output = bench.run(&["verify", "--all"]).expect(0);
    output.prints("2 of 2 cells run again: 2 bit-identical, 0 different, 0 not comparable");
    output.prints("of theory computed again: 0 different");
    let cache = cached(&bench, "results/.moments", |_| true);
    forge(&cache, None, |numbers| numbers.iter_mut().for_each(|x| *x *= 100.0));
    // It changes a verdict, and nothing else notices it.
    let forged = page(&bench);
    assert!(forged.contains("**refuted**"), "{forged}");
    bench.run(&["digest"]).expect(0);
    found(&bench, &cache, &first);
}

#[test]
fn forged_frontiers_are_found() {
    let bench = Bench::ran(FRONTIER);
    let first = page(&bench);
    let output = bench.run(&["verify", "--all"]).expect(0);
    output.prints("1 cache of theory computed again: 0 different");
    bench.run(&["verify", "--sample", "0"]).expect(0);
    let cache = cached(&bench, "results/.frontiers", |_| true);
    // The columns stand in the order of their names: choice, clients, edge, held, local-steps, method,
    // rounds, step-size, target.
    forge(&cache, None, |numbers| {
        let rows = numbers.len() / 9;
        numbers[6 * rows..7 * rows].iter_mut().for_each(|rounds| *rounds *= 2.0);
    });
    assert_ne!(page(&bench), first);
    found(&bench, &cache, &first);
}

/// A point other than θ* of the instance of [`OPTIMUM`], followed by the residual that a point must have
/// to be believed, and a bound on its error: the residual is ‖∇f‖/λ to the last bit, of which sums in
/// another order give all but the last bits.
fn believed_point() -> Vec<f64> {
    let source = Source { name: "m.toml".into(), text: OPTIMUM.into(), ..Source::default() };
    let plan = exactfed::evidence::plan("m".into(), source).unwrap_or_else(|e| panic!("{e}"));
    let cells: Vec<&Cell> = plan.cells.iter().collect();
    let prepared = prepare(&plan.folder(), &cells).unwrap();
    let instance = &prepared[0].scenarios[0].instance;
    let theta: Vec<f64> = instance.optimum().iter().map(|x| 1.5 * x).collect();
    let (mut sum, mut field) = (vec![0.0; theta.len()], vec![0.0; theta.len()]);
    for client in 0..instance.clients() {
        instance.mean_field(client, &theta, &mut field);
        sum.iter_mut().zip(&field).for_each(|(sum, x)| *sum += x / 3.0);
    }
    let about = sum.iter().map(|x| x * x).sum::<f64>().sqrt() / 0.01;
    for ulps in 0..1000_i64 {
        for sign in [-1, 1] {
            let residual = f64::from_bits(about.to_bits().wrapping_add_signed(sign * ulps));
            let known = |_: &str| Some(Minimiser { theta: theta.clone(), residual, error: 1e-16 });
            let prepared = prepare_knowing(&plan.folder(), &known, &cells).unwrap();
            if prepared[0].scenarios[0].instance.optimum() == theta {
                return theta.into_iter().chain([residual, 1e-16]).collect();
            }
        }
    }
    panic!("no residual near {about} is believed");
}

#[test]
fn forged_optima_are_found() {
    let bench = Bench::ran(OPTIMUM);
    let first = page(&bench);
    bench.run(&["verify", "--all"]).expect(0).prints("1 cache of theory computed again");
    let cache = cached(&bench, "results/.optima", |_| true);
    forge(&cache, None, |numbers| numbers.copy_from_slice(&believed_point()));
    found(&bench, &cache, &first);
}

/// An instance whose measures take so long that they are kept, for each oracle.
#[test]
fn forged_measures_are_found() {
    let large = edited(QUADRATIC, &[("dimension = 2", "dimension = 150")]);
    let algorithm = "[[algorithm.fedavg]]\nstep-size = 0.1\nlocal-steps = 2\n";
    let bench = Bench::ran(&format!("{large}{algorithm}"));
    let first = page(&bench);
    bench.run(&["verify", "--all"]).expect(0).prints("1 cache of theory computed again");
    let cache = cached(&bench, "results/.measures", |_| true);
    assert_eq!(page(&bench), first, "kept measures change no page");
    forge(&cache, None, |numbers| numbers.iter_mut().for_each(|x| *x *= 1.5));
    assert_ne!(page(&bench), first);
    found(&bench, &cache, &first);
    // With noise and without it the instance is one, and the measures are not.
    page(&bench);
    bench.write("m.toml", format!("oracle = \"exact\"\n{large}{algorithm}"));
    bench.compute(&["m.toml"]);
    page(&bench);
    assert_eq!(bench.files_below("results/.measures").len(), 2);
}

/// Numbers beside a cell of which nothing is known are not theory.
#[test]
fn moments_of_a_cell_without_moments_are_found() {
    let moments = moments();
    let logistic = edited(
        &moments,
        &[(
            "quadratic = { dimension = 2, clients = 2, noise = 0.1, spectrum = { from = 0.5, to = 2.0 } }",
            "logistic = { dimension = 2, clients = 2, records = 10, l2 = 0.1, data = { heterogeneous = { spread = 1.0, perturbation = 1.0 } } }",
        )],
    );
    let bench = Bench::new();
    bench.write("other.toml", &moments);
    bench.write("m.toml", logistic);
    bench.compute(&["other.toml"]);
    bench.compute(&["m.toml"]);
    bench.run(&["report", "--quiet"]);
    let theirs = cached(&bench, "results/.moments", |_| true);
    let id = bench.ids("results/m").remove(0);
    let place = bench.path(&format!("results/.moments/{id}"));
    assert!(!place.exists());
    fs::copy(theirs, &place).unwrap();
    forge(&place, Some(&id), |_| {});
    let output = bench.run(&["verify", "--all"]).expect(1);
    output.prints(&format!(".moments/{id} is not what is computed now"));
}
