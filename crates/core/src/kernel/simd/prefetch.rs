//! Hints to read memory before it is needed.

/// Prefetches the cache line at `from`, if the processor can; nothing is read, so that the address need not be valid.
#[inline(always)]
pub(in crate::kernel) fn prefetch<T>(from: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and a prefetch touches no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = from;
}

/// Prefetches the cache lines of `bytes` bytes from `from` on, whose addresses need not be valid.
#[inline(always)]
pub fn prefetch_all<T>(from: *const T, bytes: usize) {
    (0..bytes).step_by(64).for_each(|offset| prefetch(from.cast::<u8>().wrapping_add(offset)));
}
