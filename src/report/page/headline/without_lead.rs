//! The headline of several settings in none of which one algorithm leads by the margin. They are counted by how the
//! comparison at each setting ended, since what the runs do not decide is not a difference without importance.

use super::words::{is_close, listed, lowest, margin_text, zero_of};
use crate::evidence::{Rival, Standing, Standings};
use crate::report::number_text::zero;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How the comparison at a setting ended in which no algorithm leads by the margin. Headlines name the outcomes in the
/// order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SettingOutcome {
    /// The errors of several algorithms are zero to rounding, so that they have no ratio.
    BothZero,
    /// One algorithm is lowest, but the runs do not decide whether by the margin.
    LeadsByLittle,
    /// Only one algorithm has a mean; the text says why the others have none.
    OneLeft(&'static str),
    /// Several algorithms are not separated.
    Undecided,
    /// All algorithms differ from the lowest by less than the margin.
    Alike,
    /// Some algorithms, not all, differ from the lowest by less than the margin, so that none is ahead by it.
    NoneAhead,
    /// No algorithm has a rank; the text says why.
    NotRanked(&'static str),
}

/// What a headline says of the settings with one outcome: "A is lowest in 2 of 3 settings, and it is open …" is the
/// subject, the place, and the remark.
struct OutcomeClause {
    /// What stands before the place: "A is lowest".
    subject: String,
    /// What follows the place, with its punctuation; may be empty.
    remark: String,
}

impl SettingOutcome {
    /// The outcome at the setting of this row, at which no algorithm leads by `margin`.
    fn new(row: &Standing, margin: f64) -> Self {
        let rivals = row.rivals();
        let is_close = |(_, rival): &(&str, &Rival)| is_close(rival, margin);
        match row.leaders.as_slice() {
            [] => Self::NotRanked(row.nothing_ranked()),
            _ if row.zeros().len() > 1 => Self::BothZero,
            _ if rivals.is_empty() => Self::OneLeft(row.no_others()),
            _ if rivals.iter().all(is_close) => Self::Alike,
            _ if rivals.iter().any(is_close) => Self::NoneAhead,
            [_] => Self::LeadsByLittle,
            _ => Self::Undecided,
        }
    }

    /// The algorithms that the outcome is about at the setting of this row: every ranked algorithm where all are alike,
    /// those whose errors are zero to rounding, otherwise the lowest and those that are not separated from it.
    fn algorithms(self, row: &Standing) -> Vec<&str> {
        let best = row.leaders.first().map(|leader| &**leader);
        match self {
            Self::Alike => {
                best.into_iter().chain(row.rivals().into_iter().map(|(name, _)| name)).collect()
            }
            Self::BothZero => row.zeros(),
            _ => row.leaders.iter().map(|leader| &**leader).collect(),
        }
    }

    /// What a headline says of these settings, at least one, which all have this outcome. Algorithms are named if they
    /// are the same at all of them.
    fn clause(self, rows: &[&Standing], standings: &Standings) -> OutcomeClause {
        let mut sets: BTreeSet<BTreeSet<&str>> = BTreeSet::new();
        for row in rows {
            sets.insert(self.algorithms(row).into_iter().collect());
        }
        let own = self.algorithms(rows[0]);
        let all = 1 + rows[0].rivals().len();
        let names = (sets.len() == 1).then(|| listed(&own, all));
        let lowest = lowest(standings.by);
        let margin = margin_text(standings);
        let one = names.clone().unwrap_or_else(|| "one algorithm".to_owned());
        let subject = match self {
            Self::BothZero => match names {
                Some(_) => zero_of(&own, all, standings.by),
                None => {
                    format!("the smallest {}s are {}", standings.by.loss_name(), zero(standings.by))
                }
            },
            Self::LeadsByLittle | Self::OneLeft(_) => format!("{one} is {lowest}"),
            Self::Undecided => match names {
                Some(names) if own.len() == all => format!("{names} are not separated"),
                Some(names) => format!("{names} are {lowest} and not separated"),
                None => "no algorithm is separated from all others".to_owned(),
            },
            Self::Alike => {
                let names = names.unwrap_or_else(|| "the algorithms".to_owned());
                format!("{names} show no practical difference")
            }
            Self::NoneAhead => format!("no algorithm is {lowest} by {margin} or more"),
            Self::NotRanked(why) => why.to_owned(),
        };
        let remark = match self {
            Self::LeadsByLittle => format!(", and it is open whether by {margin} or more"),
            Self::OneLeft(why) => format!(": {why}"),
            _ => String::new(),
        };
        OutcomeClause { subject, remark }
    }
}

/// Says in how many of these settings, at least two, the comparison ended in which way. In none of them does an
/// algorithm lead by the margin.
pub fn headline(rows: &[Standing], standings: &Standings) -> String {
    if let Some(headline) = same_leaders(rows, standings) {
        return headline;
    }
    let mut by_outcome: BTreeMap<SettingOutcome, Vec<&Standing>> = BTreeMap::new();
    for row in rows {
        by_outcome.entry(SettingOutcome::new(row, standings.margin)).or_default().push(row);
    }
    let all = rows.len();
    if let Some((outcome, rows)) = by_outcome.first_key_value()
        && by_outcome.len() == 1
    {
        return in_all_settings(*outcome, rows, standings);
    }
    // That no algorithm leads by the margin may be said only where the runs decide it at each setting.
    let is_decided = |outcome| matches!(outcome, SettingOutcome::Alike | SettingOutcome::NoneAhead);
    if by_outcome.keys().copied().all(is_decided) {
        let rows: Vec<&Standing> = rows.iter().collect();
        return in_all_settings(SettingOutcome::NoneAhead, &rows, standings);
    }
    let mut clauses = Vec::new();
    for (i, (outcome, rows)) in by_outcome.iter().enumerate() {
        let OutcomeClause { subject, remark } = outcome.clause(rows, standings);
        clauses.push(match (i, rows.len()) {
            (0, count) => format!("{subject} in {count} of {all} settings{remark}"),
            (1, 1) if by_outcome.len() == 2 => format!("in the other {subject}{remark}"),
            (1, count) if by_outcome.len() == 2 => {
                format!("in the other {count} {subject}{remark}")
            }
            (_, count) => format!("in {count} {subject}{remark}"),
        });
    }
    clauses.join("; ")
}

/// The headline where the same algorithms, two at least, are among the lowest in every setting; `None` elsewhere, and
/// where errors are zero to rounding, which are neither different nor alike.
fn same_leaders(rows: &[Standing], standings: &Standings) -> Option<String> {
    if rows.iter().any(|row| row.zeros().len() > 1) {
        return None;
    }
    let everywhere = |leader: &&Arc<str>| rows.iter().all(|row| row.leaders.contains(leader));
    let common = rows[0].leaders.iter().filter(everywhere);
    let common: Vec<&str> = common.map(|name| &**name).collect();
    if common.len() < 2 {
        return None;
    }
    let all = rows.len();
    let most = rows.iter().map(|row| 1 + row.rivals().len()).max().unwrap_or_default();
    let names = listed(&common, most);
    if common.len() < most {
        let lowest = lowest(standings.by);
        return Some(format!("{names} are {lowest} in all {all} settings, not separated"));
    }
    let outcomes = rows.iter().map(|row| SettingOutcome::new(row, standings.margin));
    let alike = outcomes.filter(|outcome| *outcome == SettingOutcome::Alike).count();
    let others = if alike == 1 { String::new() } else { format!(" {alike}") };
    Some(match all - alike {
        0 => format!("{names} show no practical difference in any of {all} settings"),
        open if open == all => format!("{names} are not separated in any of {all} settings"),
        open => format!(
            "{names} are not separated in {open} of {all} settings; in the other{others} they show no practical difference"
        ),
    })
}

/// The headline where the comparisons at all settings, of these rows, have one outcome.
fn in_all_settings(outcome: SettingOutcome, rows: &[&Standing], standings: &Standings) -> String {
    let all = rows.len();
    match outcome {
        SettingOutcome::NotRanked(why) => {
            format!("no algorithm is ranked in any of {all} settings: {why}")
        }
        SettingOutcome::NoneAhead => format!(
            "in none of {all} settings is one algorithm {} by {} or more",
            lowest(standings.by),
            margin_text(standings)
        ),
        SettingOutcome::Undecided => {
            format!("in none of {all} settings is one algorithm separated from all others")
        }
        SettingOutcome::Alike => {
            let OutcomeClause { subject, .. } = outcome.clause(rows, standings);
            format!("{subject} in any of {all} settings")
        }
        SettingOutcome::BothZero | SettingOutcome::LeadsByLittle | SettingOutcome::OneLeft(_) => {
            let OutcomeClause { subject, remark } = outcome.clause(rows, standings);
            format!("{subject} in all {all} settings{remark}")
        }
    }
}
