//! The instruction sets that the fused kernels are compiled for, and the choice among them.

use crate::kernel::padding::{SHORT, WIDEST, WIDEST_SHORT};
use std::fmt;

/// The instruction set of a fused kernel. All give the same bits.
///
/// *Invariant*: this processor has it. [`InstructionSet::best`] and [`InstructionSet::available`] alone make such a
/// value, so that a safe function which takes one may run code that is compiled for it. No other code can name one:
///
/// ```compile_fail
/// let path = exactfed_core::kernel::InstructionSet::Scalar;
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InstructionSet(InstructionSetName);

/// The name of an instruction set. It says nothing about this processor; an [`InstructionSet`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kernel) enum InstructionSetName {
    /// One lane, any processor.
    Scalar,
    /// Two lanes; every x86-64 has it.
    #[cfg(target_arch = "x86_64")]
    Sse2,
    /// Four lanes, with BMI2 for the draws.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Eight lanes, in addition to what [`InstructionSetName::Avx2`] has; it serves rows that fill several of
    /// its registers, and elsewhere that path is taken.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// Two lanes; every aarch64 has it.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

/// Writes the name alone, as `Avx2`: messages and benches show it.
impl fmt::Debug for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl InstructionSet {
    /// The instruction sets that this processor has, the slowest first: tests compare their bits, and benches their
    /// times. The scalar one, which every processor has, is the first.
    pub fn available() -> Vec<InstructionSet> {
        let mut paths = vec![Self(InstructionSetName::Scalar)];
        #[cfg(target_arch = "x86_64")]
        {
            paths.push(Self(InstructionSetName::Sse2));
            if Self::has_avx2() {
                paths.push(Self(InstructionSetName::Avx2));
            }
            if Self::has_avx512() {
                paths.push(Self(InstructionSetName::Avx512));
            }
        }
        #[cfg(target_arch = "aarch64")]
        paths.push(Self(InstructionSetName::Neon));
        paths
    }

    /// The fastest instruction set that this processor has, on which all runs are computed.
    #[inline]
    pub fn best() -> InstructionSet {
        #[cfg(target_arch = "x86_64")]
        return match () {
            () if Self::has_avx512() => Self(InstructionSetName::Avx512),
            () if Self::has_avx2() => Self(InstructionSetName::Avx2),
            () => Self(InstructionSetName::Sse2),
        };
        #[cfg(target_arch = "aarch64")]
        return Self(InstructionSetName::Neon);
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        return Self(InstructionSetName::Scalar);
    }

    /// Its name, by which `in_lanes!` chooses among the compiled copies of a kernel.
    #[inline(always)]
    pub(in crate::kernel) const fn name(self) -> InstructionSetName {
        self.0
    }

    /// The instruction set that serves rows of `d` numbers: this one, or one with shorter registers if the rows would
    /// not fill the registers of this one.
    #[inline]
    pub(in crate::kernel) fn for_rows(self, d: usize) -> Self {
        self.at_most(if d > SHORT { WIDEST } else { WIDEST_SHORT })
    }

    /// This instruction set or, if it has more than `lanes` lanes, the widest one that has not; `lanes` is 2 or more.
    #[inline]
    pub(in crate::kernel) fn at_most(self, lanes: usize) -> Self {
        #[cfg(not(target_arch = "x86_64"))]
        let _ = lanes;
        match self.0 {
            // A processor with AVX-512 has AVX2 (`has_avx512`), and every x86-64 has SSE2.
            #[cfg(target_arch = "x86_64")]
            InstructionSetName::Avx512 if lanes < WIDEST => {
                Self(InstructionSetName::Avx2).at_most(lanes)
            }
            #[cfg(target_arch = "x86_64")]
            InstructionSetName::Avx2 if lanes < WIDEST_SHORT => Self(InstructionSetName::Sse2),
            _ => self,
        }
    }

    /// Whether this processor has what [`InstructionSetName::Avx2`] is compiled for: every feature that `in_lanes!`
    /// enables for it must be asked for here, since its code is undefined on a processor without it.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2")
    }

    /// Whether this processor has what [`InstructionSetName::Avx512`] is compiled for: every feature that `in_lanes!`
    /// enables for it must be asked for here, as for `has_avx2`.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn has_avx512() -> bool {
        Self::has_avx2()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrower_sets_are_available_too() {
        let all = InstructionSet::available();
        assert!(all.contains(&InstructionSet::best()));
        for path in &all {
            for lanes in [2, 3, 4, 7, 8] {
                assert!(all.contains(&path.at_most(lanes)), "{path:?} with at most {lanes} lanes");
            }
            assert_eq!(format!("{path:?}"), format!("{:?}", path.name()));
        }
    }
}
