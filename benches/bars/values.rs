//! All measurements, by id.

use crate::support::{Timing, Value};
use std::collections::BTreeMap;

/// Criterion's results, the program's own measurements, and the reasons why others are
/// missing.
#[derive(Default)]
pub struct Values {
    pub timings: BTreeMap<String, Timing>,
    pub measured: BTreeMap<String, (Value, &'static str)>,
    reasons: BTreeMap<&'static str, String>,
}

impl Values {
    pub fn put(&mut self, id: impl Into<String>, value: f64, unit: &'static str) {
        self.measured.insert(id.into(), (Value::alone(value), unit));
    }

    /// Adds the reason why ids that begin with `first` are missing.
    pub fn missing(&mut self, first: &'static str, why: String) {
        self.reasons.insert(first, why);
    }

    /// Nanoseconds per element of criterion, or the program's own measurement.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn get(&self, id: &str) -> Result<Value, String> {
        let timed = self.timings.get(id).map(Timing::each);
        if let Some(value) = timed.or_else(|| self.measured.get(id).map(|m| m.0)) {
            return Ok(value);
        }
        let first = id.split('/').next().unwrap_or(id);
        Err(self.reasons.get(first).cloned().unwrap_or_else(|| format!("no result {id}")))
    }

    /// Every number: id, value, low, high, unit.
    pub fn csv(&self) -> String {
        let mut out = String::from("id,value,low,high,unit\n");
        for t in self.timings.values() {
            out += &csv_line(&t.id, t.iteration, "ns/iteration");
            if t.elements.is_some() {
                out += &csv_line(&t.id, t.each(), "ns/element");
            }
        }
        for (id, (value, unit)) in &self.measured {
            out += &csv_line(id, *value, unit);
        }
        out
    }
}

fn csv_line(id: &str, value: Value, unit: &str) -> String {
    let (low, high) = match value.interval {
        Some((low, high)) => (low.to_string(), high.to_string()),
        None => Default::default(),
    };
    format!("\"{}\",{},{low},{high},{unit}\n", id.replace('"', "\"\""), value.value)
}
