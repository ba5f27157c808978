//! The headline of a page: what its results say, and one line of interval and setting.
//!
//! *Invariant*: the headline is made from results. A manifest's `finding` is shown only while the
//! claims that it names hold; otherwise the headline is made from the ranking.

use super::tuning::at_the_edge;
use crate::evidence::family::{family, family_of, named_families};
use crate::evidence::{Experiment, Rival, Separation, Standing, Standings, unique, when_text};
use crate::report::colored_text::ColoredText;
use crate::report::manifest_texts::{TextError, TextFiller};
use crate::report::number_text::ratio_text;
use exactfed_core::words::{count, enumerated, readable};
use exactfed_runner::manifest::Quantity;
use exactfed_runner::quantity::Shortfall;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the texts of a manifest say of the results: a headline with the line below it, and the
/// analysis.
#[derive(Serialize)]
pub struct Finding {
    /// The headline, in parts with and without the colour of a family.
    pub headline: Vec<ColoredText>,
    /// The headline as one text.
    pub text: String,
    /// The line of interval and setting.
    pub line: Vec<ColoredText>,
    /// The paragraphs of the analysis text.
    pub paragraphs: Vec<String>,
}

impl Finding {
    /// The finding of an experiment.
    ///
    /// # Errors
    /// If a text cannot be filled.
    pub fn new(experiment: &Experiment<'_>) -> Result<Self, TextError> {
        let manifest = &experiment.plan.manifest;
        let filler = TextFiller::of_results(experiment);
        let (text, line) = match &manifest.finding {
            Some(finding) if !finding.is_empty() && experiment.missing.is_empty() => {
                filler.fill(finding)?.map(|filled| split_finding(&filled))
            }
            _ => None,
        }
        .unwrap_or_else(|| of_ranking(experiment));
        let analysis = filler.fill(manifest.analysis.as_deref().unwrap_or_default())?;
        let paragraphs = analysis.unwrap_or_default();
        let names = names(experiment);
        Ok(Self {
            headline: parts(&text, &names),
            text,
            line: parts(&line, &names),
            paragraphs: paragraphs.split("\n\n").map(one_line).filter(|p| !p.is_empty()).collect(),
        })
    }
}

/// The headline of a manifest's text, and the line below it.
fn split_finding(filled: &str) -> (String, String) {
    let (headline, line) = filled.split_once("\n\n").unwrap_or((filled, ""));
    (one_line(headline), one_line(line))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A headline from the ranking, and the line below it; the title where nothing is compared.
fn of_ranking(experiment: &Experiment<'_>) -> (String, String) {
    let standings = &experiment.standings;
    let cells = &experiment.cells;
    if !cells.is_empty() && cells.iter().all(|cell| cell.runs.diverged == cell.runs.count) {
        let runs = count(cells.len(), "cell");
        return ("All runs diverged".into(), format!("{runs}; smaller step sizes may converge."));
    }
    let (headline, line) = match standings.rows.as_slice() {
        [row] if row.is_zero => of_zero_error(row, standings),
        [row] if !row.leaders.is_empty() => of_one_setting(row, standings),
        [] | [_] => return (experiment.plan.manifest.title.clone(), String::new()),
        rows => of_several_settings(rows, standings),
    };
    let meaning = meaning_of_loss(standings.by);
    let Some(tuning) = &experiment.tuning else {
        return (with_capital(&headline, standings), line + &meaning);
    };
    let settings = experiment.tuned_in_words();
    let tuned = if settings.is_empty() { settings } else { format!("Tuned: {settings}. ") };
    let edge = at_the_edge(tuning).map_or(String::new(), |edge| format!(" {edge}."));
    (format!("Tuned, {headline}"), tuned + &line + &meaning + &edge)
}

/// What the ratios of a quantity of which more is better are of; empty for others.
fn meaning_of_loss(by: Quantity) -> String {
    by.info().shortfall.map_or(String::new(), |Shortfall { name, largest, .. }| {
        format!(" The {name} is {largest} − {}.", by.formula())
    })
}

/// How the best is called: of a quantity of which more is better its loss is the lowest.
fn lowest(by: Quantity) -> String {
    if by.more_is_better() { format!("lowest in {}", by.loss_name()) } else { "lowest".to_owned() }
}

/// How an error is called that counts as 0. An error rate of records is a share of whole numbers.
fn zero(by: Quantity) -> &'static str {
    if by.more_is_better() { "zero" } else { "zero to rounding" }
}

/// Whether the runs decide that an algorithm differs from the lowest by less than the margin.
fn is_close(rival: &Rival, margin: f64) -> bool {
    let is_same = matches!(rival.separation, Separation::Equal | Separation::BothZero);
    rival.ratio.high < 1.0 + margin || is_same
}

/// The only setting: those that lead, and how far the next is.
fn of_one_setting(row: &Standing, standings: &Standings) -> (String, String) {
    let rivals = row.rivals();
    let margin = standings.margin;
    let is_near = |rival: &Rival| rival.separation != Separation::Larger || is_close(rival, margin);
    let (near, far): (Vec<_>, Vec<_>) = rivals.iter().partition(|(_, rival)| is_near(rival));
    let alike = near.iter().all(|(_, rival)| is_close(rival, margin));
    let first: Vec<&str> =
        std::iter::once(&*row.leaders[0]).chain(near.iter().map(|(name, _)| *name)).collect();
    let all = 1 + rivals.len();
    let error = standings.by.loss_name();
    let lowest = lowest(standings.by);
    let at = standings.at.map_or(String::new(), |at| format!(" {}", when_text(Some(at))));
    let next = far.first().map(|(name, rival)| {
        let digits = if rival.ratio.estimate < 1.1 { 3 } else { 2 };
        (name, format!("{error} is {} times", readable(rival.ratio.estimate, digits)))
    });
    let headline = match (first.as_slice(), next) {
        ([one], None) => format!("{one} has the smallest {error}{at}: {}", row.no_others()),
        ([one], Some((next, error))) if all == 2 => format!("{next}’s {error} {one}’s{at}"),
        ([one], Some((next, error))) => {
            format!("{one} is {lowest} of {all} algorithms{at}: {next}’s {error} as large")
        }
        (several, next) => {
            let next =
                next.map_or(String::new(), |(next, error)| format!("; {next}’s {error} as large"));
            let names = listed(several, all);
            match (alike, next.is_empty()) {
                (true, _) => format!("{names} show no practical difference{at}{next}"),
                (false, true) => format!("{names} are not separated{at}"),
                (false, false) => format!("{names} are {lowest}{at} and not separated{next}"),
            }
        }
    };
    let margin_note = if alike && first.len() > 1 {
        format!("Differences below {} are of no practical importance. ", margin_text(standings))
    } else {
        String::new()
    };
    let line = ratios_to_best(row, &rivals, &error);
    (headline, margin_note + &line)
}

/// The ratios of all others to the first, as a sentence; empty if there are no others.
fn ratios_to_best(row: &Standing, rivals: &[(&str, &Rival)], error: &str) -> String {
    if rivals.is_empty() {
        return String::new();
    }
    let ratios: Vec<String> =
        rivals.iter().map(|(name, rival)| format!("{name} {}", ratio_text(&rival.ratio))).collect();
    format!(
        "Ratios of {}s of the {error} to {}’s: {}; {}.",
        row.mean(),
        row.leaders[0],
        ratios.join(", "),
        paired(row)
    )
}

/// How many runs or instances are compared in pairs.
fn paired(row: &Standing) -> String {
    count(row.n, &format!("paired {}", row.unit))
}

/// The only setting, where the smallest error is zero to rounding, so that no other is a number of
/// times as large.
fn of_zero_error(row: &Standing, standings: &Standings) -> (String, String) {
    let rivals = row.rivals();
    let mut zeros: Vec<&str> = vec![&row.leaders[0]];
    let mut others: Vec<&str> = Vec::new();
    for (name, rival) in &rivals {
        let is_zero = rival.separation == Separation::BothZero;
        if is_zero { zeros.push(name) } else { others.push(name) }
    }
    let all = 1 + rivals.len();
    let error = standings.by.loss_name();
    let at = standings.at.map_or(String::new(), |at| format!(" {}", when_text(Some(at))));
    let both = if zeros.len() == 2 { "both " } else { "" };
    let rest = match others.as_slice() {
        [] if all == 1 => format!(": {}", row.no_others()),
        [] => String::new(),
        others => format!("; that of {} is not", listed(others, all)),
    };
    let zero = zero(standings.by);
    let names = listed(&zeros, all);
    let headline = format!("the {error} of {both}{names} is {zero}{at}{rest}");
    (headline, format!("What is {zero} has no ratio to another; {}.", paired(row)))
}

/// Several settings: the algorithm that is lowest in most of them by more than the margin, and the
/// setting in which its lead is largest; otherwise those that are among the lowest everywhere.
fn of_several_settings(rows: &[Standing], standings: &Standings) -> (String, String) {
    let all = rows.len();
    let leads: Vec<&Standing> =
        rows.iter().filter(|row| lead(row) >= 1.0 + standings.margin).collect();
    let settings_of = |leader: &Arc<str>| leads.iter().filter(|r| r.leaders[0] == *leader).count();
    let largest = leads.iter().max_by(|a, b| {
        let settings = settings_of(&a.leaders[0]).cmp(&settings_of(&b.leaders[0]));
        settings.then(lead(a).total_cmp(&lead(b)))
    });
    let compared = format!("Compared {}.", when_text(standings.at));
    let Some((row, (next, rival))) = largest.and_then(|row| Some((row, row.next()?))) else {
        let comparisons = count(standings.compared, "comparison");
        return (without_lead(rows, standings), format!("{compared} {comparisons}."));
    };
    let leader = &row.leaders[0];
    let alone = settings_of(leader);
    let error = standings.by.loss_name();
    let most = if alone > 1 { "up to " } else { "" };
    let other_leaders =
        unique(leads.iter().map(|row| &row.leaders[0]).filter(|one| *one != leader));
    let others: Vec<String> =
        other_leaders.iter().map(|other| format!("{other} in {}", settings_of(other))).collect();
    let distance = if row.is_zero {
        format!("in one of which its {error} is {} and {next}’s is not", zero(standings.by))
    } else {
        let times = readable(rival.ratio.estimate, 2);
        format!("where {next}’s {error} is {most}{times} times as large")
    };
    let lowest = lowest(standings.by);
    let headline = format!("{leader} alone is {lowest} in {alone} of {all} settings, {distance}");
    let rest = match others.as_slice() {
        [] => String::new(),
        others => format!(" Alone lowest are also {}.", others.join(", ")),
    };
    let pairs = paired(row);
    let found = if row.is_zero {
        format!("it is {} over {pairs}", zero(standings.by))
    } else {
        let ratio = ratio_text(&rival.ratio);
        format!("the ratio of {}s is {ratio} over {pairs}", row.mean())
    };
    let line = format!("{compared} At {} {found}.{rest}", row.settings.join(", "));
    (headline, line)
}

/// How the comparison of a setting ended in which no algorithm leads by the margin: what the runs do
/// not decide is not a difference without importance, and neither is a setting without a ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SettingOutcome {
    /// One algorithm is lowest, but the runs do not decide whether by the margin.
    LeadsByLittle,
    /// Only one algorithm has a mean, and why the others have none.
    OneLeft(&'static str),
    /// Several algorithms are not separated.
    Undecided,
    /// All algorithms differ from the lowest by less than the margin.
    Alike,
    /// Some algorithm differs from the lowest by less than the margin.
    NoneAhead,
    /// No algorithm has a rank, and why.
    NotRanked(&'static str),
}

impl SettingOutcome {
    fn new(row: &Standing, margin: f64) -> Self {
        let rivals = row.rivals();
        let is_close = |(_, rival): &(&str, &Rival)| is_close(rival, margin);
        match row.leaders.as_slice() {
            [] => Self::NotRanked(row.nothing_ranked()),
            _ if rivals.is_empty() => Self::OneLeft(row.no_others()),
            _ if rivals.iter().all(is_close) => Self::Alike,
            _ if rivals.iter().any(is_close) => Self::NoneAhead,
            [_] => Self::LeadsByLittle,
            _ => Self::Undecided,
        }
    }

    /// The algorithms of a setting that it is about: all that differ by less than the margin, or those
    /// that are not separated.
    fn algorithms(self, row: &Standing) -> Vec<&str> {
        let best = row.leaders.first().map(|leader| &**leader);
        match self {
            Self::Alike => {
                best.into_iter().chain(row.rivals().into_iter().map(|(name, _)| name)).collect()
            }
            _ => row.leaders.iter().map(|leader| &**leader).collect(),
        }
    }

    /// What it says of the algorithms of these settings: a clause without its place, and what
    /// follows the place.
    fn clause(self, rows: &[&Standing], standings: &Standings) -> (String, String) {
        let sets = rows.iter().map(|row| self.algorithms(row).into_iter().collect());
        let sets: BTreeSet<BTreeSet<&str>> = sets.collect();
        let own = self.algorithms(rows[0]);
        let all = 1 + rows[0].rivals().len();
        let names = (sets.len() == 1).then(|| listed(&own, all));
        let lowest = lowest(standings.by);
        let margin = margin_text(standings);
        let one = names.clone().unwrap_or_else(|| "one algorithm".to_owned());
        let clause = match self {
            Self::LeadsByLittle => {
                let open = format!(", and it is open whether by {margin} or more");
                return (format!("{one} is {lowest}"), open);
            }
            Self::OneLeft(why) => return (format!("{one} is {lowest}"), format!(": {why}")),
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
        (clause, String::new())
    }
}

/// The margin of practical importance in percent.
fn margin_text(standings: &Standings) -> String {
    format!("{} %", readable(100.0 * standings.margin, 2))
}

/// Several settings in none of which one algorithm leads by the margin, counted by how they ended.
fn without_lead(rows: &[Standing], standings: &Standings) -> String {
    if let Some(headline) = same_leaders(rows, standings) {
        return headline;
    }
    let mut kinds: BTreeMap<SettingOutcome, Vec<&Standing>> = BTreeMap::new();
    for row in rows {
        kinds.entry(SettingOutcome::new(row, standings.margin)).or_default().push(row);
    }
    let all = rows.len();
    let kinds: Vec<(SettingOutcome, Vec<&Standing>)> = kinds.into_iter().collect();
    if let [(kind, rows)] = kinds.as_slice() {
        return in_all_settings(*kind, rows, standings);
    }
    let decided = [SettingOutcome::Alike, SettingOutcome::NoneAhead];
    if kinds.iter().all(|(kind, _)| decided.contains(kind)) {
        return in_all_settings(
            SettingOutcome::NoneAhead,
            &rows.iter().collect::<Vec<_>>(),
            standings,
        );
    }
    let clauses = kinds.iter().enumerate().map(|(i, (kind, rows))| {
        let (clause, more) = kind.clause(rows, standings);
        match (i, rows.len()) {
            (0, count) => format!("{clause} in {count} of {all} settings{more}"),
            (1, 1) if kinds.len() == 2 => format!("in the other {clause}{more}"),
            (1, count) if kinds.len() == 2 => format!("in the other {count} {clause}{more}"),
            (_, count) => format!("in {count} {clause}{more}"),
        }
    });
    clauses.collect::<Vec<_>>().join("; ")
}

/// The headline where several algorithms are among the lowest in every setting.
fn same_leaders(rows: &[Standing], standings: &Standings) -> Option<String> {
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

/// All settings ended in the same way.
fn in_all_settings(kind: SettingOutcome, rows: &[&Standing], standings: &Standings) -> String {
    let all = rows.len();
    match kind {
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
            let (clause, _) = kind.clause(rows, standings);
            format!("{clause} in any of {all} settings")
        }
        SettingOutcome::LeadsByLittle | SettingOutcome::OneLeft(_) => {
            let (clause, more) = kind.clause(rows, standings);
            format!("{clause} in all {all} settings{more}")
        }
    }
}

/// A headline with a capital at its beginning, unless it begins with the name of an algorithm.
fn with_capital(headline: &str, standings: &Standings) -> String {
    let mut algorithms = standings.rows.iter().flat_map(|row| &row.algorithms);
    let mut letters = headline.chars();
    match letters.next() {
        Some(first) if !algorithms.any(|one| headline.starts_with(&*one.name)) => {
            first.to_uppercase().chain(letters).collect()
        }
        _ => headline.to_owned(),
    }
}

/// Names in a sentence; how many of all where there are many.
fn listed(names: &[&str], all: usize) -> String {
    match names {
        few if few.len() <= 3 => enumerated(few),
        _ if names.len() == all => format!("all {all} algorithms"),
        _ => format!("{} of {all} algorithms", names.len()),
    }
}

/// How many times larger the next mean is than the smallest, where they are separated.
fn lead(row: &Standing) -> f64 {
    let larger = row.next().filter(|(_, rival)| rival.separation == Separation::Larger);
    larger.map_or(0.0, |(_, rival)| rival.ratio.estimate)
}

/// Names of algorithms with their families: labels, names in manifests' order, and the names that
/// the sources use. Longer names first, since some contain others.
fn names(experiment: &Experiment<'_>) -> Vec<(String, usize)> {
    // A short label may be a word of any sentence.
    const SHORTEST: usize = 4;
    let cells = experiment.plan.cells.iter().filter(|c| c.label.chars().count() >= SHORTEST);
    let own = cells.map(|cell| (cell.label.clone(), family_of(cell)));
    let known = named_families().map(|(name, family)| (name.to_owned(), family));
    let frontier_algorithms = experiment.frontiers.iter().flat_map(|frontier| frontier.algorithms);
    let of_frontiers = frontier_algorithms.map(|one| (one.label.clone(), family(&one.name)));
    let mut all = unique(own.chain(known).chain(of_frontiers));
    all.sort_by_key(|(name, _)| std::cmp::Reverse(name.chars().count()));
    all
}

/// A text in parts, where names of algorithms stand alone.
fn parts(text: &str, names: &[(String, usize)]) -> Vec<ColoredText> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut plain = String::new();
    while let Some(first) = rest.chars().next() {
        let starts_word = !plain.chars().next_back().is_some_and(char::is_alphanumeric);
        let ends_word =
            |n: &str| !rest[n.len()..].chars().next().is_some_and(char::is_alphanumeric);
        let is_here = |(n, _): &&(String, usize)| {
            !n.is_empty() && rest.starts_with(n.as_str()) && ends_word(n)
        };
        match names.iter().find(is_here).filter(|_| starts_word) {
            Some((name, family)) => {
                if !plain.is_empty() {
                    parts.push(ColoredText { text: std::mem::take(&mut plain), family: None });
                }
                parts.push(ColoredText { text: name.clone(), family: Some(*family) });
                rest = &rest[name.len()..];
            }
            None => {
                plain.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    if !plain.is_empty() {
        parts.push(ColoredText { text: plain, family: None });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::RankedAlgorithm;
    use crate::stats::Ratio;
    use exactfed_runner::plan::CellId;

    /// A setting in which B is so many times as large as A, in an interval.
    fn setting([low, estimate, high]: [f64; 3], separation: Separation) -> Standing {
        let is_alone = separation == Separation::Larger;
        let leaders = if is_alone { vec!["A".into()] } else { vec!["A".into(), "B".into()] };
        let ratio = Ratio { estimate, low, high, p: 0.5 };
        let algorithm = |name: &str, rival| RankedAlgorithm {
            name: name.into(),
            cell: CellId::default(),
            rank: Some(1),
            rival,
        };
        let rival = Rival { cell: 1, ratio, separation };
        Standing {
            values: Vec::new(),
            settings: Vec::new().into(),
            leaders,
            family: Some(0),
            algorithms: vec![algorithm("A", None), algorithm("B", Some(rival))],
            error: 0.5,
            n: 3,
            unit: "run",
            is_zero: false,
            is_geometric: false,
            diverged: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// A setting in which no algorithm is ranked: all end above the start, or diverge.
    fn unranked(error: f64) -> Standing {
        let mut row = setting([0.5, 2.0, 4.0], Separation::Unclear);
        row.leaders.clear();
        row.algorithms.iter_mut().for_each(|one| (one.rank, one.rival) = (None, None));
        Standing { error, ..row }
    }

    fn headline(rows: Vec<Standing>) -> String {
        let standings = Standings {
            axes: Vec::new(),
            rows,
            by: Quantity::SqError,
            at: None,
            margin: 0.05,
            costs: String::new(),
            compared: 1,
        };
        with_capital(&of_several_settings(&standings.rows, &standings).0, &standings)
    }

    /// What is not decided, what makes no practical difference and what is not ranked.
    #[test]
    fn settings_without_a_lead_are_counted_by_how_they_ended() {
        let open = || setting([0.08, 4.19, 7.93], Separation::Unclear);
        let alike = || setting([0.98, 1.01, 1.04], Separation::Unclear);
        let little = || setting([1.01, 1.03, 1.2], Separation::Larger);
        let tiny = || setting([1.01, 1.02, 1.03], Separation::Larger);
        let above = || unranked(3.0);
        let diverged = || unranked(f64::NAN);
        for (rows, expected) in [
            (
                vec![open(), above()],
                "A and B are not separated in 1 of 2 settings; in the other all end above the start",
            ),
            (vec![open(), open()], "A and B are not separated in any of 2 settings"),
            (vec![alike(), alike()], "A and B show no practical difference in any of 2 settings"),
            (
                vec![open(), alike(), alike()],
                "A and B are not separated in 1 of 3 settings; in the other 2 they show no practical difference",
            ),
            (vec![alike(), tiny()], "A and B show no practical difference in any of 2 settings"),
            (
                vec![alike(), open(), diverged()],
                "A and B are not separated in 1 of 3 settings; in 1 A and B show no practical difference; in 1 all diverged",
            ),
            (
                vec![little(), alike(), alike()],
                "A is lowest in 1 of 3 settings, and it is open whether by 5.0 % or more; in the other 2 A and B show no practical difference",
            ),
            (
                vec![diverged(), diverged()],
                "No algorithm is ranked in any of 2 settings: all diverged",
            ),
            (
                vec![diverged(), above()],
                "All diverged in 1 of 2 settings; in the other all end above the start",
            ),
        ] {
            assert_eq!(headline(rows), expected);
        }
    }

    /// That no algorithm leads is said only where it is decided in each setting.
    #[test]
    fn no_lead_is_a_decision() {
        let third = |row: Standing, high: f64| {
            let ratio = Ratio { estimate: 2.0, low: 1.5, high, p: 0.01 };
            let rival = Some(Rival { cell: 2, ratio, separation: Separation::Larger });
            let name = "C".into();
            let third = RankedAlgorithm { name, cell: CellId::default(), rank: Some(3), rival };
            let mut algorithms = row.algorithms;
            algorithms.push(third);
            Standing { algorithms, ..row }
        };
        let alike = || setting([0.98, 1.01, 1.04], Separation::Unclear);
        let open = || setting([0.5, 2.0, 7.0], Separation::Unclear);
        let none = "In none of 2 settings is one algorithm lowest by 5.0 % or more";
        let tiny = || setting([1.01, 1.02, 1.03], Separation::Larger);
        assert_eq!(headline(vec![third(tiny(), 3.0), alike()]), none);
        assert_eq!(headline(vec![third(tiny(), 3.0), third(tiny(), 3.0)]), none);
        for rows in [
            vec![third(tiny(), 3.0), open()],
            vec![third(alike(), 3.0), open()],
            vec![third(open(), 3.0), open()],
            vec![third(tiny(), 3.0), unranked(3.0)],
        ] {
            let said = headline(rows);
            assert!(!said.contains("In none of"), "{said}");
        }
        let lowest = "A and B are lowest in all 2 settings, not separated";
        assert_eq!(headline(vec![third(alike(), 3.0), third(open(), 3.0)]), lowest);
    }

    #[test]
    fn names_of_algorithms_stand_alone() {
        let names = [("FedAvg-RR".to_owned(), 1), ("FedAvg".to_owned(), 0)];
        let part = |text: &str, family| ColoredText { text: text.into(), family };
        assert_eq!(
            parts("FedAvg-RR cuts FedAvg’s error, not FedAvgM’s", &names),
            [
                part("FedAvg-RR", Some(1)),
                part(" cuts ", None),
                part("FedAvg", Some(0)),
                part("’s error, not FedAvgM’s", None)
            ]
        );
        assert_eq!(parts("", &names), []);
    }
}
