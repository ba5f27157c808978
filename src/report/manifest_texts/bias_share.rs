//! From how many clients on the squared bias exceeds the variance.

/// How large the squared bias of a cell is relative to its variance.
#[derive(Clone, Copy)]
pub struct BiasShare {
    pub clients: f64,
    /// The squared bias over the variance.
    pub ratio: f64,
}

impl BiasShare {
    /// The number of clients at which the squared bias is as large as the variance, between this cell and `other`,
    /// which has more clients: on a line through the logarithms of the two cells' clients and ratios, so that no law of
    /// the variance is assumed. `None` unless `other` has more clients, the ratio is at most 1 here and at least 1
    /// there, and not 1 in both.
    pub fn equality_before(self, other: Self) -> Option<f64> {
        let is_between = self.clients < other.clients && self.ratio <= 1.0 && other.ratio >= 1.0;
        let share = -libm::log(self.ratio) / libm::log(other.ratio / self.ratio);
        let clients = self.clients * libm::pow(other.clients / self.clients, share);
        (is_between && clients.is_finite()).then_some(clients)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between two cells, and nowhere else: the variance may fall by any law.
    #[test]
    fn the_bias_is_as_large_as_the_variance_between_two_cells() {
        let share = |clients, ratio| BiasShare { clients, ratio };
        let found = share(100.0, 0.1).equality_before(share(1000.0, 10.0)).unwrap();
        assert!((found - 1e5_f64.sqrt()).abs() < 1e-9 * found, "{found}");
        assert_eq!(share(100.0, 1.0).equality_before(share(1000.0, 2.0)), Some(100.0));
        for (few, many) in [(0.1, 0.9), (1.1, 10.0), (0.0, 2.0), (f64::NAN, 2.0), (0.5, f64::NAN)] {
            assert_eq!(share(100.0, few).equality_before(share(1000.0, many)), None);
        }
        assert_eq!(share(1000.0, 0.1).equality_before(share(100.0, 10.0)), None);
    }
}
