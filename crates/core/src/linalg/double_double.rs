//! Numbers of about 32 digits: unevaluated sums of two doubles.
//!
//! The algorithms and their relative errors are those of Joldes, Muller and Popescu, *Tight and
//! rigorous error bounds for basic building blocks of double-word arithmetic* (ACM TOMS 44, 2017).
//! No operation is fused, so that the bits are equal on every processor.

/// A bound on the relative error of each operation of [`Dd`] but [`Dd::exp`]. With u = 2⁻⁵³ the
/// errors are at most 3u² for a sum, 7u² for a product and 15u² for a quotient, and this is 64u². It
/// does not hold where a number is below 1e-290, whose products lose their rounding errors.
pub const DD_EPSILON: f64 = 7.888_609_052_210_118e-31;

/// A bound on the relative error of [`Dd::exp`] for arguments of at most 700 in absolute value, 2⁻⁸⁸.
pub const DD_EXP_ERROR: f64 = 3.231_174_267_785_264_4e-27;

/// A number of about 32 digits: the unevaluated sum hi + lo.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dd {
    /// The number, rounded to a double.
    pub hi: f64,
    /// What rounding leaves: the number minus `hi`, rounded to a double.
    lo: f64,
}

impl From<f64> for Dd {
    fn from(hi: f64) -> Self {
        Self { hi, lo: 0.0 }
    }
}

impl Dd {
    /// ln 2.
    const LN_2: Self = Self { hi: std::f64::consts::LN_2, lo: 2.319_046_813_846_299_6e-17 };

    /// hi + lo as a double-double, if |hi| ≥ |lo| or hi is 0 (Dekker): `lo` becomes what rounding the sum leaves.
    fn normal(hi: f64, lo: f64) -> Self {
        let sum = hi + lo;
        Self { hi: sum, lo: lo - (sum - hi) }
    }

    /// The product of two doubles, exactly, unless it is below 1e-290 or one of them is above 1e299 in absolute value.
    #[inline(always)]
    pub fn product(a: f64, b: f64) -> Self {
        let (hi, lo) = two_product(a, b);
        Self { hi, lo }
    }

    /// self + y, where y is a double.
    pub fn plus(self, y: f64) -> Self {
        let (sum, error) = two_sum(self.hi, y);
        Self::normal(sum, error + self.lo)
    }

    /// self + y, where both are double-double.
    #[inline(always)]
    pub fn plus_dd(self, y: Self) -> Self {
        let (sum, error) = two_sum(self.hi, y.hi);
        let (low, low_error) = two_sum(self.lo, y.lo);
        let first = Self::normal(sum, error + low);
        Self::normal(first.hi, first.lo + low_error)
    }

    /// self − a x, where a is a double.
    pub fn minus_product(self, a: f64, x: Self) -> Self {
        self.plus_dd(x.times_double(a).negated())
    }

    /// −self.
    #[inline(always)]
    pub fn negated(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }

    /// a · self, where a is a double.
    #[inline(always)]
    pub fn times_double(self, a: f64) -> Self {
        let (product, error) = two_product(a, self.hi);
        Self::normal(product, error + a * self.lo)
    }

    /// self · y, where both are double-double.
    pub fn times(self, y: Self) -> Self {
        let (product, error) = two_product(self.hi, y.hi);
        Self::normal(product, error + (self.hi * y.lo + self.lo * y.hi))
    }

    /// self/y, where both are double-double, by long division to three digits of 53 bits each.
    pub fn over(self, y: Self) -> Self {
        let first = self.hi / y.hi;
        let rest = self.minus_product(first, y);
        let second = rest.hi / y.hi;
        let third = rest.minus_product(second, y).hi / y.hi;
        Self::normal(first, second).plus(third)
    }

    /// e^self, for |self| ≤ 700; see [`DD_EXP_ERROR`].
    ///
    /// With self = k ln 2 + 512 y and |y| ≤ 6.8e-4, the terms of the series of e^y that are left out
    /// are below 2⁻¹¹³. The error of y is that of k ln 2 to within 2⁻⁹⁴ over 512, and nine squarings
    /// multiply all relative errors of e^y by 512.
    pub fn exp(self) -> Self {
        const SQUARINGS: i32 = 9;
        const TERMS: i32 = 8;
        let k = libm::round(self.hi / Self::LN_2.hi);
        let y = self.minus_product(k, Self::LN_2).scaled(-SQUARINGS);
        let mut sum = Self::from(1.0);
        for n in (1..=TERMS).rev() {
            sum = y.times(sum).over(Self::from(f64::from(n))).plus(1.0);
        }
        for _ in 0..SQUARINGS {
            sum = sum.times(sum);
        }
        sum.scaled(k as i32)
    }

    /// 2^k · self.
    fn scaled(self, k: i32) -> Self {
        Self { hi: libm::ldexp(self.hi, k), lo: libm::ldexp(self.lo, k) }
    }
}

/// a + b and its rounding error, exactly (Knuth).
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// a b and its rounding error, exactly (Dekker, no fused operation), within the limits of [`Dd::product`].
#[inline(always)]
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let (ah, al) = split(a);
    let (bh, bl) = split(b);
    (product, ((ah * bh - product) + ah * bl + al * bh) + al * bl)
}

/// x as the sum of two doubles of at most 26 bits each (Veltkamp), whose products are exact.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    // 2²⁷ + 1.
    let scaled = 134_217_729.0 * x;
    let high = scaled - (scaled - x);
    (high, x - high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn double_double_keeps_what_doubles_lose() {
        let x = Dd::from(1.0).plus(1e-25).plus(-1.0);
        assert_eq!(x.hi, 1e-25);
        let y = Dd::from(1.0).minus_product(1.0 + f64::EPSILON, Dd::from(1.0 - f64::EPSILON));
        assert_eq!(y.hi, f64::EPSILON * f64::EPSILON);
    }

    /// The relative difference of x and y, |x − y|/|y|.
    fn apart(x: Dd, y: Dd) -> f64 {
        (x.plus_dd(y.negated()).hi / y.hi).abs()
    }

    #[test]
    fn quotients_undo_products() {
        let mut rng = crate::rng::Stream::shared_instance(5);
        for _ in 0..1000 {
            let x = Dd::from(rng.gaussian()).plus(1e-17 * rng.gaussian());
            let y = Dd::from(rng.gaussian()).plus(1e-17 * rng.gaussian());
            assert!(apart(x.over(y).times(y), x) <= 2.0 * DD_EPSILON);
        }
    }

    #[test]
    fn exponentials_have_the_stated_error() {
        // e, of which 40 digits are 2.718281828459045235360287471352662497757, as a double and the rest.
        let e = Dd { hi: std::f64::consts::E, lo: 1.445_646_891_729_250_2e-16 };
        assert!(apart(Dd::from(1.0).exp(), e) <= DD_EXP_ERROR);
        assert_eq!(Dd::default().exp().hi, 1.0);
        let mut rng = crate::rng::Stream::shared_instance(6);
        for scale in [1e-20, 1e-5, 1.0, 30.0, 340.0] {
            for _ in 0..200 {
                let x = Dd::from(scale * (2.0 * rng.uniform() - 1.0));
                let y = Dd::from(scale * (2.0 * rng.uniform() - 1.0));
                let product = x.exp().times(y.exp());
                assert!(apart(product, x.plus_dd(y).exp()) <= 3.0 * DD_EXP_ERROR, "{x:?} {y:?}");
            }
        }
    }
}
