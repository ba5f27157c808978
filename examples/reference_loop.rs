//! A loop whose processor time is the unit of docs/notes/times.toml: it never changes, so that the time of
//! everything else is compared with it on the same machine at the same time (scripts/measure.py).
//!
//! It has a third each of what experiments, builds and tests do: additions and products of numbers in
//! the first-level cache, integer arithmetic with branches, and reads at random from beyond the
//! second-level cache.
//!
//! ```sh
//! rustc -O --edition 2024 examples/reference_loop.rs -o target/reference_loop && time target/reference_loop
//! ```

use std::hint::black_box;

/// Sums and products of doubles, in eight chains.
fn multiply(rounds: u64) -> f64 {
    let mut chains = [1.0_f64, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7];
    for round in 0..rounds {
        let factor = 1.0 - 1.0 / (round as f64 + 2.0);
        for x in &mut chains {
            *x = *x * factor + 1e-3;
        }
    }
    chains.iter().sum()
}

/// The lengths of Collatz sequences, whose branches cannot be predicted.
fn branch(numbers: u64) -> u64 {
    let mut steps = 0;
    for first in 1..=numbers {
        let mut number = first;
        while number > 1 {
            number = if number.is_multiple_of(2) { number / 2 } else { 3 * number + 1 };
            steps += 1;
        }
    }
    steps
}

/// Reads of a table of 32 MB, each at a place that the one before decides on.
fn read(reads: u64) -> u64 {
    let length = 1_u64 << 22;
    let table: Vec<u64> =
        (0..length).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 42).collect();
    let mut place = 1;
    let mut sum = 0_u64;
    for i in 0..reads {
        place = table[((place + i) % length) as usize];
        sum = sum.wrapping_add(place);
    }
    sum
}

fn main() {
    let results =
        (multiply(black_box(12_000_000)), branch(black_box(300_000)), read(black_box(1_200_000)));
    println!("{results:?}");
}
