//! Which cells of two selections stand beside one another.

use super::Judge;
use crate::analysis::CellResult;
use driftbench_runner::manifest::claim::{Scalar, Selection};
use driftbench_runner::plan::{SettingKey, short};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The settings that tell the cells of an entry apart.
type Axes<'a> = &'a [String];

/// Cells of two selections that stand beside one another.
#[derive(Default)]
pub(super) struct Pairs<'a> {
    /// A left cell and a right one.
    pub both: Vec<(&'a CellResult<'a>, &'a CellResult<'a>)>,
    /// Left cells that no right cell has the settings of.
    pub left_alone: Vec<&'a CellResult<'a>>,
    /// Right cells that no left cell has the settings of.
    pub right_alone: Vec<&'a CellResult<'a>>,
}

/// The right cells that a left cell of some axes may stand beside, found by the
/// values of what both leave open and not one by one.
struct Partners<'a>(Vec<Kin<'a>>);

/// Right cells of the same axes.
struct Kin<'a> {
    /// Settings that have to agree where both cells have them.
    open: BTreeSet<&'a str>,
    /// Places of the cells by what they have, and of all of them.
    by_values: HashMap<Vec<SettingKey<'a>>, Vec<usize>>,
    all: Vec<(usize, &'a CellResult<'a>)>,
    /// Places of cells that do not have every setting.
    lacking: Vec<(usize, &'a CellResult<'a>)>,
}

impl<'a> Partners<'a> {
    fn of(axes: Axes<'a>, right: &[&'a CellResult<'a>], said: &BTreeSet<String>) -> Self {
        let mut kin: BTreeMap<Axes<'a>, Kin<'a>> = BTreeMap::new();
        for (place, cell) in right.iter().enumerate() {
            let own = kin.entry(&cell.cell.varied).or_insert_with(|| {
                let names = axes.iter().chain(&cell.cell.varied).map(|path| short(path));
                Kin {
                    open: names.filter(|name| !said.contains(*name)).collect(),
                    by_values: HashMap::new(),
                    all: Vec::new(),
                    lacking: Vec::new(),
                }
            });
            own.all.push((place, cell));
            match own.values(cell) {
                Some(values) => own.by_values.entry(values).or_default().push(place),
                None => own.lacking.push((place, cell)),
            }
        }
        Self(kin.into_values().collect())
    }

    /// Places of the right cells of the same settings, in their order.
    fn of_cell(&self, cell: &'a CellResult<'a>) -> Vec<usize> {
        let mut places = Vec::new();
        for kin in &self.0 {
            let beside = |(place, other): &(usize, &'a CellResult<'a>)| {
                let same = kin.open.iter().all(|name| {
                    let (x, y) = (cell.cell.settings.get(name), other.cell.settings.get(name));
                    x.is_none() || y.is_none() || x == y
                });
                same.then_some(*place)
            };
            match kin.values(cell) {
                Some(values) => {
                    places.extend(kin.by_values.get(&values).into_iter().flatten());
                    places.extend(kin.lacking.iter().filter_map(beside));
                }
                None => places.extend(kin.all.iter().filter_map(beside)),
            }
        }
        places.sort_unstable();
        places
    }
}

impl<'a> Kin<'a> {
    /// A cell's values of what is open; `None` if it lacks any.
    fn values(&self, cell: &'a CellResult<'a>) -> Option<Vec<SettingKey<'a>>> {
        self.open.iter().map(|name| Some(cell.cell.settings.get(name)?.key())).collect()
    }
}

impl<'a> Judge<'a> {
    /// The settings that are zipped with this one.
    pub(super) fn partners(&self, name: &str) -> Vec<String> {
        let zips = self.plan.manifest.zip.iter();
        let with = zips.filter(|zip| zip.iter().any(|other| short(other) == short(name)));
        with.flatten().map(|other| short(other).to_owned()).collect()
    }

    /// Left cells with the right cells of the same settings and the same label, where
    /// neither selection says otherwise.
    pub(super) fn pairs(&self, left: &Selection, right: &Selection) -> Pairs<'a> {
        let mut found = Pairs::default();
        let fixed = |side: &Selection| -> Vec<String> {
            let fixed = side.0.iter().filter(|(_, value)| !matches!(value, Scalar::Any(_)));
            fixed.map(|(key, _)| key.clone()).collect()
        };
        let keys: Vec<String> = fixed(left).into_iter().chain(fixed(right)).collect();
        let said: BTreeSet<String> = keys
            .iter()
            .flat_map(|key| self.partners(key).into_iter().chain([key.clone()]))
            .collect();
        let right = self.chosen(right);
        let mut paired = BTreeSet::new();
        let mut partners: BTreeMap<Axes<'a>, Partners<'a>> = BTreeMap::new();
        for a in self.chosen(left) {
            let known = partners
                .entry(&a.cell.varied)
                .or_insert_with(|| Partners::of(&a.cell.varied, &right, &said));
            let mut places = known.of_cell(a);
            if !said.contains("label") {
                places.retain(|place| right[*place].cell.label == a.cell.label);
            }
            if places.is_empty() {
                found.left_alone.push(a);
            }
            found.both.extend(places.iter().map(|place| (a, right[*place])));
            paired.extend(places);
        }
        let alone = (0..right.len()).filter(|place| !paired.contains(place));
        found.right_alone.extend(alone.map(|place| right[place]));
        found
    }
}
