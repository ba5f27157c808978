//! Two sets of final errors, cell by cell: what is gone, what is new, what has
//! the same bits, and what changed, by how much and how surely.
//!
//! Streams are common, so replicates are paired. *Invariant*: cells with equal
//! digests enter no statistics; diverged replicates are never averaged away.

use crate::stats::{Ratio, holm};
use crate::trace::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Name of the file beside a report that holds its finals.
pub const FILE: &str = "finals.csv";

/// A cell's final errors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Name of the algorithm.
    pub label: String,
    /// Digest of the traces.
    pub digest: String,
    /// ‖θ_T − θ*‖² a replicate; `None` where it diverged.
    pub finals: Vec<Option<f64>>,
}

impl Cell {
    fn diverged(&self) -> usize {
        self.finals.iter().filter(|f| f.is_none()).count()
    }
}

/// The final errors of an experiment, or of several, by cell id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finals(pub BTreeMap<String, Cell>);

const HEAD: &str = "cell,digest,replicate,outcome,sq_error,label";

impl Finals {
    /// The final errors of these cells.
    pub fn of(cells: &[super::Result]) -> Self {
        let cell = |result: &super::Result| {
            let finals = result.traces.iter().map(|t| match t.outcome {
                Outcome::Finished => t.sq_error.last().copied(),
                Outcome::Diverged => None,
            });
            let (label, digest) = (result.cell.label.clone(), result.digest.clone());
            (result.cell.id.clone(), Cell { label, digest, finals: finals.collect() })
        };
        Self(cells.iter().map(cell).collect())
    }

    /// A line a cell and replicate, every bit kept.
    pub fn to_csv(&self) -> String {
        let mut out = format!("{HEAD}\n");
        for (id, cell) in &self.0 {
            for (replicate, value) in cell.finals.iter().enumerate() {
                let outcome = if value.is_some() { Outcome::Finished } else { Outcome::Diverged };
                let value = value.map(|v| v.to_string()).unwrap_or_default();
                let label = cell.label.replace(char::is_control, " ");
                let _ = writeln!(
                    out,
                    "{id},{},{replicate},{},{value},{label}",
                    cell.digest,
                    outcome.name()
                );
            }
        }
        out
    }

    /// Adds what [`Finals::to_csv`] wrote.
    ///
    /// # Errors
    /// The number of the first line that it did not write.
    pub fn add_csv(&mut self, text: &str) -> Result<(), usize> {
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, head)| head) != Some(HEAD) {
            return Err(1);
        }
        for (number, line) in lines {
            self.add_line(line).ok_or(number + 1)?;
        }
        Ok(())
    }

    fn add_line(&mut self, line: &str) -> Option<()> {
        let parts: Vec<&str> = line.splitn(6, ',').collect();
        let [id, digest, replicate, outcome, value, label] = parts.as_slice() else { return None };
        let value = match Outcome::named(outcome)? {
            Outcome::Finished => Some(value.parse().ok()?),
            Outcome::Diverged => None,
        };
        let cell = self.0.entry((*id).to_owned()).or_insert_with(|| Cell {
            label: (*label).to_owned(),
            digest: (*digest).to_owned(),
            finals: Vec::new(),
        });
        (replicate.parse() == Ok(cell.finals.len())).then(|| cell.finals.push(value))
    }
}

/// What became of a cell whose bits changed.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its id.
    pub id: String,
    /// Name of the algorithm.
    pub label: String,
    /// Replicates that diverged, before and after.
    pub diverged: (usize, usize),
    /// How many times larger the mean error is after, where nothing diverged.
    pub ratio: Option<Ratio>,
    /// The verdict.
    pub verdict: Verdict,
}

/// What is known of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Replicates diverged that did not.
    NewlyDiverged,
    /// The mean error rose (Holm, family-wise level 5 %).
    Worse,
    /// The mean error fell (Holm, family-wise level 5 %).
    Better,
    /// The bits differ; the runs do not tell which is better.
    NotTold,
    /// The final errors are the same; other rows or columns differ.
    SameErrors,
}

/// Two sets of finals, compared.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Ids and labels that only the second has.
    pub added: Vec<(String, String)>,
    /// Ids and labels that only the first has.
    pub removed: Vec<(String, String)>,
    /// Cells with the same bits in both.
    pub identical: usize,
    /// Cells whose bits changed, the worst verdict first.
    pub changed: Vec<Change>,
}

impl Comparison {
    /// Whether a cell became worse, or diverges where it did not.
    pub fn has_regression(&self) -> bool {
        self.changed.iter().any(|c| c.verdict <= Verdict::Worse)
    }

    /// Whether no cell is in both.
    pub fn is_empty(&self) -> bool {
        self.identical == 0 && self.changed.is_empty()
    }
}

/// Compares `after` with `before`.
pub fn compare(before: &Finals, after: &Finals) -> Comparison {
    let mut out = Comparison::default();
    let gone = before.0.iter().filter(|(id, _)| !after.0.contains_key(*id));
    out.removed = gone.map(|(id, cell)| (id.clone(), cell.label.clone())).collect();
    for (id, new) in &after.0 {
        match before.0.get(id) {
            None => out.added.push((id.clone(), new.label.clone())),
            Some(old) if old.digest == new.digest => out.identical += 1,
            Some(old) => out.changed.push(change(id, old, new)),
        }
    }
    let p: Vec<f64> = out.changed.iter().map(|c| c.ratio.map_or(1.0, |r| r.p)).collect();
    for (change, p) in out.changed.iter_mut().zip(holm(&p)) {
        if let (Some(ratio), true) = (change.ratio, p <= 0.05) {
            change.verdict = if ratio.estimate > 1.0 { Verdict::Worse } else { Verdict::Better };
        }
    }
    out.changed.sort_by(|a, b| (a.verdict, &a.id).cmp(&(b.verdict, &b.id)));
    out
}

fn change(id: &str, old: &Cell, new: &Cell) -> Change {
    let diverged = (old.diverged(), new.diverged());
    let whole = |cell: &Cell| cell.finals.iter().copied().collect::<Option<Vec<f64>>>();
    let ratio = match (whole(old), whole(new)) {
        (Some(old), Some(new)) if old.len() == new.len() => Some(Ratio::of_means(&new, &old)),
        _ => None,
    };
    let verdict = match diverged {
        (was, is) if is > was => Verdict::NewlyDiverged,
        _ if old.finals == new.finals => Verdict::SameErrors,
        _ => Verdict::NotTold,
    };
    Change { id: id.into(), label: new.label.clone(), diverged, ratio, verdict }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn cell(digest: &str, finals: Vec<Option<f64>>) -> Cell {
        Cell { label: "a, b".into(), digest: digest.into(), finals }
    }

    fn sample(factor: f64) -> Vec<Option<f64>> {
        let mut rng = Stream::shared_instance(1);
        (0..10).map(|_| Some(factor * libm::exp(0.2 * rng.gaussian()))).collect()
    }

    fn one(id: &str, cell: Cell) -> Finals {
        Finals(BTreeMap::from([(id.to_owned(), cell)]))
    }

    #[test]
    fn finals_survive_their_file() {
        let mut finals = one("x", cell("d", sample(0.1)));
        finals.0.insert("y".into(), cell("e", vec![None, Some(1e-300)]));
        let mut read = Finals::default();
        assert_eq!(read.add_csv(&finals.to_csv()), Ok(()));
        assert_eq!(read, finals);
        assert_eq!(Finals::default().add_csv("other\n"), Err(1));
        assert_eq!(Finals::default().add_csv(&format!("{HEAD}\nx,d,0,finished,no,l\n")), Err(2));
        assert_eq!(Finals::default().add_csv(&format!("{HEAD}\nx,d,1,finished,1,l\n")), Err(2));
    }

    #[test]
    fn verdicts_of_known_changes() {
        let verdict =
            |old: Cell, new: Cell| compare(&one("x", old), &one("x", new)).changed[0].verdict;
        let base = || cell("a", sample(1.0));
        assert_eq!(compare(&one("x", base()), &one("x", base())).identical, 1);
        assert_eq!(verdict(base(), cell("b", sample(1.5))), Verdict::Worse);
        assert_eq!(verdict(base(), cell("b", sample(0.5))), Verdict::Better);
        let mut shuffled = sample(1.0);
        shuffled.reverse();
        assert_eq!(verdict(base(), cell("b", shuffled)), Verdict::NotTold);
        let mut lost = sample(0.1);
        lost[3] = None;
        assert_eq!(verdict(base(), cell("b", lost)), Verdict::NewlyDiverged);
        let apart = compare(&one("x", base()), &one("y", base()));
        assert!(apart.is_empty() && apart.added[0].0 == "y" && apart.removed[0].0 == "x");
        assert_eq!(verdict(base(), cell("b", sample(1.0))), Verdict::SameErrors);
    }
}
