//! Which cells of two selections are compared with one another.

use super::judge::{Judge, fixed_keys};
use crate::cells::CellResult;
use exactfed_runner::manifest::claim::Selection;
use exactfed_runner::plan::{Setting, short};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The cells of two selections, paired.
#[derive(Default)]
pub struct Pairs<'a, 's> {
    /// A left cell and a right one.
    pub both: Vec<(&'a CellResult<'a>, &'a CellResult<'a>)>,
    /// Cells whose settings no cell of the other side has, each with its own side.
    pub alone: Vec<(&'a CellResult<'a>, &'s Selection)>,
}

/// Right cells of the same axes, which a left cell of some axes may be paired with. They are found
/// by the values of the settings that neither selection fixes, since trying each pair is too slow.
struct SameAxes<'a> {
    /// Settings that have to agree where both cells have them.
    open: BTreeSet<&'a str>,
    /// Places of the cells by their values of these; without any, of those that lack one.
    by_values: HashMap<Option<Vec<&'a Setting>>, Vec<usize>>,
}

impl<'a> SameAxes<'a> {
    /// All right cells for left cells of these axes.
    fn groups(
        axes: &'a [String],
        right: &[&'a CellResult<'a>],
        fixed: &BTreeSet<&str>,
    ) -> Vec<Self> {
        let mut groups: BTreeMap<&[String], SameAxes<'a>> = BTreeMap::new();
        for (place, cell) in right.iter().enumerate() {
            let own = groups.entry(&cell.cell.varied).or_insert_with(|| {
                let names = axes.iter().chain(&*cell.cell.varied).map(|path| short(path));
                let open = names.filter(|name| !fixed.contains(*name)).collect();
                Self { open, by_values: HashMap::new() }
            });
            own.by_values.entry(own.values(cell)).or_default().push(place);
        }
        groups.into_values().collect()
    }

    /// Places of the right cells of the same settings as a left one.
    fn partners(&self, cell: &'a CellResult<'a>, right: &[&'a CellResult<'a>]) -> Vec<usize> {
        let Some(values) = self.values(cell) else {
            let all = self.by_values.values().flatten().copied();
            return all.filter(|place| self.agrees(cell, right[*place])).collect();
        };
        let of_values = self.by_values.get(&Some(values)).into_iter().flatten().copied();
        let without = self.by_values.get(&None).into_iter().flatten().copied();
        of_values.chain(without.filter(|place| self.agrees(cell, right[*place]))).collect()
    }

    /// Whether two cells agree in the open settings that both have.
    fn agrees(&self, left: &CellResult<'_>, right: &CellResult<'_>) -> bool {
        self.open.iter().all(|name| {
            let own = left.cell.settings.get(name);
            let other = right.cell.settings.get(name);
            own.is_none() || other.is_none() || own == other
        })
    }

    /// A cell's values of the open settings; `None` if it lacks any.
    fn values(&self, cell: &'a CellResult<'a>) -> Option<Vec<&'a Setting>> {
        self.open.iter().map(|name| cell.cell.settings.get(name)).collect()
    }
}

impl<'a> Judge<'a> {
    /// Left cells with the right cells of the same settings and the same label, where
    /// neither selection fixes them.
    pub fn pairs<'s>(&self, left: &'s Selection, right: &'s Selection) -> Pairs<'a, 's> {
        let fixed: BTreeSet<&str> = fixed_keys(left).chain(fixed_keys(right)).collect();
        let zipped: Vec<&str> = fixed.iter().flat_map(|key| self.zipped_with(key)).collect();
        let fixed: BTreeSet<&str> = fixed.into_iter().chain(zipped).collect();
        let of_right = right;
        let right = self.chosen(right);
        let mut found = Pairs::default();
        let mut paired = BTreeSet::new();
        let mut partners: BTreeMap<&[String], Vec<SameAxes<'a>>> = BTreeMap::new();
        for a in self.chosen(left) {
            let known = partners
                .entry(&a.cell.varied)
                .or_insert_with(|| SameAxes::groups(&a.cell.varied, &right, &fixed));
            let mut places: Vec<usize> =
                known.iter().flat_map(|same| same.partners(a, &right)).collect();
            places.sort_unstable();
            if !fixed.contains("label") {
                places.retain(|place| right[*place].cell.label == a.cell.label);
            }
            if places.is_empty() {
                found.alone.push((a, left));
            }
            found.both.extend(places.iter().map(|place| (a, right[*place])));
            paired.extend(places);
        }
        let alone = (0..right.len()).filter(|place| !paired.contains(place));
        found.alone.extend(alone.map(|place| (right[place], of_right)));
        found
    }
}
