//! Pairs whose true change is known, each with the verdict that it must get.

use super::side::{OmittedRuns, count_diverged, id_of};
use super::{
    Change, ChangeVerdict, Class, Comparison, Options, OtherSetting, SCHEMA, Side, SideCell,
    SideClaim, SideExperiment, SideRuns, compare,
};
use exactfed_core::rng::Stream;
use exactfed_runner::plan::CellId;
use exactfed_runner::trace::TraceDigest;

/// A cell with noise, whose traces have the digest of this name, with a final error per replicate.
fn cell(digest: &str, finals: Vec<Option<f64>>) -> SideCell {
    cell_with(digest, finals, &[])
}

/// A cell as [`cell`], with more settings.
fn cell_with(digest: &str, finals: Vec<Option<f64>>, more: &[(&str, &str)]) -> SideCell {
    let settings = [("seed", "1"), ("oracle", "stochastic"), ("algorithm.fedavg.step-size", "0.1")];
    let runs = SideRuns::done(TraceDigest::of(digest), finals);
    SideCell { runs, ..SideCell::new("a", settings.iter().chain(more).copied()) }
}

/// A side with one experiment of these cells, whose ids are their places.
fn side(cells: Vec<SideCell>) -> Side {
    let ids = (0..).map(|i: usize| CellId::read(&format!("{i:016x}")).unwrap());
    let cells = ids.zip(cells).collect();
    side_of(SideExperiment {
        seed: 1,
        cells,
        claims: Some(Vec::new()),
        ..SideExperiment::default()
    })
}

/// A side with one experiment.
fn side_of(record: SideExperiment) -> Side {
    let record = SideExperiment { schema: SCHEMA, ..record };
    Side { name: "s".into(), experiments: [("e".to_owned(), record)].into(), foreign: None }
}

/// The comparison of two sides with these cells.
fn compared(old: Vec<SideCell>, new: Vec<SideCell>) -> Comparison {
    compare(&side(old), &side(new), &Options::default())
}

/// The first change between sides of one cell each.
fn change_of(old: SideCell, new: SideCell) -> Change {
    compared(vec![old], vec![new]).changed.remove(0)
}

/// The one change between a cell and itself with other finals.
fn changed(old: &[Option<f64>], new: &[Option<f64>]) -> Change {
    change_of(cell("a", old.to_vec()), cell("b", new.to_vec()))
}

/// The final errors of n replicates: noisy numbers around `factor`, the same noise for the same seed.
fn sample(seed: u64, n: usize, factor: f64) -> Vec<Option<f64>> {
    let mut rng = Stream::shared_instance(seed);
    (0..n).map(|_| Some(factor * libm::exp(0.2 * rng.gaussian()))).collect()
}

#[test]
fn verdicts_of_known_changes() {
    let n = 10;
    let old = sample(1, n, 1.0);
    let verdict = |new: &[Option<f64>]| changed(&old, new).verdict;
    assert_eq!(compared(vec![cell("a", old.clone())], vec![cell("a", old.clone())]).identical, 1);
    assert_eq!(verdict(&sample(1, n, 1.5)), ChangeVerdict::Worse);
    assert_eq!(verdict(&sample(1, n, 0.5)), ChangeVerdict::Better);
    assert_eq!(verdict(&sample(1, n, 1.01)), ChangeVerdict::Equivalent);
    assert_eq!(verdict(&sample(2, n, 1.0)), ChangeVerdict::Underpowered);
    assert_eq!(verdict(&old), ChangeVerdict::SameErrors);
    let detectable = changed(&old, &sample(3, n, 1.0)).detectable.unwrap();
    assert!(libm::log(1.1) < detectable && detectable < 1.0);
}

/// The names of verdicts and of classes are found by the numbers of their variants.
#[test]
fn names_stand_in_the_order_of_their_values() {
    assert!(ChangeVerdict::ALL.iter().enumerate().all(|(i, (verdict, ..))| *verdict as usize == i));
    assert!(Class::ALL.iter().enumerate().all(|(i, (class, _))| *class as usize == i));
}

/// A side with one cell, which has this id and step size and no results.
fn side_without_results(id: &str, step_size: &str) -> Side {
    let settings = [("seed", "1"), ("algorithm.fedavg.step-size", step_size)];
    let cell = SideCell { runs: SideRuns::Missing, ..SideCell::new("a", settings) };
    let cells = [(CellId::read(id).unwrap(), cell)].into();
    side_of(SideExperiment { seed: 1, cells, ..SideExperiment::default() })
}

/// Counterparts that never had results have not failed.
#[test]
fn counterparts_without_results_are_no_change() {
    let old = side_without_results("0000000000000001", "0.1");
    let new = side_without_results("0000000000000002", "0.101");
    let found = compare(&old, &new, &Options::default());
    assert_eq!(found.changed.len(), 0);
    assert_eq!((found.removed.len(), found.added.len()), (0, 0), "they are a pair");
}

/// 3 % more with little noise: significantly more, and within the margin.
#[test]
fn what_lies_within_the_margin_is_equivalent_however_sure() {
    let old = sample(1, 10, 1.0);
    let mut rng = Stream::shared_instance(9);
    let new =
        old.iter().map(|x| x.map(|x| x * (1.03 + 0.001 * rng.gaussian()))).collect::<Vec<_>>();
    let change = changed(&old, &new);
    assert!(change.shift.unwrap().differs < 1e-6);
    assert_eq!(change.verdict, ChangeVerdict::Equivalent);
    let strict = Options { margin: 0.01, ..Options::default() };
    let before = side(vec![cell("a", old)]);
    let after = side(vec![cell("b", new)]);
    assert_eq!(compare(&before, &after, &strict).changed[0].verdict, ChangeVerdict::Worse);
}

#[test]
fn divergence_is_never_averaged_away() {
    let old = sample(1, 10, 1.0);
    let mut lost = sample(1, 10, 0.1);
    lost[3] = None;
    // Nine runs are ten times better, and one diverged.
    let change = changed(&old, &lost);
    assert_eq!((change.verdict, change.diverged()), (ChangeVerdict::NewlyDiverged, (0, 1)));
    assert!(change.shift.is_none());
    assert_eq!(changed(&lost, &old).verdict, ChangeVerdict::NoLongerDiverged);
    // As many diverge, but another one.
    let mut other = old.clone();
    other[4] = None;
    assert_eq!(changed(&lost, &other).verdict, ChangeVerdict::NewlyDiverged);
    let mut worse = sample(1, 10, 1.5);
    worse[3] = None;
    let change = changed(&lost, &worse);
    assert_eq!((change.verdict, change.shift.unwrap().n), (ChangeVerdict::Worse, 9));
    assert!(change.note.contains("9 runs that finished on both sides"), "{}", change.note);
}

/// A cell of a report that keeps the final errors of the first four of these runs.
fn first_runs(digest: &str, finals: &[Option<f64>]) -> SideCell {
    let (first, later) = finals.split_at(4);
    let omitted = OmittedRuns { count: later.len() as u32, diverged: count_diverged(later) as u32 };
    let digest = TraceDigest::of(digest);
    let runs = SideRuns::Done { digest, finals: first.into(), omitted };
    SideCell { runs, ..cell("", Vec::new()) }
}

#[test]
fn the_first_runs_of_a_report_are_paired() {
    let finals = sample(1, 10, 1.0);
    let risen = sample(1, 10, 1.5);
    let all_risen = cell("b", risen.clone());
    for after in [all_risen, first_runs("b", &risen)] {
        let found = change_of(first_runs("a", &finals), after);
        assert_eq!((found.verdict, found.shift.unwrap().n), (ChangeVerdict::Worse, 4));
        assert_eq!(found.runs(), (10, 10));
        assert!(found.note.contains("among the first 4, which a report keeps"), "{}", found.note);
    }
    // A later run diverges, of which a report has no more than the number.
    let mut lost = finals.clone();
    lost[7] = None;
    for after in [cell("b", lost.clone()), first_runs("b", &lost)] {
        let found = change_of(first_runs("a", &finals), after.clone());
        assert_eq!((found.verdict, found.diverged()), (ChangeVerdict::NewlyDiverged, (0, 1)));
        assert_eq!(found.note, "1 of 10 runs diverge and did not before");
        let back = change_of(after, first_runs("a", &finals));
        assert_eq!(back.verdict, ChangeVerdict::NoLongerDiverged);
    }
    // Of other replicates nothing is known.
    let found = change_of(first_runs("a", &finals), first_runs("b", &lost[..9]));
    assert_eq!(found.verdict, ChangeVerdict::SameErrors);
}

/// Of four cells two lose their results, one gets some, and one has none on either side, which is no change.
#[test]
fn lost_results_come_first_and_fail() {
    let sound = || cell("a", sample(1, 5, 1.0));
    let lost = |runs: SideRuns| SideCell { runs, ..sound() };
    let found = compared(
        vec![sound(), sound(), lost(SideRuns::Missing), lost(SideRuns::Missing)],
        vec![
            lost(SideRuns::Damaged("0123456789abcdef.parquet: bad".into())),
            lost(SideRuns::Missing),
            sound(),
            lost(SideRuns::Missing),
        ],
    );
    let verdicts: Vec<ChangeVerdict> = found.changed.iter().map(|c| c.verdict).collect();
    assert_eq!(verdicts, [ChangeVerdict::Failed, ChangeVerdict::Failed, ChangeVerdict::Recovered]);
    assert_eq!(found.count(Class::Failed), 2);
    assert!(found.changed[0].note.contains("damaged: 0123456789abcdef.parquet: bad"));
}

#[test]
fn errors_of_zero_and_rounding_have_no_logarithm() {
    let zero = vec![Some(0.0); 5];
    let tiny: Vec<Option<f64>> = (1..6).map(|i| Some(1e-33 * f64::from(i))).collect();
    let change = changed(&zero, &tiny);
    assert_eq!(change.verdict, ChangeVerdict::Equivalent);
    assert!(change.note.contains("count as 1e-28"), "{}", change.note);
    let real: Vec<Option<f64>> = (1..6).map(|i| Some(1e-3 * f64::from(i))).collect();
    let change = changed(&zero, &real);
    assert_eq!(change.verdict, ChangeVerdict::Worse);
    assert!(change.shift.unwrap().interval.1.is_finite());
    assert_eq!(changed(&real, &zero).verdict, ChangeVerdict::Better);
}

#[test]
fn without_noise_the_margin_decides_and_one_noisy_run_decides_nothing() {
    let exact = |n: usize, value: f64| {
        cell_with(&value.to_string(), vec![Some(value); n], &[("oracle", "exact")])
    };
    for n in [1, 4] {
        let change = change_of(exact(n, 1.0), exact(n, 1.06));
        assert_eq!((change.verdict, change.shift), (ChangeVerdict::Worse, None));
        assert!(change.note.contains("nothing is random"), "{}", change.note);
        assert_eq!(change_of(exact(n, 1.0), exact(n, 1.04)).verdict, ChangeVerdict::Equivalent);
        assert_eq!(change_of(exact(n, 1.0), exact(n, 0.9)).verdict, ChangeVerdict::Better);
    }
    assert_eq!(changed(&[Some(1.0)], &[Some(9.0)]).verdict, ChangeVerdict::Underpowered);
    for random in [("algorithm.fedavg.cohort", "2"), ("instance", "per-replicate")] {
        let one_run = |value: f64| {
            let more = [("oracle", "exact"), random];
            cell_with(&value.to_string(), vec![Some(value)], &more)
        };
        let change = change_of(one_run(1.0), one_run(9.0));
        assert_eq!(change.verdict, ChangeVerdict::Underpowered, "{random:?}");
    }
}

/// The errors of an algorithm that is not built in, of one run without noise of oracles.
#[test]
fn one_run_of_a_custom_algorithm_decides_nothing() {
    let custom = |value: f64| {
        let settings = [("seed", "1"), ("oracle", "exact"), ("algorithm.own.step-size", "0.1")];
        let runs = SideRuns::done(TraceDigest::of(&value.to_string()), vec![Some(value)]);
        SideCell { runs, ..SideCell::new("a", settings) }
    };
    assert_eq!(change_of(custom(1.0), custom(9.0)).verdict, ChangeVerdict::Underpowered);
}

/// Four of five exact runs, each on its own instance, diverged on both sides.
#[test]
fn one_instance_of_several_decides_nothing() {
    let on_instances = |value: f64| {
        let mut finals = vec![None; 5];
        finals[0] = Some(value);
        let more = [("oracle", "exact"), ("instances", "5")];
        cell_with(&value.to_string(), finals, &more)
    };
    let change = change_of(on_instances(1.0), on_instances(9.0));
    assert_eq!(change.verdict, ChangeVerdict::Underpowered);
}

#[test]
fn more_replicates_are_paired_with_those_that_were() {
    let more = cell_with("b", sample(1, 20, 1.3), &[("replicates", "20")]);
    let record = |id: &str, cell: SideCell| {
        let cells = [(id_of(id), cell)].into();
        side_of(SideExperiment { seed: 1, cells, ..SideExperiment::default() })
    };
    let old = record("a", cell("a", sample(1, 10, 1.0)));
    let found = compare(&old, &record("b", more), &Options::default());
    let change = &found.changed[0];
    assert_eq!((change.verdict, change.shift.unwrap().n), (ChangeVerdict::Worse, 10));
    let replicates =
        OtherSetting { path: "replicates".into(), before: "–".into(), after: "20".into() };
    assert_eq!(change.pair.other, [replicates]);
    assert!(found.added.is_empty() && found.removed.is_empty());
    assert_eq!((change.pair.before, change.pair.after), (id_of("a"), id_of("b")));
}

/// A side with one cell, which has this id, results, and these settings of its data set.
fn side_on_dataset(id: &str, dataset: &[(&str, &str)]) -> Side {
    let mut paths = Vec::new();
    for (key, value) in dataset {
        paths.push((format!("problem.logistic-dataset.dataset.{key}"), *value));
    }
    let settings: Vec<(&str, &str)> = paths.iter().map(|(path, v)| (path.as_str(), *v)).collect();
    let cells = [(id_of(id), cell_with(id, sample(1, 5, 1.0), &settings))].into();
    side_of(SideExperiment { seed: 1, cells, ..SideExperiment::default() })
}

/// Whether two cells are said to have the same records; `common` are settings of their data set that both have.
fn have_same_records(
    before: &[(&str, &str)],
    after: &[(&str, &str)],
    common: &[(&str, &str)],
) -> bool {
    let before = side_on_dataset("a", &[before, common].concat());
    let after = side_on_dataset("b", &[after, common].concat());
    let found = compare(&before, &after, &Options::default());
    assert_eq!(found.problems.len(), 1);
    found.problems[0].has_same_records
}

/// A column that splits the records is no feature by default, and records without a value in it may be dropped.
#[test]
fn a_split_by_column_may_be_of_other_records() {
    let drawn = [("clients", "10"), ("split", "iid")];
    let proportions = [("clients", "20"), ("split.dirichlet", "0.5")];
    let by_column = [("split.column", "hospital")];
    let by_other_column = [("split.column", "region")];
    let named = [("features", "[\"age\", \"height\"]")];
    let dropping = [named[0], ("missing", "drop")];
    assert!(have_same_records(&drawn, &proportions, &[]));
    assert!(have_same_records(&drawn, &proportions, &dropping));
    assert!(have_same_records(&drawn, &by_column, &named));
    assert!(have_same_records(&by_column, &by_other_column, &named));
    for common in [&[][..], &dropping] {
        assert!(!have_same_records(&drawn, &by_column, common), "{common:?}");
        assert!(!have_same_records(&by_column, &drawn, common), "{common:?}");
        assert!(!have_same_records(&by_column, &by_other_column, common), "{common:?}");
    }
    assert!(!have_same_records(&[("standardise", "false")], &drawn[..1], &drawn[1..]));
}

#[test]
fn what_cannot_be_compared_says_which_of_three() {
    let reason = |edit: &dyn Fn(&mut SideExperiment)| {
        let mut other = side(Vec::new());
        let record = other.experiments.get_mut("e").unwrap();
        let mut alien = cell("b", sample(1, 5, 1.0));
        alien.label = "other".into();
        record.cells.insert(id_of("f"), alien);
        edit(record);
        let found = compare(&side(vec![cell("a", sample(1, 5, 1.0))]), &other, &Options::default());
        assert!(found.is_empty());
        let one = found.incomparable[0].clone();
        (one.what, one.before, one.after)
    };
    assert_eq!(reason(&|r| r.seed = 8), ("seed", "1".into(), "8".into()));
    assert_eq!(reason(&|r| r.schema = 0), ("schema", SCHEMA.to_string(), "0".into()));
    assert_eq!(reason(&|_| ()).0, "manifest");
    let foreign = Side { foreign: Some(1), ..Side::default() };
    let found = compare(&foreign, &side(Vec::new()), &Options::default());
    assert_eq!((found.incomparable[0].what, &*found.incomparable[0].before), ("schema", "1"));
}

#[test]
fn claims_fail_when_they_turn_to_refuted() {
    use crate::stats::verdict::Verdict::{self, Inconclusive, Refuted, Supported};
    fn claim(verdict: Verdict, expected_refuted: bool) -> SideClaim {
        let statement = String::new();
        SideClaim {
            id: "c".into(),
            statement,
            verdict,
            expected_refuted,
            estimate: 1.0,
            low: 0.0,
            high: 2.0,
        }
    }
    let found = |old: Option<SideClaim>, new: Option<SideClaim>| {
        let with = |claim: Option<SideClaim>| {
            let mut side = side(vec![cell("a", sample(1, 5, 1.0))]);
            side.experiments.get_mut("e").unwrap().claims = Some(claim.into_iter().collect());
            side
        };
        let found = compare(&with(old), &with(new), &Options::default());
        (found.claims.len(), found.count(Class::Claims))
    };
    let expected_refuted = true;
    let supported = Some(claim(Supported, !expected_refuted));
    let refuted = Some(claim(Refuted, !expected_refuted));
    assert_eq!(found(supported.clone(), refuted.clone()), (1, 1));
    assert_eq!(found(supported.clone(), Some(claim(Refuted, expected_refuted))), (1, 0));
    assert_eq!(found(refuted.clone(), refuted.clone()), (0, 0));
    assert_eq!(found(supported.clone(), Some(claim(Inconclusive, !expected_refuted))), (1, 0));
    assert_eq!(found(None, refuted), (1, 0));
    assert_eq!(found(supported, None), (1, 0));
}
