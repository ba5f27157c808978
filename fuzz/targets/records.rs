//! What report folders keep for later diffs: `record.toml`, a line `%%%`,
//! `finals.csv`, and perhaps a line `%%%` and the `finals.csv` of another day; as
//! they are, and with the hash made to agree.

#![no_main]

use exactfed::compare::{Options, SCHEMA, Side, SideExperiment, compare, record};
use exactfed::report::diff::{DiffFormat, render};
use libfuzzer_sys::fuzz_target;

/// The record with the hash that the finals have.
fn vouched(shared: &str, finals: &str) -> Option<SideExperiment> {
    let mut table = toml::from_str::<toml::Table>(shared).ok()?;
    table.insert("finals".into(), record::hash(finals).into());
    record::read(Some(&table.to_string()), finals).ok()
}

fn side(record: SideExperiment) -> Side {
    Side { name: "a".into(), experiments: [("e".to_owned(), record)].into(), ..Side::default() }
}

fuzz_target!(|text: &str| {
    let mut parts = text.split("\n%%%\n");
    let mut part = || parts.next().unwrap_or_default();
    let (shared, finals, later) = (part(), part(), part());
    let _ = record::read(Some(shared), finals);
    let Some(read) = vouched(shared, finals) else { return };
    if read.schema == SCHEMA {
        // What is read is written as it was.
        let [(_, shared), (_, finals)] = record::files(&read, || read.cells.clone().into_iter());
        let again = record::read(Some(&shared), &finals).expect("what was written can be read");
        let [(_, shared_again), (_, finals_again)] =
            record::files(&again, || again.cells.clone().into_iter());
        assert_eq!((shared, finals), (shared_again, finals_again));
    }
    let other = vouched(shared, later).unwrap_or_default();
    let comparison = compare(&side(read), &side(other), &Options::default());
    render(&comparison, &[], DiffFormat::Text).expect("a comparison can be rendered");
    render(&comparison, &[], DiffFormat::Json).expect("a comparison can be rendered");
    if text.len().is_multiple_of(8) {
        render(&comparison, &[], DiffFormat::Markdown).expect("a comparison can be rendered");
    }
});
