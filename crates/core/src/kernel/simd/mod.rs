//! Explicit SIMD lanes: the instruction sets of the fused kernels.

#[cfg(target_arch = "aarch64")]
mod arm;
mod instruction_set;
mod lanes;
mod prefetch;
#[cfg(test)]
pub(in crate::kernel) mod testing;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
pub(in crate::kernel) use arm::{Neon, Neon as BaseLanes};
pub use instruction_set::InstructionSet;
pub(in crate::kernel) use instruction_set::InstructionSetName;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(in crate::kernel) use lanes::ScalarLane as BaseLanes;
pub(in crate::kernel) use lanes::{FoldEach, ScalarLane, Simd, Strips, fold_registers};
pub(in crate::kernel) use prefetch::prefetch;
pub use prefetch::prefetch_all;
/// The lanes that every processor of this architecture has.
#[cfg(target_arch = "x86_64")]
pub(in crate::kernel) use x86::Sse2 as BaseLanes;
#[cfg(target_arch = "x86_64")]
pub(in crate::kernel) use x86::{Avx2, Avx512, Sse2};

/// Runs `$body`, compiled for `$path`, an [`InstructionSet`]; in the body, `$I` is the type of its registers
/// ([`Simd`]). The variables that the body reads are listed with their types. The features that are enabled here are
/// those that `InstructionSet::has_avx2` and `has_avx512` ask the processor for. The body is unsafe code, for which the
/// place of the call answers.
macro_rules! in_lanes {
    (@ $(#[$features:meta])? $I:ident = $lanes:ident, ($($arg:ident: $type:ty),*), $body:expr) => {{
        $(#[$features])?
        #[allow(unused_unsafe, reason = "some bodies are safe")]
        unsafe fn compiled($($arg: $type),*) {
            type $I = $crate::kernel::simd::$lanes;
            // SAFETY: the attribute above; the rest is said where the macro is called.
            unsafe { $body }
        }
        // SAFETY: `$path` is an `InstructionSet`, so that this processor has it.
        unsafe { compiled($($arg),*) }
    }};
    ($path:expr, $I:ident, $args:tt => $body:expr) => {{
        use $crate::kernel::simd::InstructionSetName;
        match $path.name() {
            InstructionSetName::Scalar => in_lanes!(@ $I = ScalarLane, $args, $body),
            #[cfg(target_arch = "x86_64")]
            InstructionSetName::Sse2 => in_lanes!(@ $I = Sse2, $args, $body),
            #[cfg(target_arch = "x86_64")]
            InstructionSetName::Avx2 => {
                in_lanes!(@ #[target_feature(enable = "avx2,bmi2")] $I = Avx2, $args, $body)
            }
            #[cfg(target_arch = "x86_64")]
            InstructionSetName::Avx512 => in_lanes!(
                @ #[target_feature(enable = "avx2,bmi2,avx512f,avx512dq,avx512vl")]
                $I = Avx512, $args, $body
            ),
            #[cfg(target_arch = "aarch64")]
            InstructionSetName::Neon => in_lanes!(@ $I = Neon, $args, $body),
        }
    }};
}
pub(in crate::kernel) use in_lanes;
