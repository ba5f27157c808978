//! Which cells of two selections are compared with one another.

use super::judge::{Judge, fixed_keys};
use crate::cells::CellResult;
use exactfed_runner::manifest::claim::Selection;
use exactfed_runner::plan::{SettingKey, short};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The paths of the settings that vary among the cells of an entry.
type VaryingPaths<'a> = &'a [String];

/// The cells of two selections, paired.
#[derive(Default)]
pub struct Pairs<'a> {
    /// A left cell and a right one.
    pub both: Vec<(&'a CellResult<'a>, &'a CellResult<'a>)>,
    /// Left cells whose settings no right cell has.
    pub left_alone: Vec<&'a CellResult<'a>>,
    /// Right cells whose settings no left cell has.
    pub right_alone: Vec<&'a CellResult<'a>>,
}

/// The right cells that a left cell of some axes may be paired with. They are found by the
/// values of the settings that neither selection fixes, since trying each pair is too slow.
struct Partners<'a>(Vec<SameAxes<'a>>);

/// Right cells of the same axes.
struct SameAxes<'a> {
    /// Settings that have to agree where both cells have them.
    open: BTreeSet<&'a str>,
    /// Places of the cells that have every setting, by their values.
    by_values: HashMap<Vec<SettingKey<'a>>, Vec<usize>>,
    /// All cells with their places.
    all: Vec<(usize, &'a CellResult<'a>)>,
    /// Cells that lack a setting.
    lacking: Vec<(usize, &'a CellResult<'a>)>,
}

impl<'a> Partners<'a> {
    fn new(axes: VaryingPaths<'a>, right: &[&'a CellResult<'a>], fixed: &BTreeSet<&str>) -> Self {
        let mut groups: BTreeMap<VaryingPaths<'a>, SameAxes<'a>> = BTreeMap::new();
        for (place, cell) in right.iter().enumerate() {
            let own = groups.entry(&cell.cell.varied).or_insert_with(|| {
                let names = axes.iter().chain(&*cell.cell.varied).map(|path| short(path));
                SameAxes {
                    open: names.filter(|name| !fixed.contains(*name)).collect(),
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
        Self(groups.into_values().collect())
    }

    /// Places of the right cells of the same settings, in their order.
    fn of_cell(&self, cell: &'a CellResult<'a>) -> Vec<usize> {
        let mut places = Vec::new();
        for same in &self.0 {
            let agreeing = |(place, other): &(usize, &'a CellResult<'a>)| {
                let agree = same.open.iter().all(|name| {
                    let (x, y) = (cell.cell.settings.get(name), other.cell.settings.get(name));
                    x.is_none() || y.is_none() || x == y
                });
                agree.then_some(*place)
            };
            match same.values(cell) {
                Some(values) => {
                    places.extend(same.by_values.get(&values).into_iter().flatten());
                    places.extend(same.lacking.iter().filter_map(agreeing));
                }
                None => places.extend(same.all.iter().filter_map(agreeing)),
            }
        }
        places.sort_unstable();
        places
    }
}

impl<'a> SameAxes<'a> {
    /// A cell's values of the open settings; `None` if it lacks any.
    fn values(&self, cell: &'a CellResult<'a>) -> Option<Vec<SettingKey<'a>>> {
        self.open.iter().map(|name| Some(cell.cell.settings.get(name)?.key())).collect()
    }
}

impl<'a> Judge<'a> {
    /// Left cells with the right cells of the same settings and the same label, where
    /// neither selection fixes them.
    pub fn pairs(&self, left: &Selection, right: &Selection) -> Pairs<'a> {
        let fixed: BTreeSet<&str> = fixed_keys(left).chain(fixed_keys(right)).collect();
        let zipped: Vec<&str> = fixed.iter().flat_map(|key| self.zipped_with(key)).collect();
        let fixed: BTreeSet<&str> = fixed.into_iter().chain(zipped).collect();
        let right = self.chosen(right);
        let (mut found, mut paired) = (Pairs::default(), BTreeSet::new());
        let mut partners: BTreeMap<VaryingPaths<'a>, Partners<'a>> = BTreeMap::new();
        for a in self.chosen(left) {
            let known = partners
                .entry(&a.cell.varied)
                .or_insert_with(|| Partners::new(&a.cell.varied, &right, &fixed));
            let mut places = known.of_cell(a);
            if !fixed.contains("label") {
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
