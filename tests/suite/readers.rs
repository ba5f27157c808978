//! Readers of files: what was written comes back, and no bytes are more than a message.

use crate::runner::runner;
use exactfed::compare::{self, OmittedRuns, Side, SideCell, SideExperiment, SideRuns, record};
use exactfed::data;
use exactfed::plan::CellId;
use exactfed::problem::arrays::{Array, Column, Contents, DataFile};
use exactfed::store::read_table;
use exactfed::trace::TraceDigest;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Any number but NaN, which equals nothing.
fn number() -> impl Strategy<Value = f64> {
    use prop::num::f64::{INFINITE, NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO | INFINITE
}

fn table(contents: Contents) -> Vec<(String, Column)> {
    match contents {
        Contents::Table(columns) => columns,
        other => panic!("{other:?}"),
    }
}

#[test]
fn csv_comes_back_bit_for_bit() {
    // A text that no number is, in any quoting.
    let texts = "x[ -~é,\"\n]{0,8}y";
    let rows = vec((number(), texts), 1..8);
    let held = |rows: Vec<(f64, String)>| {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(["n", "t, \"1\""]).unwrap();
        for (n, t) in &rows {
            writer.write_record([&format!("{n:?}"), t]).unwrap();
        }
        let bytes = writer.into_inner().unwrap();
        let columns = table(
            data::read(&DataFile::at("a.csv"), bytes, None)
                .map_err(|e| TestCaseError::fail(e.to_string()))?,
        );
        let (numbers, texts): (Vec<f64>, Vec<String>) = rows.into_iter().unzip();
        prop_assert_eq!(&columns[0], &("n".to_owned(), Column::Numbers(numbers)));
        prop_assert_eq!(&columns[1], &("t, \"1\"".to_owned(), Column::Text(texts)));
        Ok(())
    };
    runner(1, 200).run(&rows, held).unwrap();
}

#[test]
fn libsvm_comes_back_bit_for_bit() {
    let rows = vec((number(), btree_map(1_usize..40, number(), 0..6)), 1..8);
    let held = |rows: Vec<(f64, std::collections::BTreeMap<usize, f64>)>| {
        let mut text = String::new();
        for (label, features) in &rows {
            let pairs: Vec<String> = features.iter().map(|(i, x)| format!("{i}:{x:?}")).collect();
            text += &format!("{label:?} {} # {}\n\n", pairs.join("  "), label);
        }
        let read = data::read(&DataFile::at("a.svm"), text.into_bytes(), None)
            .map_err(|e| TestCaseError::fail(e.to_string()))?;
        let Contents::Records { labels, features } = read else { panic!() };
        let d = rows.iter().filter_map(|(_, r)| r.keys().max()).max().copied().unwrap_or(0);
        prop_assert_eq!((features.len(), features.dim()), (rows.len(), d));
        let all = features.to_dense();
        for (i, (label, row)) in rows.iter().enumerate() {
            prop_assert_eq!(labels[i], *label);
            for j in 0..d {
                prop_assert_eq!(all[i * d + j], row.get(&(j + 1)).copied().unwrap_or(0.0));
            }
        }
        Ok(())
    };
    runner(2, 200).run(&rows, held).unwrap();
}

#[test]
fn npz_comes_back_bit_for_bit_in_either_order() {
    let shapes = vec(0_usize..4, 0..4);
    let arrays = shapes.prop_flat_map(|shape| {
        let count = shape.iter().product::<usize>();
        (Just(shape), vec(number(), count..=count), any::<bool>())
    });
    let held = |(shape, values, big): (Vec<usize>, Vec<f64>, bool)| {
        let ends = |x: &f64| if big { x.to_be_bytes() } else { x.to_le_bytes() };
        let descr = if big { ">f8" } else { "<f8" };
        let read = |fortran: bool, values: &[f64]| {
            let bytes: Vec<u8> = values.iter().flat_map(ends).collect();
            let archive = crate::npz::npz(&[("x", descr, fortran, &shape, bytes)]);
            let read = data::read(&DataFile::at("a.npz"), archive, None);
            match read.map_err(|e| TestCaseError::fail(e.to_string()))? {
                Contents::Arrays(mut arrays) => Ok(arrays.remove("x").unwrap()),
                other => Err(TestCaseError::fail(format!("{other:?}"))),
            }
        };
        let whole = Array::of_numbers(shape.clone(), values.clone());
        prop_assert_eq!(&read(false, &values)?, &whole);
        // The first index fastest: entry (i, j, …) of it stands at i + S j + …
        let mut columns = values.clone();
        for (at, value) in values.iter().enumerate() {
            let (mut rest, mut index) = (at, Vec::new());
            for size in shape.iter().rev() {
                index.push(rest % size);
                rest /= size;
            }
            let place = index.iter().zip(shape.iter().rev()).fold(0, |p, (i, size)| p * size + i);
            columns[place] = *value;
        }
        prop_assert_eq!(&read(true, &columns)?, &whole);
        Ok(())
    };
    runner(3, 200).run(&arrays, held).unwrap();
}

/// What a user may have by that name: the bytes of a good file, some changed,
/// some gone, some twice.
fn damaged(good: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let edits = vec((any::<Index>(), any::<u8>(), 0_usize..4), 0..6);
    edits.prop_map(move |edits| {
        let mut bytes = good.clone();
        for (at, byte, how) in edits.iter().filter(|_| !good.is_empty()) {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = *byte,
                1 => bytes.truncate(at),
                2 => bytes.insert(at, *byte),
                _ => bytes.extend_from_within(at..),
            }
        }
        bytes
    })
}

#[test]
fn no_bytes_are_more_than_a_message() {
    let smoke = |name: &str| {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/smoke/data/");
        std::fs::read(format!("{root}{name}")).unwrap()
    };
    let texts = vec![b'a', 0, 0, 0, 0, 0, 0, 0, b'b', 0, 0, 0, b'c', 0, 0, 0];
    let goods = [
        crate::npz::npz(&[("t", "<U2", false, &[2], texts), ("n", "|b1", false, &[2], vec![0, 1])]),
        smoke("atoms.npz"),
        smoke("chains.npz"),
        smoke("records.csv"),
        b"+1 1:0.5 3:2 # a comment\n\n-1 2:-1e2\n".to_vec(),
        b"PAR1".to_vec(),
    ];
    let bytes = select(goods.to_vec()).prop_flat_map(damaged);
    let bytes = prop_oneof![bytes, vec(any::<u8>(), 0..200)];
    let names = select(vec!["a.npz", "a.csv", "a.libsvm", "a.parquet", "a.txt", "a"]);
    let held = |(name, bytes): (&str, Vec<u8>)| {
        if let Err(error) = data::read(&DataFile::at(name), bytes, Some(read_table)) {
            let output = error.to_string();
            prop_assert!(!output.is_empty() && output.chars().count() < 400, "{output}");
            prop_assert!(!output.contains('\u{1b}'), "{output:?}");
        }
        Ok(())
    };
    runner(4, 1000).run(&(names, bytes), held).unwrap();
}

#[test]
fn a_record_comes_back_whatever_the_texts() {
    let text = "[ -~é,\"'|\n\t\\\\]{0,6}";
    let finals = vec(prop::option::of(0.0..f64::MAX), 0..4);
    let cell = (text, btree_map("[a-z]{1,3}", text, 0..3), prop::option::of(("[ab]", finals)));
    let cells = btree_map("[0-9a-f]{4}", cell, 0..5);
    let held = |cells: std::collections::BTreeMap<String, _>| {
        let of = |(label, settings, done): (
            String,
            std::collections::BTreeMap<String, String>,
            Option<(String, _)>,
        )| {
            let runs = match done {
                Some((digest, finals)) => {
                    SideRuns::done(TraceDigest::of(&digest), Vec::into_boxed_slice(finals))
                }
                None => SideRuns::Missing,
            };
            let settings = settings.iter().map(|(path, value)| (path.as_str(), value.as_str()));
            SideCell { runs, ..SideCell::new(&label, settings) }
        };
        let cells = cells.into_iter().map(|(id, cell)| (CellId::of(&id), of(cell))).collect();
        let schema = compare::SCHEMA;
        let (manifest, looks, claims) = ("m".into(), None, Some(vec![]));
        let all = SideExperiment { schema, seed: 7, manifest, looks, cells, claims };
        let [(_, shared), (_, finals)] = record::files(&all, || all.cells.clone().into_iter());
        let again = record::read(Some(&shared), &finals);
        prop_assert_eq!(again.map_err(|w| TestCaseError::fail(format!("{w:?}")))?, all);
        Ok(())
    };
    runner(5, 200).run(&cells, held).unwrap();
    let held = |(shared, finals): (String, String)| {
        let _ = record::read(Some(&shared), &finals);
        Ok(())
    };
    runner(6, 200).run(&(any::<String>(), any::<String>()), held).unwrap();
}

/// Records that agree in nothing but their ids: fewer replicates, none, huge and
/// vanishing errors, all diverged, labels and settings of any kind.
#[test]
fn any_two_records_can_be_compared_and_reported() {
    use exactfed::report::diff::{DiffFormat, render};
    let held = |(a, b): (Side, Side)| {
        let comparison = compare::compare(&a, &b, &compare::Options::default());
        for format in [DiffFormat::Text, DiffFormat::Json, DiffFormat::Markdown] {
            let text = render(&comparison, &[], format);
            prop_assert!(text.is_ok(), "{:?}", text.err());
        }
        Ok(())
    };
    runner(7, 200).run(&(side(), side()), held).unwrap();
}

/// Records of experiments, with values at their limits.
fn side() -> impl Strategy<Value = Side> {
    use exactfed::stats::verdict::Verdict;
    let error = prop_oneof![
        Just(None),
        Just(Some(0.0)),
        Just(Some(f64::MAX)),
        Just(Some(5e-324)),
        (0.0..1e3).prop_map(Some)
    ];
    let runs = prop_oneof![
        1 => Just(SideRuns::Missing),
        1 => Just(SideRuns::Damaged("x".into())),
        6 => ("[ab]", vec(error, 0..5), 0_u32..3).prop_map(|(digest, finals, count)| {
            SideRuns::Done {
                digest: TraceDigest::of(&digest),
                finals: finals.into(),
                omitted: OmittedRuns { count, diverged: count / 2 },
            }
        }),
    ];
    let settings = btree_map("[ab]{1,2}", "[0-9.e-]{1,3}|[|`<\n]{1,3}", 0..3);
    let cell = ("[xy|<]{0,2}", settings, runs);
    let claim = (
        "[ab]",
        select(Verdict::ALL.map(|(verdict, _)| verdict).to_vec()),
        any::<bool>(),
        any::<f64>(),
    )
        .prop_map(|(id, verdict, expected_refuted, estimate)| compare::SideClaim {
            id,
            statement: "s".into(),
            verdict,
            expected_refuted,
            estimate,
            low: estimate,
            high: f64::NAN,
        });
    let record =
        (btree_map("[0-3]", cell, 0..5), prop::option::of(vec(claim, 0..3)), 0_u32..3, 0_u64..2);
    let record = record.prop_map(|(cells, claims, schema, seed)| SideExperiment {
        schema,
        seed,
        manifest: String::new(),
        looks: None,
        cells: cells
            .into_iter()
            .map(|(id, (label, settings, runs))| {
                let settings = settings.iter().map(|(path, value)| (path.as_str(), value.as_str()));
                (CellId::of(&id), SideCell { runs, ..SideCell::new(&label, settings) })
            })
            .collect(),
        claims,
    });
    btree_map("[ef]", record, 0..3).prop_map(|experiments| Side {
        name: "a".into(),
        foreign: None,
        experiments,
    })
}
