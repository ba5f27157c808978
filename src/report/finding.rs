//! The headline of a page: what its results say, and one line of interval and setting.
//!
//! *Invariant*: the headline is made from results. A manifest's `finding` is shown only while the
//! claims that it names hold; otherwise the headline is made from the ranking.

use super::description;
use super::number_text::interval;
use crate::evidence::family::{family, family_of, named_families};
use crate::evidence::{Experiment, Separation, Standing, Standings, unique, when_text};
use crate::stats::Ratio;
use exactfed_core::words::{count, readable};
use serde::Serialize;

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

/// A headline from the ranking: the algorithm that is separated from all others in most settings,
/// and the setting in which its lead is largest; the title where none is.
fn of_ranking(experiment: &Experiment<'_>) -> (String, String) {
    let (standings, title) = (&experiment.standings, &experiment.plan.manifest.title);
    let rows = &standings.rows;
    let separated = |row: &&Standing| row.leaders.len() == 1 && row.next.is_some();
    let leads: Vec<&Standing> = rows.iter().filter(separated).collect();
    let settings_of = |leader: &String| leads.iter().filter(|r| r.leaders[0] == *leader).count();
    let largest = leads.iter().max_by(|a, b| {
        let settings = settings_of(&a.leaders[0]).cmp(&settings_of(&b.leaders[0]));
        settings.then(lead(a).total_cmp(&lead(b)))
    });
    let Some(row) = largest else {
        let tied = unique(rows.iter().flat_map(|row| row.leaders.iter().cloned()));
        let all_tied = !rows.is_empty() && rows.iter().all(|row| row.leaders.len() > 1);
        return match tied.as_slice() {
            [one, other] if all_tied => {
                (format!("{one} and {other} are not separated"), places(standings))
            }
            _ => leaders_everywhere(experiment).unwrap_or_else(|| (title.clone(), String::new())),
        };
    };
    let (leader, (next, rival)) = (&row.leaders[0], row.next.as_ref().expect("a rival"));
    let alone = settings_of(leader);
    let larger = larger(rival.ratio.estimate);
    let most = if alone > 1 { "up to " } else { "" };
    let others = leads.iter().map(|row| row.leaders[0].clone()).filter(|other| other != leader);
    let others: Vec<String> =
        unique(others).iter().map(|other| format!("{other} in {}", settings_of(other))).collect();
    let lowest = match standings.at {
        None => "ends lowest".to_owned(),
        Some(_) => format!("is lowest {}", when_text(standings.at)),
    };
    let headline = match rows.len() {
        1 => format!("{leader} {lowest}: {next}’s error is {larger}"),
        all => format!(
            "{leader} alone {lowest} in {alone} of {all} settings, where {next}’s error is {most}{larger}"
        ),
    };
    let headline = tuned(experiment) + &headline;
    let rest = match others.as_slice() {
        [] => String::new(),
        others => format!(" Alone lowest are also {}.", others.join(", ")),
    };
    let rest = rest + &at_the_border(experiment);
    let ratio = interval(rival.ratio.estimate, (rival.ratio.low, rival.ratio.high));
    let at = setting(row);
    let paired = count(row.n, &format!("paired {}", row.unit));
    (headline, format!("{at}the ratio is {ratio} over {paired}.{rest}"))
}

/// A headline of those that are among the best in every setting, where some others are not: none is
/// separated from all others, but these are separated from the rest somewhere.
fn leaders_everywhere(experiment: &Experiment<'_>) -> Option<(String, String)> {
    let standings = &experiment.standings;
    let (first, others) = standings.rows.split_first()?;
    let everywhere = |leader: &&String| others.iter().all(|row| row.leaders.contains(leader));
    let best: Vec<String> = first.leaders.iter().filter(everywhere).cloned().collect();
    let behind = standings.rows.iter().any(|row| row.rivals + 1 > row.leaders.len());
    let (last, head) = best.split_last().filter(|(_, head)| behind && !head.is_empty())?;
    let tuned = tuned(experiment);
    let where_ = match standings.rows.len() {
        1 => String::new(),
        all => format!(" in all {all} settings"),
    };
    let lowest = match standings.at {
        None => "end lowest".to_owned(),
        Some(_) => format!("are lowest {}", when_text(standings.at)),
    };
    Some((
        format!("{tuned}{} and {last} {lowest}{where_}, and are not separated", head.join(", ")),
        places(standings),
    ))
}

/// What is tuned, as the beginning of a sentence.
fn tuned(experiment: &Experiment<'_>) -> String {
    let settings = experiment.tuned_in_words();
    if settings.is_empty() { settings } else { format!("Each with its {settings} tuned, ") }
}

/// That selected candidates stand at the border of what was tried, so that the ranking may change.
fn at_the_border(experiment: &Experiment<'_>) -> String {
    let Some(tuning) = &experiment.tuning else { return String::new() };
    match tuning.rows.iter().filter(|row| !row.edges.is_empty()).count() {
        0 => String::new(),
        some => format!(
            " {some} of {} selected candidates stand at the border of what was tried.",
            tuning.rows.len()
        ),
    }
}

/// How much larger a mean is than another, in words: in per cent where they are close, where "1.00
/// times" would say nothing.
fn larger(ratio: f64) -> String {
    match ratio < 1.1 {
        true => format!("{} % larger", readable(100.0 * (ratio - 1.0), 2)),
        false => format!("{} times as large", readable(ratio, 2)),
    }
}

/// How many times larger the next mean is than the smallest.
fn lead(row: &Standing) -> f64 {
    let larger = row.next.as_ref().filter(|(_, rival)| rival.separation == Separation::Larger);
    larger.map_or(0.0, |(_, rival)| rival.ratio.estimate)
}

/// In how many settings algorithms are compared; of one setting how close the next is to the best.
fn places(standings: &Standings) -> String {
    match standings.rows.as_slice() {
        [row @ Standing { leaders, next: Some((next, rival)), n, unit, .. }]
            if !leaders.is_empty() =>
        {
            let Ratio { estimate, low, high, .. } = rival.ratio;
            let (ratio, pairs) =
                (interval(estimate, (low, high)), count(*n, &format!("paired {unit}")));
            format!("{next}’s {} is {ratio} times {}’s over {pairs}.", row.mean(), leaders[0])
        }
        rows => format!(
            "In {} with {}.",
            count(rows.len(), "setting"),
            count(standings.compared, "comparison")
        ),
    }
}

/// The setting of a grid point, as the beginning of a sentence.
fn setting(row: &Standing) -> String {
    match row.settings.is_empty() {
        true => "There ".into(),
        false => format!("At {}, ", row.settings.join(", ")),
    }
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
