//! How much the clients of a problem differ.

use crate::evidence::problems::{InstanceRow, Instances, UnknownAtOptimum};
use crate::report::number_text::short;
use crate::report::text_table::{TextCell, TextTable};
use crate::stats::ROUNDING_FLOOR;
use exactfed_core::words::thousands;
use serde::Serialize;

/// The heterogeneity of the instances of a problem, and how exactly it is known.
#[derive(Serialize)]
pub struct HeterogeneitySection {
    /// ζ₁, ζ₂ and further measures, one row per instance.
    pub instances: TextTable,
    /// The drifts at the optimum, for each step size and number of local steps.
    pub drifts: TextTable,
    /// Whether each replicate has an instance of its own.
    pub per_replicate: bool,
    /// Whether some instance has a virtual optimum θ̃, the optimum of the averaged environment.
    pub has_virtual: bool,
    /// Whether clients have unequal weights, those of their records.
    pub is_weighted: bool,
    /// Whether clients have unequal weights that the manifest gives.
    pub has_given_weights: bool,
    /// The clause that says why the mean of a round's step is biased by who takes part; `None` if it is not.
    pub biased_participation: Option<String>,
    /// The clause that says of which cells the proximal term alone makes local steps diverge; `None` if of none.
    pub unstable_proximal_terms: Option<String>,
    /// The sentence that θ* is not unique, without its full stop; `None` if it is.
    pub several_optima: Option<String>,
    /// Sentences on the columns of data files.
    pub remarks: Vec<String>,
    /// The sentence that says why facts at θ* are not known; `None` if they are.
    pub unknown_at_optimum: Option<&'static str>,
    /// The largest bound on the error of θ* among the instances; `None` if none is known, or all are of the size of
    /// rounding.
    pub optimum_error: Option<String>,
    /// The largest errors of ζ₂, μ and L that an iteration found, if there are any.
    pub iteration_errors: Option<[String; 3]>,
}

impl HeterogeneitySection {
    /// The section on these instances: those for which the analysis has room. How many there are beyond them the notes
    /// of the tables say.
    pub fn new(found: &Instances) -> Self {
        let columns = InstanceColumns::new(found);
        // A bound of the size of rounding θ* itself to doubles is not worth a sentence.
        let optimum_error = found
            .rows
            .iter()
            .filter_map(|row| row.optimum_error)
            .reduce(f64::max)
            .filter(|error| *error >= 1e-15);
        Self {
            instances: columns.instances(found),
            drifts: columns.drifts(found),
            per_replicate: found.per_replicate,
            has_virtual: columns.has_virtual,
            is_weighted: found.rows.iter().any(|row| row.weighted && !row.has_given_weights),
            has_given_weights: found.rows.iter().any(|row| row.weighted && row.has_given_weights),
            biased_participation: found.biased_participation.clone(),
            unstable_proximal_terms: found.unstable_proximal_terms.clone(),
            several_optima: found.several_optima.clone(),
            remarks: found.remarks.clone(),
            unknown_at_optimum: found.unknown_at_optimum.map(UnknownAtOptimum::sentence),
            optimum_error: optimum_error.map(short),
            iteration_errors: iteration_errors(found),
        }
    }
}

/// The largest errors of ζ₂, μ and L, in this order and as texts, among the instances for which an iteration computes
/// them; `None` if there is no such instance.
fn iteration_errors(found: &Instances) -> Option<[String; 3]> {
    let errors = found.rows.iter().filter_map(|row| row.measures?.errors);
    let largest = errors
        .map(|errors| [errors.zeta2, errors.mu, errors.smoothness])
        .reduce(|a, b| std::array::from_fn(|i| a[i].max(b[i])))?;
    Some(largest.map(short))
}

/// Which columns the tables of instances have.
struct InstanceColumns {
    /// Whether there are several instances, so that they have names.
    is_named: bool,
    /// Whether some instance has a virtual optimum, so that its distance from θ* has a column.
    has_virtual: bool,
}

impl InstanceColumns {
    /// The columns that are needed for these instances.
    fn new(found: &Instances) -> Self {
        let gap = |row: &InstanceRow| row.measures.and_then(|measures| measures.virtual_gap);
        Self {
            is_named: found.rows.len() > 1,
            has_virtual: found.rows.iter().any(|row| gap(row).is_some()),
        }
    }

    /// The first cells of each row of an instance: its name if there are several instances, else none.
    fn name_cells(&self, instance: &InstanceRow) -> Vec<TextCell> {
        if self.is_named { vec![instance.name.as_str().into()] } else { Vec::new() }
    }

    /// The table of the measures of heterogeneity, one row for each instance.
    fn instances(&self, found: &Instances) -> TextTable {
        let mut heads: Vec<&str> = Vec::new();
        if self.is_named {
            heads.push("problem");
        }
        heads.extend(["N", "d", "ζ₁", "ζ₂", "μ", "L", "noise: N⁻¹ Σ tr C_c"]);
        if self.has_virtual {
            heads.push("‖θ* − θ̃‖");
        }
        let rows = found.rows.iter().map(|row| self.instance_row(row));
        let mut table = TextTable::new(&heads, rows);
        table.note = note_on_further(table.rows.len(), found.further, "instances");
        table
    }

    /// The row of an instance; dashes where its measures are not known.
    fn instance_row(&self, row: &InstanceRow) -> Vec<TextCell> {
        let mut cells = self.name_cells(row);
        let (clients, dimension) = row.size;
        for size in [clients, dimension] {
            cells.push(TextCell::stating(size as f64, size.to_string()));
        }
        let measures = row.measures.map_or([f64::NAN; 5], |measures| {
            [measures.zeta1, measures.zeta2, measures.mu, measures.smoothness, measures.noise]
        });
        cells.extend(measures.map(|measure| TextCell::short(without_rounding(measure))));
        if self.has_virtual {
            let gap = row.measures.and_then(|measures| measures.virtual_gap);
            cells.push(gap.map_or_else(TextCell::dash, TextCell::short));
        }
        cells
    }

    /// The table of the drifts at θ*, one row for each instance, step size and number of local steps.
    fn drifts(&self, found: &Instances) -> TextTable {
        let mut heads: Vec<&str> = Vec::new();
        if self.is_named {
            heads.push("problem");
        }
        heads.extend(["γ", "H", "average drift at θ*"]);
        let mut rows = Vec::new();
        for instance in &found.rows {
            for (step_size, local_steps, drift) in &instance.drifts {
                let mut cells = self.name_cells(instance);
                cells.push(TextCell::stating(*step_size, step_size.to_string()));
                cells.push(TextCell::stating(*local_steps as f64, local_steps.to_string()));
                cells.push(TextCell::short(without_rounding(*drift)));
                rows.push(cells);
            }
        }
        let mut table = TextTable::new(&heads, rows.into_iter());
        table.note = note_on_further(table.rows.len(), found.further_drifts, "drifts");
        table
    }
}

/// A measure of heterogeneity or noise; 0 where it is so small that rounding alone may make it differ from 0. NaN, for
/// a measure that is not known, stays NaN.
fn without_rounding(x: f64) -> f64 {
    if x.abs() < ROUNDING_FLOOR.sqrt() { 0.0 } else { x }
}

/// A note that says how many rows a table shows of all; `further` rows are left out. Empty if none is left out.
fn note_on_further(shown: usize, further: usize, what: &str) -> String {
    if further == 0 {
        return String::new();
    }
    format!("The first {} of {} {what}.", thousands(shown), thousands(shown + further))
}
