//! Defaults that the settings of several problems have.

/// The default size of a batch.
pub(crate) fn one() -> usize {
    1
}

/// The default of settings that are 1.
pub(crate) fn unit() -> f64 {
    1.0
}

/// Whether a setting is 1.
pub(crate) fn is_unit(value: &f64) -> bool {
    *value == unit()
}

/// Whether a setting is its default.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
