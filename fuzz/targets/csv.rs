//! CSV: the reader, then the problems that are built from them.

#![no_main]

use exactfed_fuzz::built;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    built("x.csv", bytes, None);
});
