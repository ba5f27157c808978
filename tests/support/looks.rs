//! Legends and the curves that they name: an entry has to look as its curve is drawn.

use serde::Deserialize;

/// How a line looks: colour, dashes, and the corners of its mark around the middle, by their
/// reach.
#[derive(Clone, Debug, Deserialize)]
pub struct Look {
    pub ink: Option<String>,
    pub dash: Vec<f64>,
    pub mark: Vec<[f64; 2]>,
}

impl Look {
    /// Whether two looks are one, but for whole pixels.
    fn is(&self, other: &Self) -> bool {
        let near = |(a, b): (&[f64; 2], &[f64; 2])| (0..2).all(|i| (a[i] - b[i]).abs() < 0.2);
        let marks = self.mark.len() == other.mark.len();
        let marks = marks && self.mark.iter().zip(&other.mark).all(near);
        self.ink == other.ink && self.dash == other.dash && marks
    }
}

/// An entry of a legend, or what is drawn of a curve.
#[derive(Clone, Debug, Deserialize)]
pub struct Named {
    pub label: String,
    /// The curves that an entry names besides, because they coincide with its own.
    #[serde(default)]
    pub with: Vec<String>,
    /// Of what is drawn: `measured`, `theory` and others.
    #[serde(default)]
    pub role: String,
    #[serde(flatten)]
    pub look: Look,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Drawing {
    pub id: String,
    /// Who drew it.
    #[serde(default)]
    pub by: String,
    pub keys: Vec<Named>,
    pub lines: Vec<Named>,
}

/// Compares a legend with its curves; how many names were compared.
pub fn compare(drawing: &Drawing) -> usize {
    let Drawing { id, by, keys, lines } = drawing;
    let mut compared = 0;
    for key in keys {
        let named: Vec<&Named> = lines.iter().filter(|line| line.label == key.label).collect();
        let is_drawn = key.look.mark.is_empty() || !named.is_empty();
        assert!(is_drawn, "{id} by {by}: {} is not drawn", key.label);
        for line in named {
            assert!(line.look.is(&key.look), "{id} by {by}: {key:?} is drawn as {line:?}");
            compared += 1;
        }
    }
    for (i, line) in lines.iter().enumerate() {
        let label = &line.label;
        if line.role == "selected" {
            // A ring around a point of a curve that has a key.
            continue;
        }
        if line.role == "theory" {
            // It has the colour of its curve, and a dash of the legend.
            let measured = lines.iter().filter(|other| other.role == "measured");
            let of = measured.filter(|other| label.ends_with(&other.label));
            let curve = of.max_by_key(|other| other.label.len());
            let curve = curve.unwrap_or_else(|| panic!("{id} by {by}: {label} has no curve"));
            assert_eq!(line.look.ink, curve.look.ink, "{id} by {by}: {label}");
            // Its own entry, which is compared above, or that of its kind.
            let has_own = keys.iter().any(|key| key.label == *label);
            let kinds = keys
                .iter()
                .filter(|key| key.look.mark.is_empty() && key.look.dash == line.look.dash);
            assert!(has_own || kinds.count() == 1, "{id} by {by}: {label}");
        } else {
            let names = |key: &Named| key.label == *label || key.with.contains(label);
            let named = keys.iter().any(names);
            assert!(named, "{id} by {by}: {label} has no key");
        }
        for other in lines[..i].iter().filter(|other| other.label != *label) {
            // Predictions of one height have no marks: their height tells them apart.
            let is_flat = line.role == "theory" && line.look.mark.is_empty();
            let alike = line.role == other.role && !is_flat && line.look.is(&other.look);
            assert!(!alike, "{id} by {by}: {label} and {} look alike", other.label);
        }
    }
    compared
}
