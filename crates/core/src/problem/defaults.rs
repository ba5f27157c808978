//! Defaults that the settings of several problems have.

/// The default size of a batch.
pub(crate) fn one() -> usize {
    1
}

/// The default of factors and scales, which change nothing at 1.
pub(crate) fn unit() -> f64 {
    1.0
}

/// Whether a setting is 1, its default, which is not serialised.
pub(crate) fn is_unit(value: &f64) -> bool {
    *value == unit()
}

/// The default of switches that are on.
pub(crate) fn yes() -> bool {
    true
}

/// Whether a switch is on, its default, which is not serialised.
pub(crate) fn is_yes(value: &bool) -> bool {
    *value == yes()
}

/// Whether a setting is the default of its type, which is not serialised.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
