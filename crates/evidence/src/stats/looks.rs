//! Looks at growing samples: when claims are judged, and the level that each look may spend.
//!
//! *Invariant*: the levels of all looks add up to [`LEVEL`], whenever the looks end. By the union
//! bound the probability of a wrong verdict at any look is then at most the level, whatever the
//! dependence between looks and between claims (`tools/src/bin/sequential_size.rs` measures it).

use super::verdict::LEVEL;
use serde::{Deserialize, Serialize};

/// Looks that were planned before the first: at r, 2r, 4r, … replicates, and at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looks {
    /// Replicates at the first look.
    pub first: u64,
    /// Replicates at the last look.
    pub most: u64,
}

/// A time at which claims are judged, and what the verdicts may spend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Replicates of each cell.
    pub replicates: u64,
    /// The family-wise level of the verdicts of this look.
    pub level: f64,
}

impl Looks {
    /// The number of replicates at the last look over that at the first, by default.
    pub const GROWTH: u64 = 16;

    /// All looks in their order. Their numbers of replicates double, since then the runs of all looks together are at
    /// most twice those of the last look even where nothing can be reused. Each look spends a part of the level in
    /// proportion to the replicates that it adds (Lan and DeMets 1983, linear spending), so that about half of the
    /// level is left for the last one.
    pub fn all(&self) -> Vec<Look> {
        let mut looks = Vec::new();
        let mut before = 0;
        let mut next = self.first.max(1);
        while before < self.most {
            let replicates = next.min(self.most);
            let level = LEVEL * ((replicates - before) as f64 / self.most as f64);
            looks.push(Look { replicates, level });
            before = replicates;
            next = replicates.saturating_mul(2);
        }
        looks
    }

    /// The looks up to the one at this number of replicates; `None` if no look is at this number.
    pub fn until(&self, replicates: u64) -> Option<Vec<Look>> {
        let mut looks = self.all();
        let last = looks.iter().position(|look| look.replicates == replicates)?;
        looks.truncate(last + 1);
        Some(looks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replicates(first: u64, most: u64) -> Vec<u64> {
        Looks { first, most }.all().iter().map(|look| look.replicates).collect()
    }

    #[test]
    fn replicates_double_and_levels_add_up() {
        assert_eq!(replicates(10, 160), [10, 20, 40, 80, 160]);
        assert_eq!(replicates(10, 100), [10, 20, 40, 80, 100]);
        assert_eq!(replicates(10, 10), [10]);
        assert_eq!(replicates(1, 3), [1, 2, 3]);
        assert_eq!(replicates(0, 2), [1, 2], "a record that nobody writes must not hang");
        assert_eq!(replicates(10, 4), [4]);
        assert!(replicates(10, 0).is_empty());
        for (first, most) in [(10, 160), (10, 100), (7, 7), (1, 1 << 24), (3, 1000)] {
            let looks = Looks { first, most }.all();
            let sum: f64 = looks.iter().map(|look| look.level).sum();
            assert!((sum - LEVEL).abs() < 1e-15, "{first} {most}: {sum}");
            assert!(looks.iter().all(|look| look.level > 0.0));
        }
        assert_eq!(Looks { first: 7, most: 7 }.all()[0].level, LEVEL, "one look has all of it");
    }

    #[test]
    fn looks_end_where_the_results_do() {
        let looks = Looks { first: 10, most: 100 };
        assert_eq!(looks.until(40).map(|looks| looks.len()), Some(3));
        assert_eq!(looks.until(100), Some(looks.all()));
        assert_eq!((looks.until(50), looks.until(160)), (None, None));
    }
}
