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

/// The right cells for which the grid varies the same settings, as candidates for left cells for which it varies one
/// other list of settings. Partners are found by the values of the settings that neither selection fixes, since trying
/// each pair is too slow.
struct SameAxes<'a> {
    /// The varied settings that neither selection fixes: the cells of a pair have to agree in those that both have.
    open: BTreeSet<&'a str>,
    /// The places of the right cells in the list of all, by their values of the open settings; under `None` are the
    /// cells that lack one of these settings.
    by_values: HashMap<Option<Vec<&'a Setting>>, Vec<usize>>,
}

impl<'a> SameAxes<'a> {
    /// Groups all right cells, as candidates for left cells for which the grid varies the settings `axes`. Settings
    /// that are `fixed` by a selection need not agree.
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

    /// The places of the right cells of this group that agree with a left cell, in the list of all right cells.
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

    /// A cell's values of the open settings, in their order; `None` if it lacks one of them.
    fn values(&self, cell: &'a CellResult<'a>) -> Option<Vec<&'a Setting>> {
        self.open.iter().map(|name| cell.cell.settings.get(name)).collect()
    }
}

impl<'a> Judge<'a> {
    /// Pairs each left cell with all right cells that agree with it in the label and in the varied settings that both
    /// have. What a selection fixes need not agree, nor settings that are zipped with it. A cell may be in several
    /// pairs.
    pub fn pairs<'s>(&self, left: &'s Selection, right: &'s Selection) -> Pairs<'a, 's> {
        let mut fixed: BTreeSet<&str> = fixed_keys(left).chain(fixed_keys(right)).collect();
        let zipped: Vec<&str> = fixed.iter().flat_map(|key| self.zipped_with(key)).collect();
        fixed.extend(zipped);
        let right_cells = self.chosen(right);
        let mut found = Pairs::default();
        let mut paired = BTreeSet::new();
        // The candidates for the left cells for which the grid varies the same settings.
        let mut candidates: BTreeMap<&[String], Vec<SameAxes<'a>>> = BTreeMap::new();
        for a in self.chosen(left) {
            let groups = candidates
                .entry(&a.cell.varied)
                .or_insert_with(|| SameAxes::groups(&a.cell.varied, &right_cells, &fixed));
            let mut places: Vec<usize> =
                groups.iter().flat_map(|same| same.partners(a, &right_cells)).collect();
            places.sort_unstable();
            if !fixed.contains("label") {
                places.retain(|place| right_cells[*place].cell.label == a.cell.label);
            }
            if places.is_empty() {
                found.alone.push((a, left));
            }
            found.both.extend(places.iter().map(|place| (a, right_cells[*place])));
            paired.extend(places);
        }
        let alone = (0..right_cells.len()).filter(|place| !paired.contains(place));
        found.alone.extend(alone.map(|place| (right_cells[place], right)));
        found
    }
}
