//! The instruction sets that the fused kernels are compiled for, and the choice among them.

use crate::kernel::padding::{SHORT, WIDEST, WIDEST_SHORT};

/// The instruction set of a fused kernel. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionSet {
    /// One lane, any processor.
    Scalar,
    /// Two lanes; every x86-64 has it.
    #[cfg(target_arch = "x86_64")]
    Sse2,
    /// Four lanes, with BMI2 for the draws.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Eight lanes, beside what [`InstructionSet::Avx2`] has; it serves rows that fill several of
    /// its registers, and elsewhere that path is taken.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// Two lanes; every aarch64 has it.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl InstructionSet {
    /// The instruction sets that this processor has, the slowest first: tests compare their bits.
    pub fn available() -> Vec<InstructionSet> {
        let mut paths = vec![InstructionSet::Scalar];
        #[cfg(target_arch = "x86_64")]
        {
            paths.push(InstructionSet::Sse2);
            if Self::has_avx2() {
                paths.push(InstructionSet::Avx2);
            }
            if Self::has_avx512() {
                paths.push(InstructionSet::Avx512);
            }
        }
        #[cfg(target_arch = "aarch64")]
        paths.push(InstructionSet::Neon);
        paths
    }

    /// The fastest instruction set that this processor has.
    #[inline]
    pub fn best() -> InstructionSet {
        #[cfg(target_arch = "x86_64")]
        return match () {
            () if Self::has_avx512() => InstructionSet::Avx512,
            () if Self::has_avx2() => InstructionSet::Avx2,
            () => InstructionSet::Sse2,
        };
        #[cfg(target_arch = "aarch64")]
        return InstructionSet::Neon;
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        return InstructionSet::Scalar;
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
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 if lanes < WIDEST => Self::Avx2.at_most(lanes),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 if lanes < WIDEST_SHORT => Self::Sse2,
            path => path,
        }
    }

    /// Whether this processor has what [`InstructionSet::Avx2`] is compiled for.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2")
    }

    /// Whether this processor has what [`InstructionSet::Avx512`] is compiled for.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn has_avx512() -> bool {
        Self::has_avx2()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
    }
}
