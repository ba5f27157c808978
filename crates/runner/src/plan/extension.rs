//! Candidates beyond those of the manifest: which are tried where the best stands at an edge.
//!
//! *Invariant*: a candidate that is added is one that the manifest could have listed; the group has
//! the reason why any other is left out.

use super::candidates::{put_candidates, rounded};
use super::cell::Cell;
use super::cells::cells;
use super::hashes::Hashes;
use super::identity::Identity;
use super::tuning::{Candidate, CandidateRuns, TuningEdge, TuningGroup};
use super::types::Plan;
use crate::hex::CellId;
use crate::manifest::Rejected;
use crate::manifest::document::parse;
use crate::manifest::read::read;
use crate::manifest::schema::ManifestSchema;
use crate::manifest::tune::TunedSetting;
use std::collections::{BTreeMap, HashMap};

/// The number of candidates that are added beyond the end of a range at a time.
const ADDED: usize = 3;
/// The ratio of two neighbouring candidates up to which none is added between them.
const CLOSE: f64 = 1.05;
/// 2^53, the largest number up to which f64 holds every whole number.
const MOST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// New values of tuned settings, by the places of these settings in `over` of `[tune]`.
type NewValues = BTreeMap<usize, Vec<f64>>;

/// Why the manifest has no cells with further values of the tuned settings.
struct NoCandidates {
    /// The first thing that is wrong with the manifest that has them.
    reason: String,
}

/// A candidate that a group does not have yet.
#[derive(Clone)]
struct TriedCandidate {
    candidate: Candidate,
    /// What is wrong with it; `None` if the manifest could have listed it.
    fault: Option<String>,
}

/// The cells of a manifest with further candidates.
struct CandidateCells {
    cells: Vec<Cell>,
    /// What is wrong with a cell, by its id, for those that the manifest could not have.
    faults: HashMap<CellId, String>,
}

impl TuningGroup {
    /// The values of each setting that are tried next: three beyond each end of a range at which the selected
    /// candidate stands, and one between the selected candidate and the next larger one if that diverged. Where all
    /// candidates diverged, three below the smallest. Settings without new values are left out, as those of which the
    /// manifest lists the candidates.
    fn further(&self, settings: &[TunedSetting]) -> NewValues {
        let mut further = NewValues::new();
        for edge in &self.edges {
            let i = edge.setting();
            let known = self.values(i);
            let Some(ratio) = settings[i].ratio else { continue };
            // A setting with an edge has at least two values.
            let first = known[0];
            let last = known[known.len() - 1];
            let powers = (1..=ADDED).map(|power| libm::pow(ratio, power as f64));
            let more: Vec<f64> = match edge {
                TuningEdge::Smallest(_) => powers.map(|power| first / power).collect(),
                TuningEdge::Largest(_) => powers.map(|power| last * power).collect(),
                TuningEdge::Divergence(_) => self.middle_below_divergence(i).into_iter().collect(),
            };
            let rounded = more.into_iter().map(|x| rounded(x, settings[i].whole));
            let most = if settings[i].whole { MOST_WHOLE } else { f64::MAX };
            let new = rounded.filter(|x| *x > 0.0 && *x <= most && !known.contains(x));
            further.entry(i).or_default().extend(new);
        }
        further.retain(|_, values| !values.is_empty());
        further
    }

    /// The geometric mean of the selected value of a setting and of the next larger one, with which runs diverged, as
    /// the caller knows ([`TuningEdge::Divergence`]); `None` where the two are close already, and where there is no
    /// selected candidate or no larger value.
    fn middle_below_divergence(&self, setting: usize) -> Option<f64> {
        let winner = self.winner()?;
        let low = winner.values[setting]?;
        let high = self.above(winner, setting)?.values[setting]?;
        (high > CLOSE * low).then(|| libm::sqrt(low * high))
    }

    /// Whether a candidate is new to this group, and all its values are among those that the group has already or that
    /// are tried next (`further`).
    fn wants(&self, candidate: &Candidate, further: &NewValues) -> bool {
        let mut values = candidate.values.iter().enumerate();
        values.all(|(setting, value)| {
            let Some(x) = value else { return true };
            let is_wanted = further.get(&setting).is_some_and(|wanted| wanted.contains(x));
            is_wanted || self.values(setting).contains(x)
        }) && self.candidates.iter().all(|c| c.cell.id != candidate.cell.id)
    }

    /// The values of the selected candidate, but with the next larger whole number of one setting; `None` if none is
    /// selected.
    fn next_whole(&self, setting: usize) -> Option<Vec<Option<f64>>> {
        let mut values = self.winner()?.values.clone();
        values[setting] = values[setting].map(|own| own + 1.0);
        Some(values)
    }

    /// Adds the candidates with which nothing is wrong, in the order of values, and notes the reasons against the
    /// others. If new candidates are to be run, the selection is taken back.
    fn add(&mut self, tried: Vec<TriedCandidate>) {
        for TriedCandidate { candidate, fault } in tried {
            match fault {
                None => self.candidates.push(candidate),
                Some(reason) => self.refuse(reason),
            }
        }
        self.candidates
            .sort_by(|a, b| a.values.partial_cmp(&b.values).unwrap_or(std::cmp::Ordering::Equal));
        if !self.is_complete() {
            // Places have changed, and the runs of the new candidates may show that one of them is better.
            self.deselect();
        }
    }

    /// Notes why further candidates are left out, each reason once. Pages state the first where the selected candidate
    /// stands at an edge.
    fn refuse(&mut self, reason: String) {
        if !self.refused.contains(&reason) {
            self.refused.push(reason);
        }
    }
}

impl Plan {
    /// A bound on how many candidates are added for an algorithm at a point of the grid, which `plan` states in
    /// advance: the combinations of all values that its settings may have after `extend` extensions, without those
    /// that the manifest lists. An extension adds to a range at most [`ADDED`] values beyond one of its ends, and one
    /// value below a value with which runs diverged; to a list of values it adds none. 0 without `[tune]`. Products
    /// that are larger than the type's largest number are cut to it.
    pub fn most_further_candidates(&self) -> usize {
        let extend = self.manifest.tune.as_ref().map_or(0, |tune| tune.extend) as usize;
        let mut listed = 1_usize;
        let mut possible = 1_usize;
        for setting in self.tuned_settings() {
            let is_range = setting.ratio.is_some();
            let added = if is_range { extend.saturating_mul(ADDED + 1) } else { 0 };
            listed = listed.saturating_mul(setting.values.len());
            possible = possible.saturating_mul(setting.values.len().saturating_add(added));
        }
        possible - listed
    }

    /// Adds candidates to the groups whose losses are all known and whose selected candidate stands at an edge, as
    /// often as `extend` of `[tune]` allows. Returns whether any were added, so that more runs are needed.
    pub(super) fn extend<R: CandidateRuns>(
        &self,
        groups: &mut [TuningGroup],
        runs: &R,
    ) -> Result<bool, R::Error> {
        let most = self.manifest.tune.as_ref().map_or(0, |tune| tune.extend);
        let all = groups
            .iter()
            .enumerate()
            .filter(|(_, group)| group.is_complete() && group.extended < most);
        let wanted: Vec<(usize, NewValues)> = all
            .map(|(i, group)| (i, group.further(self.tuned_settings())))
            .filter(|(_, further)| !further.is_empty())
            .collect();
        let tried = self.tried_candidates(groups, &wanted, runs)?;
        let mut any = false;
        for (place, (i, _)) in wanted.iter().enumerate() {
            let group = &mut groups[*i];
            let before = group.candidates.len();
            match &tried {
                Ok(all) => group.add(all[place].clone()),
                Err(none) => group.refuse(none.reason.clone()),
            }
            let found = group.candidates.len() > before;
            // Where no candidate could be added, none could be added later.
            group.extended = if found { group.extended + 1 } else { most };
            any |= found;
        }
        Ok(any)
    }

    /// Removes the edges beyond which the manifest could have no candidate, so that the selected one counts as well
    /// inside: a cohort of all clients has no larger one. This concerns the largest values of settings that are whole
    /// numbers; the next whole number is tried.
    pub(super) fn leave_allowed_edges<R: CandidateRuns>(
        &self,
        groups: &mut [TuningGroup],
        runs: &R,
    ) -> Result<(), R::Error> {
        let mut wanted: Vec<(usize, NewValues)> = Vec::new();
        for (i, group) in groups.iter().enumerate().filter(|(_, group)| group.is_complete()) {
            for edge in &group.edges {
                let TuningEdge::Largest(s) = *edge else { continue };
                let next = group
                    .next_whole(s)
                    .filter(|_| self.tuned_settings()[s].whole)
                    .and_then(|values| values[s]);
                wanted.extend(next.map(|next| (i, NewValues::from([(s, vec![next])]))));
            }
        }
        let Ok(tried) = self.tried_candidates(groups, &wanted, runs)? else { return Ok(()) };
        for ((i, values), tried) in wanted.iter().zip(tried) {
            let group = &mut groups[*i];
            let Some(s) = values.keys().next().copied() else { continue };
            let next = group.next_whole(s);
            if tried.iter().any(|TriedCandidate { candidate, fault }| {
                Some(&candidate.values) == next.as_ref() && fault.is_some()
            }) {
                group.edges.retain(|edge| *edge != TuningEdge::Largest(s));
            }
        }
        Ok(())
    }

    /// The candidates that new values make: `wanted` has places of groups, each with its new values, and the answer
    /// has a list for each of them, in their order. The inner error says why the manifest can have none of these
    /// candidates.
    ///
    /// # Errors
    /// The outer error, if results cannot be read. They are asked for the number of clients where settings do not say
    /// it.
    fn tried_candidates<R: CandidateRuns>(
        &self,
        groups: &[TuningGroup],
        wanted: &[(usize, NewValues)],
        runs: &R,
    ) -> Result<Result<Vec<Vec<TriedCandidate>>, NoCandidates>, R::Error> {
        if wanted.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let settings = self.tuned_settings();
        let mut all: Vec<Vec<f64>> = settings.iter().map(|s| s.values.clone()).collect();
        for (setting, values) in all.iter_mut().enumerate() {
            values.extend(groups.iter().flat_map(|group| group.values(setting)));
            let further = wanted.iter().filter_map(|(_, further)| further.get(&setting));
            values.extend(further.flatten());
            values.sort_by(f64::total_cmp);
            values.dedup();
        }
        let CandidateCells { cells, faults } = match self.candidate_cells(&all) {
            Ok(tried) => tried,
            Err(Rejected { diagnostics, .. }) => {
                let reason = diagnostics.into_iter().next().map(|first| first.message);
                return Ok(Err(NoCandidates { reason: reason.unwrap_or_default() }));
            }
        };
        let found = self.group_candidates(&cells);
        let mut tried = Vec::new();
        for (i, further) in wanted {
            let group = &groups[*i];
            let id = &group.candidates[0].cell.id;
            let candidates = found
                .iter()
                .find(|other| other.candidates.iter().any(|c| c.cell.id == *id))
                .map(|other| &other.candidates);
            let new: Vec<&Candidate> =
                candidates.into_iter().flatten().filter(|c| group.wants(c, further)).collect();
            // Only the problem's data may tell how many clients there are.
            let asks = new.iter().any(|candidate| {
                let Identity { problem, algorithm, .. } = &candidate.cell.identity;
                problem.extent().is_none() && algorithm.check_for(1).is_some()
            });
            let of_problem = if asks { runs.clients(&group.candidates[0].cell)? } else { None };
            let mut with_faults: Vec<TriedCandidate> = Vec::with_capacity(new.len());
            for candidate in new {
                let cell = &candidate.cell;
                let fault = faults.get(&cell.id).cloned().or_else(|| {
                    let fault = cell.identity.algorithm.check_for(of_problem?)?;
                    Some(format!("`{}` {}", fault.key, fault.message))
                });
                with_faults.push(TriedCandidate { candidate: candidate.clone(), fault });
            }
            tried.push(with_faults);
        }
        Ok(Ok(tried))
    }

    /// The cells of the manifest with these candidates for each tuned setting, also those cells with which something
    /// is wrong.
    ///
    /// # Errors
    /// If the manifest with these candidates cannot be read, or its grid is too large.
    fn candidate_cells(&self, values: &[Vec<f64>]) -> Result<CandidateCells, Rejected> {
        let source = &self.source;
        let mut root = parse(source)?;
        let schema = ManifestSchema::new(self.kinds.schema(), source);
        for (setting, values) in self.tuned_settings().iter().zip(values) {
            // The plan was made in this way, so that there is a place for them.
            let _ = put_candidates(&mut root, &schema, setting, values);
        }
        let is_tune_read = true;
        let (manifest, axes) =
            read(&root, &schema, is_tune_read).map_err(|found| Rejected::new(source, found))?;
        let mut hashes = Hashes::new(source);
        let mut faults = HashMap::new();
        let cells = cells(&root, &manifest, &axes, &schema, &mut hashes, Some(&mut faults))
            .map_err(|found| Rejected::new(source, found))?;
        Ok(CandidateCells { cells, faults })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bound for a manifest with two tuned settings; `tune` has their candidates and `extend`.
    fn most_further_candidates(tune: &str) -> usize {
        let text = format!(
            r#"
            title = "two settings"
            seed = 5
            replicates = 2
            [problem.quadratic]
            dimension = 2
            clients = 2
            spectrum = {{ from = 0.5, to = 1.0 }}
            noise = 0.1
            [start]
            offset = 0.0
            [budget]
            rounds = 20
            [tune]
            over = ["step-size", "proximal"]
            ratio = 10.0
            evaluate = 2
            {tune}
            [[algorithm.fedprox]]
            local-steps = 5
            "#
        );
        Plan::of_text(&text, &[]).most_further_candidates()
    }

    /// Three step sizes and two proximal terms are listed. Each extension adds up to four values to a range, and each
    /// new value is tried with all values of the other setting.
    #[test]
    fn the_bound_on_further_candidates_is_a_product_over_settings() {
        let ranges = "range = { step-size = [0.1, 10.0], proximal = [1.0, 10.0] }\n";
        let a_range_and_a_list =
            "range = { step-size = [0.1, 10.0] }\nvalues = { proximal = [1.0, 10.0] }\n";
        let lists = "values = { step-size = [0.1, 1.0, 10.0], proximal = [1.0, 10.0] }\n";
        for (candidates, extend, expected) in [
            (ranges, 3, (3 + 12) * (2 + 12) - 6),
            (ranges, 1, (3 + 4) * (2 + 4) - 6),
            (ranges, 0, 0),
            (ranges, i64::MAX, usize::MAX - 6),
            (a_range_and_a_list, 3, (3 + 12) * 2 - 6),
            (lists, 3, 0),
        ] {
            let tune = format!("{candidates}extend = {extend}");
            assert_eq!(most_further_candidates(&tune), expected, "{tune}");
        }
    }
}
