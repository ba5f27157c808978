//! Statistics of a number of each client: of the worst one, deciles, and the spread. Every client counts once, whatever
//! its share is. There must be a client.

/// The smallest of the clients' numbers.
pub fn smallest(of_clients: Vec<f64>) -> f64 {
    sorted(of_clients)[0]
}

/// The largest of the clients' numbers; NaN if one is NaN.
pub fn largest(of_clients: Vec<f64>) -> f64 {
    decile(of_clients, 10)
}

/// The decile with this number, from 1 to 10, of the clients' numbers, by the nearest rank: of N numbers in ascending
/// order the one at place ⌈N decile/10⌉, from 1. Of fewer than eleven clients the first decile is the smallest number.
pub fn decile(of_clients: Vec<f64>, decile: usize) -> f64 {
    let rank = (of_clients.len() * decile).div_ceil(10);
    sorted(of_clients)[rank - 1]
}

/// The standard deviation of the clients' numbers, the root of the mean square distance from their mean: 0 to the last
/// bit if all are equal.
pub fn spread(of_clients: &[f64]) -> f64 {
    let n = of_clients.len() as f64;
    let first = of_clients[0];
    let mean = of_clients.iter().fold(0.0, |sum, x| sum + (x - first)) / n;
    let square =
        of_clients.iter().fold(0.0, |sum, x| sum + (x - first - mean) * (x - first - mean));
    libm::sqrt(square / n)
}

/// The numbers in ascending order, NaN last.
fn sorted(mut of_clients: Vec<f64>) -> Vec<f64> {
    of_clients.sort_by(f64::total_cmp);
    of_clients
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranks are those of the definition, also where N is no multiple of ten.
    #[test]
    fn deciles_are_nearest_ranks() {
        let numbers = |n: u32| -> Vec<f64> { (1..=n).rev().map(f64::from).collect() };
        for (n, first, ninth) in [(1, 1.0, 1.0), (3, 1.0, 3.0), (10, 1.0, 9.0), (11, 2.0, 10.0)] {
            assert_eq!(decile(numbers(n), 1), first, "{n}");
            assert_eq!(decile(numbers(n), 9), ninth, "{n}");
            assert_eq!([smallest(numbers(n)), largest(numbers(n))], [1.0, f64::from(n)]);
        }
        assert_eq!(decile(numbers(25), 1), 3.0);
        assert!(largest(vec![f64::NAN, 1.0]).is_nan());
    }

    #[test]
    fn the_spread_is_a_standard_deviation() {
        assert_eq!(spread(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), 2.0);
        assert_eq!(spread(&[0.1, 0.1, 0.1]), 0.0);
    }
}
