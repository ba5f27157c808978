//! `summary.csv`: the final errors of the cells.

use super::number_text::nine_digits;
use super::series::line;
use crate::evidence::Experiment;
use crate::evidence::table::FinalsColumns;
use crate::stats::mean;
use std::io::{self, Write};

/// Writes `summary.csv`, for programs: a line for each cell with results, with its settings, the summary of its main
/// quantity and the means of further quantities at the last round, and its digest. A number that does not exist is
/// empty, as all of these means are where a run diverged. The columns `n` and `diverged` count runs, also where the
/// means are over instances. Where runs are compared at a target, `reached` counts the runs that come to it, and the
/// median with its interval, in which the others count as larger than any number, is of what they have paid by then.
///
/// # Errors
/// If it cannot be written.
pub fn write_summary(experiment: &Experiment<'_>, out: &mut dyn Write) -> io::Result<()> {
    let columns = FinalsColumns::new(experiment);
    let mut heads = vec!["cell".to_owned(), "label".to_owned()];
    heads.extend(columns.settings.iter().cloned());
    heads.extend(["n", "diverged"].map(str::to_owned));
    let first = columns.first.column();
    heads.extend(["mean", "sd", "ci95_low", "ci95_high"].map(|of| format!("{first}_{of}")));
    heads.extend(columns.further.iter().map(|quantity| format!("{}_mean", quantity.column())));
    if let Some((_, quantity)) = columns.at_target {
        heads.push("reached".to_owned());
        let of_quantity = ["median", "low", "high"];
        heads.extend(of_quantity.map(|of| format!("{}_at_target_{of}", quantity.column())));
    }
    heads.push("digest".to_owned());
    out.write_all(line(&heads).as_bytes())?;
    for result in &experiment.cells {
        let cell = result.cell;
        let runs = &result.runs;
        let mut fields = vec![cell.id.to_string(), cell.label.clone()];
        fields.extend(columns.values(cell));
        fields.extend([runs.count.to_string(), runs.diverged.to_string()]);
        let summary = result.summary(columns.first);
        let four = summary.map_or([f64::NAN; 4], |s| [s.mean, s.sd, s.interval.0, s.interval.1]);
        let further =
            columns.further.iter().map(|q| runs.finals(*q).map_or(f64::NAN, |s| mean(&s)));
        fields.extend(four.into_iter().chain(further).map(nine_digits));
        if columns.at_target.is_some() {
            let found = columns.at_target(result);
            fields.push(found.map_or(String::new(), |(reached, _)| reached.to_string()));
            let numbers = found.map_or([f64::NAN; 3], |(_, found)| {
                [found.median, found.interval.0, found.interval.1]
            });
            fields.extend(numbers.map(nine_digits));
        }
        fields.push(result.digest.to_string());
        out.write_all(line(&fields).as_bytes())?;
    }
    Ok(())
}
