//! The headline of a page: what its results say, and one line of interval and setting.
//!
//! *Invariant*: the headline is made from results. A manifest's `finding` is shown only while the
//! claims that it names hold; otherwise the headline is made from the ranking.

use super::description;
use super::number_text::ratio_text;
use super::tuning::at_the_edge;
use crate::evidence::family::{family, family_of, named_families};
use crate::evidence::{Experiment, Rival, Separation, Standing, Standings, unique, when_text};
use exactfed_core::words::{count, enumerated, readable};
use serde::Serialize;
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

/// A part of a text: the name of an algorithm, or what stands between names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColoredText {
    pub text: String,
    /// The family of the algorithm, whose colour the text has.
    pub family: Option<usize>,
}

/// The finding of an experiment.
///
/// # Errors
/// If a text cannot be filled.
pub fn finding(experiment: &Experiment<'_>) -> Result<Finding, String> {
    let manifest = &experiment.plan.manifest;
    let own = manifest.finding.as_deref().unwrap_or_default();
    let analysis = manifest.analysis.as_deref().unwrap_or_default();
    let complete = !own.is_empty() && experiment.missing.is_empty();
    let filled = if complete { description::render(own, experiment)? } else { None };
    let (headline, line) = match filled {
        Some(text) => {
            let (headline, line) = text.split_once("\n\n").unwrap_or((&text, ""));
            (one_line(headline), one_line(line))
        }
        None => of_ranking(experiment),
    };
    let names = names(experiment);
    let (headline_parts, line) = (parts(&headline, &names), parts(&line, &names));
    let analysis = description::render(analysis, experiment)?.unwrap_or_default();
    let paragraphs = analysis.split("\n\n").map(one_line).filter(|p| !p.is_empty()).collect();
    Ok(Finding { headline: headline_parts, text: headline, line, paragraphs })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A headline from the ranking, and the line below it; the title where nothing is compared.
fn of_ranking(experiment: &Experiment<'_>) -> (String, String) {
    let (standings, cells) = (&experiment.standings, &experiment.cells);
    if !cells.is_empty() && cells.iter().all(|cell| cell.runs.diverged == cell.runs.count) {
        let runs = count(cells.len(), "cell");
        return ("All runs diverged".into(), format!("{runs}; smaller step sizes may converge."));
    }
    let tuned = if experiment.tuning.is_some() { "Tuned, " } else { "" };
    let (headline, line) = match standings.rows.as_slice() {
        [row] if row.is_zero => of_zero_error(row, standings),
        [row] if !row.leaders.is_empty() => of_one_setting(row, standings),
        [] | [_] => return (experiment.plan.manifest.title.clone(), String::new()),
        rows => of_several_settings(rows, standings),
    };
    let settings = experiment.tuned_in_words();
    let settings = if settings.is_empty() { settings } else { format!("Tuned: {settings}. ") };
    let edge = experiment.tuning.as_ref().and_then(at_the_edge);
    let edge = edge.map_or(String::new(), |edge| format!(" {edge}."));
    (format!("{tuned}{headline}"), settings + &line + &edge)
}

/// The only setting: those that lead, and how far the next is.
fn of_one_setting(row: &Standing, standings: &Standings) -> (String, String) {
    let rivals = row.rivals();
    let most = 1.0 + standings.margin;
    let is_close = |rival: &Rival| {
        let is_same = matches!(rival.separation, Separation::Equal | Separation::BothZero);
        rival.ratio.high < most || is_same
    };
    let is_near = |rival: &Rival| rival.separation != Separation::Larger || is_close(rival);
    let (near, far): (Vec<_>, Vec<_>) = rivals.iter().partition(|(_, rival)| is_near(rival));
    let alike = near.iter().all(|(_, rival)| is_close(rival));
    let first: Vec<&str> =
        std::iter::once(&*row.leaders[0]).chain(near.iter().map(|(name, _)| *name)).collect();
    let (all, error) = (1 + rivals.len(), error_word(standings));
    let at = standings.at.map_or(String::new(), |at| format!(" {}", when_text(Some(at))));
    let next = far.first().map(|(name, rival)| {
        let digits = if rival.ratio.estimate < 1.1 { 3 } else { 2 };
        (name, format!("{error} is {} times", readable(rival.ratio.estimate, digits)))
    });
    let headline = match (first.as_slice(), next) {
        ([one], None) => format!("{one} has the smallest {error}{at}: {}", row.no_others()),
        ([one], Some((next, error))) if all == 2 => format!("{next}’s {error} {one}’s{at}"),
        ([one], Some((next, error))) => {
            format!("{one} is lowest of {all} algorithms{at}: {next}’s {error} as large")
        }
        (several, next) => {
            let next =
                next.map_or(String::new(), |(next, error)| format!("; {next}’s {error} as large"));
            let names = listed(several, all);
            match (alike, next.is_empty()) {
                (true, _) => format!("{names} show no practical difference{at}{next}"),
                (false, true) => format!("{names} are not separated{at}"),
                (false, false) => format!("{names} are lowest{at} and not separated{next}"),
            }
        }
    };
    let margin = match alike && first.len() > 1 {
        true => format!(
            "Differences below {} % are of no practical importance. ",
            readable(100.0 * standings.margin, 2)
        ),
        false => String::new(),
    };
    let ratio = |(name, rival): &(&str, &Rival)| format!("{name} {}", ratio_text(&rival.ratio));
    let ratios: Vec<String> = rivals.iter().map(ratio).collect();
    let pairs = count(row.n, &format!("paired {}", row.unit));
    let line = match ratios.is_empty() {
        true => String::new(),
        false => {
            let (mean, ratios) = (row.mean(), ratios.join(", "));
            format!("Ratios of {mean}s of the {error} to {}’s: {ratios}; {pairs}.", row.leaders[0])
        }
    };
    (headline, margin + &line)
}

/// The only setting, where the smallest error is zero to rounding, so that no other is a number of
/// times as large.
fn of_zero_error(row: &Standing, standings: &Standings) -> (String, String) {
    let rivals = row.rivals();
    let is_zero = |rival: &Rival| rival.separation == Separation::BothZero;
    let zeros = rivals.iter().filter(|(_, rival)| is_zero(rival)).map(|(name, _)| *name);
    let zeros: Vec<&str> = std::iter::once(&*row.leaders[0]).chain(zeros).collect();
    let (all, error) = (1 + rivals.len(), error_word(standings));
    let at = standings.at.map_or(String::new(), |at| format!(" {}", when_text(Some(at))));
    let both = if zeros.len() == 2 { "both " } else { "" };
    let others: Vec<&str> =
        rivals.iter().filter(|(_, rival)| !is_zero(rival)).map(|(name, _)| *name).collect();
    let rest = match others.as_slice() {
        [] if all == 1 => format!(": {}", row.no_others()),
        [] => String::new(),
        others => format!("; that of {} is not", listed(others, all)),
    };
    let headline =
        format!("The {error} of {both}{} is zero to rounding{at}{rest}", listed(&zeros, all));
    let pairs = count(row.n, &format!("paired {}", row.unit));
    (headline, format!("What is zero to rounding has no ratio to another; {pairs}."))
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
        let everywhere = |leader: &&Arc<str>| rows.iter().all(|row| row.leaders.contains(leader));
        let best: Vec<&str> =
            rows[0].leaders.iter().filter(everywhere).map(|name| &**name).collect();
        let most = rows.iter().map(|row| 1 + row.rivals().len()).max().unwrap_or_default();
        let headline = match best.as_slice() {
            [one] if rows.iter().all(|row| row.rivals().is_empty()) => {
                format!("{one} is lowest in all {all} settings: {}", rows[0].no_others())
            }
            [] | [_] => format!(
                "In none of {all} settings is one algorithm lowest by {} % or more",
                readable(100.0 * standings.margin, 2)
            ),
            several if several.len() == most => {
                format!("{} are not separated in any of {all} settings", listed(several, most))
            }
            several => {
                format!("{} are lowest in all {all} settings, not separated", listed(several, most))
            }
        };
        return (headline, format!("{compared} {}.", count(standings.compared, "comparison")));
    };
    let leader = &row.leaders[0];
    let (alone, error) = (settings_of(leader), error_word(standings));
    let most = if alone > 1 { "up to " } else { "" };
    let others = leads.iter().map(|row| row.leaders[0].clone()).filter(|other| other != leader);
    let others: Vec<String> =
        unique(others).iter().map(|other| format!("{other} in {}", settings_of(other))).collect();
    let distance = if row.is_zero {
        format!("in one of which its {error} is zero to rounding and {next}’s is not")
    } else {
        let times = readable(rival.ratio.estimate, 2);
        format!("where {next}’s {error} is {most}{times} times as large")
    };
    let headline = format!("{leader} alone is lowest in {alone} of {all} settings, {distance}");
    let rest = match others.as_slice() {
        [] => String::new(),
        others => format!(" Alone lowest are also {}.", others.join(", ")),
    };
    let pairs = count(row.n, &format!("paired {}", row.unit));
    let found = if row.is_zero {
        format!("it is zero to rounding over {pairs}")
    } else {
        let ratio = ratio_text(&rival.ratio);
        format!("the ratio of {}s is {ratio} over {pairs}", row.mean())
    };
    let line = format!("{compared} At {} {found}.{rest}", row.settings.join(", "));
    (headline, line)
}

/// Names in a sentence; how many of all where there are many.
fn listed(names: &[&str], all: usize) -> String {
    match names {
        few if few.len() <= 3 => enumerated(few),
        _ if names.len() == all => format!("all {all} algorithms"),
        _ => format!("{} of {all} algorithms", names.len()),
    }
}

/// What is compared, in a word or two.
fn error_word(standings: &Standings) -> String {
    let name = standings.by.name();
    if name.contains("error") { "error".into() } else { name.replace('-', " ") }
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
    let own = cells.map(|c| (c.label.clone(), family_of(c)));
    let known = named_families().map(|(name, family)| (name.to_owned(), family));
    let frontiers = experiment.frontiers.iter().flat_map(|f| f.algorithms);
    let of_frontiers = frontiers.map(|a| (a.label().to_owned(), family(a.name())));
    let mut all = unique(own.chain(known).chain(of_frontiers));
    all.sort_by_key(|(name, _)| std::cmp::Reverse(name.chars().count()));
    all
}

/// A text in parts, where names of algorithms stand alone.
fn parts(text: &str, names: &[(String, usize)]) -> Vec<ColoredText> {
    let (mut parts, mut rest, mut plain) = (Vec::new(), text, String::new());
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
